/**
 * The metadata string of an offset commit: which records above the committed offset are settled already.
 *
 * base64 of an 8-byte header and a bitmap. Byte 0: format, 1. Byte 1: flags. Bytes 2-5: the writer's epoch,
 * big-endian. Bytes 6-7: the low half of the CRC-32 of everything else. Bit i of the bitmap
 * (least significant first) is offset `position + i`. The broker refuses more than 4,096 characters.
 *
 * Format 2 has a further field between header and bitmap, six bytes, big-endian: `begunBelow`.
 *
 * Behind all that, after a `=`, the topic's id as it was then, in 22 characters, and the low half of its
 * CRC-32 in hexadecimal; or `-` where it isn't known. Behind that, after a `=`, the leader's epoch of the
 * last record of the bitmap, in decimal, a `.` and the low half of the CRC-32 of the epoch. Versions that
 * don't know of one of them read no further than to the `=` before it: at the first, base64 ends.
 */
import { crc32 } from 'node:zlib'

const format = 1
const formatWithBegun = 2
const headerBytes = 8
const begunBytes = 6
const maxBegunBelow = 2 ** 48 - 1
const maxCharacters = 4096
const topicIdCharacters = 22
const checkCharacters = 4
const epochCharacters = 10
/** Of what is read by versions before: a multiple of four, and room for what is behind it. */
const maxBase64 =
  4 * Math.floor((maxCharacters - topicIdCharacters - epochCharacters - 2 * checkCharacters - 3) / 4)

/**
 * How many offsets above the watermark always fit. Past it, settled records are repeated after a restart.
 * Versions before had room for more.
 */
export const maxRememberedOffsets = ((maxBase64 / 4) * 3 - headerBytes - begunBytes) * 8

const isFinalFlag = 1

/**
 * What an owner leaves to the next one. `isFinal`: it has finished what it had in flight, and nobody has
 * begun since. `epoch` counts owners: each writes one more than it found. `begunBelow`: of the records below
 * this offset, an owner that left without a word may have begun some; absent where there are none. `topicId`:
 * of the log that the offset is of, where it is known; another one under the same name has another id.
 * `settledEpoch`: that of the leader who wrote the last record of `settledAbove`, where it is known; after an
 * unclean election the log may have other records at those offsets.
 */
export type CommitMemory = OwnerMark & { settledAbove: number[] }

export type OwnerMark = {
  isFinal: boolean
  epoch: number
  begunBelow?: number
  topicId?: string
  settledEpoch?: number
}

/** `settledAbove`: what lies more than `maxRememberedOffsets` above the position is left out. */
export function encodeCommitMetadata(
  position: number,
  settledAbove: Iterable<number>,
  { isFinal, epoch, begunBelow, topicId, settledEpoch }: OwnerMark,
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
  return buffer.toString('base64', 0, length) + tailOf(topicId, settledEpoch)
}

/** What is behind the base64. */
function tailOf(topicId: string | undefined, settledEpoch: number | undefined): string {
  const id = topicId?.length === topicIdCharacters ? topicId + checkOf(topicId) : undefined
  if (settledEpoch === undefined || settledEpoch < 0) return id === undefined ? '' : `=${id}`
  return `=${id ?? noTopicId}=${settledEpoch}.${checkOf(String(settledEpoch))}`
}

const noTopicId = '-'

function checkOf(text: string): string {
  return (crc32(text) & 0xffff).toString(16).padStart(checkCharacters, '0')
}

/** `undefined` where it isn't there, or damaged: nothing is concluded from it then. */
function topicIdOf(text: string): string | undefined {
  const topicId = text.slice(0, topicIdCharacters)
  return text === topicId + checkOf(topicId) && topicId.length === topicIdCharacters ? topicId : undefined
}

/** As `topicIdOf`. */
function settledEpochOf(text: string): number | undefined {
  const [epoch = '', check] = text.split('.')
  return /^\d{1,10}$/.test(epoch) && check === checkOf(epoch) ? Number(epoch) : undefined
}

/**
 * Reads the metadata of a commit. Anything that isn't ours, or is damaged, gives `undefined`: the records
 * above the watermark are then delivered again, which is allowed, rather than passed over, which isn't.
 */
export function decodeCommitMetadata(position: number, metadata: string | null): CommitMemory | undefined {
  if (!metadata || metadata.length > maxCharacters) return undefined
  const [memory = '', id = '', lastEpoch = ''] = metadata.split(/=+/)
  const topicId = topicIdOf(id)
  const settledEpoch = settledEpochOf(lastEpoch)
  const buffer = Buffer.from(memory, 'base64')
  const hasBegun = buffer[0] === formatWithBegun
  if (buffer[0] !== format && !hasBegun) return undefined
  const bitmapAt = hasBegun ? headerBytes + begunBytes : headerBytes
  if (buffer.length < bitmapAt) return undefined
  if (buffer.readUInt16BE(6) !== checksum(buffer)) return undefined
  const settledAbove: number[] = []
  for (let index = bitmapAt; index < buffer.length; index++) {
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
    ...(settledEpoch !== undefined && { settledEpoch }),
  }
}

function checksum(buffer: Buffer): number {
  return crc32(buffer.subarray(headerBytes), crc32(buffer.subarray(0, 6))) & 0xffff
}
