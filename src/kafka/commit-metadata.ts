/**
 * The metadata string of an offset commit: which records above the committed offset are settled already.
 *
 * base64 of an 8-byte header and a bitmap. Byte 0: format, 1. Byte 1: flags. Bytes 2-5: the writer's epoch,
 * big-endian. Bytes 6-7: the low half of the CRC-32 of everything else. Bit i of the bitmap
 * (least significant first) is offset `position + i`. The broker refuses more than 4,096 characters.
 *
 * Format 2 has a further field between header and bitmap, six bytes, big-endian: `begunBelow`.
 *
 * Behind all that, after a `=`, the topic's id as it was then, in 22 characters, and the low half of its CRC-32 in hexadecimal. Versions that
 * don't know of it read no further than to the `=`, at which base64 ends.
 */
import { crc32 } from 'node:zlib'

const format = 1
const formatWithBegun = 2
const headerBytes = 8
const begunBytes = 6
const maxBegunBelow = 2 ** 48 - 1
const maxCharacters = 4096
const topicIdCharacters = 22
const topicCheckCharacters = 4
/** Of what is read by versions before: a multiple of four, and room for the id behind it. */
const maxBase64 = maxCharacters - topicIdCharacters - topicCheckCharacters - 2

/** How many offsets above the watermark always fit. Past it, settled records are repeated after a restart. */
export const maxRememberedOffsets = ((maxBase64 / 4) * 3 - headerBytes - begunBytes) * 8

const isFinalFlag = 1

/**
 * What an owner leaves to the next one. `isFinal`: it has finished what it had in flight, and nobody has begun since.
 * `epoch` counts owners: each writes one more than it found. `begunBelow`: of the records below this offset, an owner
 * that left without a word may have begun some; absent where there are none. `topicId`: of the log that the offset is of, where it is
 * known; another one under the same name has another id.
 */
export type CommitMemory = OwnerMark & { settledAbove: number[] }

export type OwnerMark = { isFinal: boolean; epoch: number; begunBelow?: number; topicId?: string }

/** `settledAbove`: what lies more than `maxRememberedOffsets` above the position is left out. */
export function encodeCommitMetadata(
  position: number,
  settledAbove: Iterable<number>,
  { isFinal, epoch, begunBelow, topicId }: OwnerMark,
): string {
  const bitmapAt = begunBelow === undefined ? headerBytes : headerBytes + begunBytes
  const buffer = Buffer.alloc(bitmapAt + maxRememberedOffsets / 8)
  let length = bitmapAt
  for (const offset of settledAbove) {
    const bit = offset - position
    if (bit < 0 || bit >= maxRememberedOffsets) continue
    const index = bitmapAt + (bit >> 3)
    buffer[index] = (buffer[index] ?? 0) | (1 << (bit & 7))
    if (index >= length) length = index + 1
  }
  buffer[0] = begunBelow === undefined ? format : formatWithBegun
  if (begunBelow !== undefined)
    buffer.writeUIntBE(Math.min(begunBelow, maxBegunBelow), headerBytes, begunBytes)
  buffer[1] = isFinal ? isFinalFlag : 0
  buffer.writeUInt32BE(epoch >>> 0, 2)
  buffer.writeUInt16BE(checksum(buffer.subarray(0, length)), 6)
  const memory = buffer.toString('base64', 0, length)
  return topicId?.length === topicIdCharacters ? `${memory}=${topicId}${topicCheck(topicId)}` : memory
}

function topicCheck(topicId: string): string {
  return (crc32(topicId) & 0xffff).toString(16).padStart(topicCheckCharacters, '0')
}

/** `undefined` where it isn't there, or damaged: nothing is concluded from it then. */
function topicIdOf(text: string): string | undefined {
  const topicId = text.slice(0, topicIdCharacters)
  return text === topicId + topicCheck(topicId) && topicId.length === topicIdCharacters ? topicId : undefined
}

/**
 * Reads the metadata of a commit. Anything that isn't ours, or is damaged, gives `undefined`: the records
 * above the watermark are then delivered again, which is allowed, rather than passed over, which isn't.
 */
export function decodeCommitMetadata(position: number, metadata: string | null): CommitMemory | undefined {
  if (!metadata || metadata.length > maxCharacters) return undefined
  const [memory = '', behind = ''] = metadata.split(/=+/)
  const topicId = topicIdOf(behind)
  const buffer = Buffer.from(memory, 'base64')
  const hasBegun = buffer[0] === formatWithBegun
  if (buffer[0] !== format && !hasBegun) return undefined
  const bitmapAt = hasBegun ? headerBytes + begunBytes : headerBytes
  if (buffer.length < bitmapAt) return undefined
  if (buffer.readUInt16BE(6) !== checksum(buffer)) return undefined
  const settledAbove: number[] = []
  const end = Math.min(buffer.length, bitmapAt + maxRememberedOffsets / 8)
  for (let index = bitmapAt; index < end; index++) {
    const byte = buffer[index] ?? 0
    for (let bit = 0; bit < 8; bit++) {
      if (byte & (1 << bit)) settledAbove.push(position + (index - bitmapAt) * 8 + bit)
    }
  }
  const flags = buffer[1] ?? 0
  return {
    settledAbove,
    isFinal: (flags & isFinalFlag) !== 0,
    epoch: buffer.readUInt32BE(2),
    ...(hasBegun && { begunBelow: buffer.readUIntBE(headerBytes, begunBytes) }),
    ...(topicId !== undefined && { topicId }),
  }
}

function checksum(buffer: Buffer): number {
  return crc32(buffer.subarray(headerBytes), crc32(buffer.subarray(0, 6))) & 0xffff
}
