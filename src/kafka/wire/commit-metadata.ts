// The metadata string of an offset commit. It says which records above the committed offset are settled
// already.
//
// The string is base64 of an 8-byte header and a bitmap. Byte 0 is the number of the format: 1 or 2. Byte 1
// has the flags. Bytes 2-5 are the writer's epoch, big-endian. Bytes 6-7 are the low half of the CRC-32 of
// all other bytes. Bit i of the bitmap (least significant first) stands for the offset `position + i`.
// `position` is the committed offset. The broker refuses more than 4,096 characters.
//
// Format 2 has a further field between header and bitmap: `begunBelow`, six bytes, big-endian. The writer may
// have started records below this offset.
//
// After the base64 comes a `=`. Then come the topic's id at the time of the commit, in 22 characters, and the
// low half of the id's CRC-32 in hexadecimal. After another `=` comes the leader epoch of the last record in
// the bitmap, in decimal. Then come a `.` and the low half of the leader epoch's CRC-32. A part that isn't
// known is left out. But if only the leader epoch is known, a single `-` takes the place of the id and its
// CRC-32. A version of Sluice that doesn't know one of these parts reads no further than the `=` before that
// part. The base64 ends at the first `=`. After a third `=` comes a part that begins with `~`, and says which
// settled records went nowhere (`went-nowhere-part.ts`). In this case, a `-` takes the place of the id or of
// the leader epoch, if one isn't known. The last part, which begins with `=@`, says for which commit the
// metadata was written (`commit-binding.ts`).

import { crc32 } from 'node:zlib'
import { decodeLeftOut, encodeLeftOut, type LeftOut } from './went-nowhere-part.ts'

const format = 1
const formatWithBegun = 2
const headerBytes = 8
const begunBytes = 6
const maxBegunBelow = 2 ** 48 - 1
const maxCharacters = 4096
const topicIdCharacters = 22
const checkCharacters = 4
const epochCharacters = 10
/**
 * The room for `=@`, an offset, the CRC-32 of a partition's name, and a check, with two dots between them.
 */
const bindingCharacters = 2 + 16 + 1 + 8 + 1 + checkCharacters
/**
 * The most characters that the base64 may have in the metadata of a commit. The number is a multiple of four.
 * It leaves room for the topic's id, the leader epoch and the binding, which follow the base64. Earlier
 * versions of Sluice read only the base64.
 */
const maxBase64 =
  4 *
  Math.floor(
    (maxCharacters - topicIdCharacters - epochCharacters - 2 * checkCharacters - 3 - bindingCharacters) / 4,
  )

/**
 * The number of offsets above the watermark that always fit into the metadata of a commit. Records that are
 * settled at higher offsets are delivered again after a restart. In earlier versions of Sluice, the metadata
 * had room for more offsets.
 */
export const maxRememberedOffsets = ((maxBase64 / 4) * 3 - headerBytes - begunBytes) * 8

const isFinalFlag = 1

/**
 * The data that an owner of a partition leaves to the next owner in the metadata of commits. `settledAbove`
 * lists the settled offsets above the committed offset.
 */
export type CommitMemory = OwnerMark & { settledAbove: number[] }

export type OwnerMark = {
  /** True if the owner has finished all that it had in flight, and nobody has started anything since. */
  isFinal: boolean
  /**
   * How many owners the partition has had. Each owner adds one to the number that the previous owner wrote.
   */
  epoch: number
  /**
   * An owner that left no final mark may have started records below this offset. Absent if all records below
   * the offset are settled.
   */
  begunBelow?: number
  /**
   * The topic's id when the offset was committed, if known. A topic that was deleted and created again has
   * another id.
   */
  topicId?: string
  /**
   * The leader epoch of the last record in `settledAbove`, if known. After an unclean election, the log may
   * have other records at the offsets of `settledAbove`.
   */
  settledEpoch?: number
  /**
   * The records that went nowhere, if they are known. As many of them as the metadata has room for.
   */
  leftOut?: LeftOut
}

/**
 * Encodes the metadata of a commit. Leaves out offsets that are `maxRememberedOffsets` or more above the
 * position.
 */
export function encodeCommitMetadata(
  position: number,
  settledAbove: Iterable<number>,
  { isFinal, epoch, begunBelow, topicId, settledEpoch, leftOut }: OwnerMark,
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
  const id = topicId?.length === topicIdCharacters ? topicId + checkOf(topicId) : ''
  const lastEpoch =
    settledEpoch === undefined || settledEpoch < 0 ? '' : `${settledEpoch}.${checkOf(String(settledEpoch))}`
  const withEpoch = memory + tailOf([id, lastEpoch])
  if (leftOut === undefined) return withEpoch
  const withUnknown = memory + tailOf([id, lastEpoch, unknownPart])
  const room = maxCharacters - bindingCharacters - withUnknown.length + unknownPart.length
  const encoded = encodeLeftOut(leftOut, position, room)
  return encoded === undefined ? withEpoch : memory + tailOf([id, lastEpoch, encoded])
}

/**
 * Returns the end of the metadata, which has these parts. A part that isn't known is empty, and is left out
 * if no part follows.
 */
function tailOf(parts: readonly string[]): string {
  const known = parts.findLastIndex((one) => one !== '') + 1
  return parts
    .slice(0, known)
    .map((one) => `=${one === '' ? unknownPart : one}`)
    .join('')
}

const unknownPart = '-'

function checkOf(text: string): string {
  return (crc32(text) & 0xffff).toString(16).padStart(checkCharacters, '0')
}

/**
 * Reads the topic's id from the metadata of a commit. Returns `undefined` if the id is missing or damaged. In
 * this case, nobody can tell from the commit whether the topic was created again.
 */
function topicIdOf(text: string): string | undefined {
  const topicId = text.slice(0, topicIdCharacters)
  return text === topicId + checkOf(topicId) && topicId.length === topicIdCharacters ? topicId : undefined
}

/**
 * Reads the leader epoch of the last settled record from the metadata of a commit. Returns `undefined` if it
 * is missing or damaged. In this case, nobody can tell from the commit whether an unclean election has
 * replaced the records.
 */
function settledEpochOf(text: string): number | undefined {
  const [epoch = '', check] = text.split('.')
  return /^\d{1,10}$/.test(epoch) && check === checkOf(epoch) ? Number(epoch) : undefined
}

/**
 * Decodes the metadata of a commit. Returns `undefined` if the metadata is damaged, or if another program
 * wrote it. In both cases, the records above the watermark are delivered again. Sluice may deliver a record
 * twice, but must not skip one.
 */
export function decodeCommitMetadata(position: number, metadata: string | null): CommitMemory | undefined {
  if (!metadata || metadata.length > maxCharacters) return undefined
  const [memory = '', id = '', lastEpoch = '', noted = ''] = metadata.split(/=+/)
  const topicId = topicIdOf(id)
  const leftOut = decodeLeftOut(noted, position)
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
    ...(leftOut !== undefined && { leftOut }),
  }
}

function checksum(buffer: Buffer): number {
  return crc32(buffer.subarray(headerBytes), crc32(buffer.subarray(0, 6))) & 0xffff
}
