/**
 * Returns the partition of a key among `partitions`: murmur2 of its UTF-8 bytes. Java's clients and kafkajs
 * place records in the same way, so all producers put a user into the same partition. kafkajs's own function
 * isn't used, because it computes the hash with BigInts, at 5 µs a key.
 */
export function partitionOf(key: string, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions
}

/** Buffer for short keys. Most keys fit, and then nothing is allocated. */
const scratch = Buffer.allocUnsafe(1_024)
const mostBytesOfUnit = 3
const multiplier = 0x5bd1e995
const seed = 0x9747b28c

/** Returns the same hash as `org.apache.kafka.common.utils.Utils.murmur2`: 32 bits, signed. */
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
