import { isAbsent } from './validate.ts'

/**
 * Returns the partition of a key in a topic with `partitions` partitions. The partition is computed from the
 * murmur2 hash of the key's UTF-8 bytes. Java's clients and kafkajs choose partitions in the same way, so all
 * producers put a user into the same partition. kafkajs' function isn't used, because it computes with
 * BigInts and takes 5 µs for each key.
 */
export function partitionOf(key: string, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions
}

/** Buffer for short keys. Most keys fit into this buffer, so no memory is allocated for them. */
const scratch = Buffer.allocUnsafe(1_024)
const mostBytesOfUnit = 3
const multiplier = 0x5bd1e995
const seed = 0x9747b28c

/**
 * Returns the same hash as `org.apache.kafka.common.utils.Utils.murmur2`. The hash is a signed integer of 32
 * bits.
 */
function murmur2(key: string): number {
  const fits = key.length * mostBytesOfUnit <= scratch.length
  const bytes = fits ? scratch : Buffer.from(key)
  const length = fits ? scratch.write(key) : bytes.length
  let hash = seed ^ length
  let at = 0
  for (; at + 4 <= length; at += 4) {
    let word = Math.imul(bytes.readInt32LE(at), multiplier)
    word = Math.imul(word ^ (word >>> 24), multiplier)
    hash = Math.imul(hash, multiplier) ^ word
  }
  const left = length - at
  if (left > 2) hash ^= bytes.readUInt8(at + 2) << 16
  if (left > 1) hash ^= bytes.readUInt8(at + 1) << 8
  if (left > 0) hash = Math.imul(hash ^ bytes.readUInt8(at), multiplier)
  hash = Math.imul(hash ^ (hash >>> 13), multiplier)
  return hash ^ (hash >>> 15)
}

/**
 * Returns the record key for a validated message: its `userId`, or its `anonymousId` if it has no user id.
 * With this key, all messages of a user are in one partition. An alias may have its user id only in the field
 * `User ID`.
 */
export function partitionKey(message: {
  type?: unknown
  userId?: unknown
  anonymousId?: unknown
  'User ID'?: unknown
}): string | undefined {
  return (
    id(message.userId) ??
    (message.type === 'alias' ? id(message['User ID']) : undefined) ??
    id(message.anonymousId)
  )
}

function id(value: unknown): string | undefined {
  return typeof value === 'string' && !isAbsent(value) ? value : undefined
}
