/**
 * The metadata string of an offset commit: which records above the committed offset are settled already.
 *
 * base64 of an 8-byte header and a bitmap. Byte 0: format, 1. Byte 1: flags. Bytes 2-5: the writer's epoch,
 * big-endian. Bytes 6-7: the low half of the CRC-32 of everything else. Bit i of the bitmap
 * (least significant first) is offset `position + i`. The broker refuses more than 4,096 characters.
 */
import { crc32 } from 'node:zlib'

const format = 1
const headerBytes = 8
const maxCharacters = 4096

/** How many offsets above the watermark always fit. Past it, settled records are repeated after a restart. */
export const maxRememberedOffsets = ((maxCharacters / 4) * 3 - headerBytes) * 8

const isFinalFlag = 1

/**
 * What an owner leaves to the next one. `isFinal`: it has finished what it had in flight, and nobody has begun since.
 * `epoch` counts owners: each writes one more than it found.
 */
export type CommitMemory = { settledAbove: number[]; isFinal: boolean; epoch: number }

export function encodeCommitMetadata(
  position: number,
  settledAbove: Iterable<number>,
  { isFinal, epoch }: { isFinal: boolean; epoch: number },
): string {
  const buffer = Buffer.alloc(headerBytes + maxRememberedOffsets / 8)
  let length = headerBytes
  for (const offset of settledAbove) {
    const bit = offset - position
    if (bit < 0 || bit >= maxRememberedOffsets) continue
    const index = headerBytes + (bit >> 3)
    buffer[index] = (buffer[index] ?? 0) | (1 << (bit & 7))
    if (index >= length) length = index + 1
  }
  buffer[0] = format
  buffer[1] = isFinal ? isFinalFlag : 0
  buffer.writeUInt32BE(epoch >>> 0, 2)
  buffer.writeUInt16BE(checksum(buffer.subarray(0, length)), 6)
  return buffer.toString('base64', 0, length)
}

/**
 * Reads the metadata of a commit. Anything that isn't ours, or is damaged, gives `undefined`: the records
 * above the watermark are then delivered again, which is allowed, rather than passed over, which isn't.
 */
export function decodeCommitMetadata(position: number, metadata: string | null): CommitMemory | undefined {
  if (!metadata || metadata.length > maxCharacters) return undefined
  const buffer = Buffer.from(metadata, 'base64')
  if (buffer.length < headerBytes || buffer[0] !== format) return undefined
  if (buffer.readUInt16BE(6) !== checksum(buffer)) return undefined
  const settledAbove: number[] = []
  for (let index = headerBytes; index < buffer.length; index++) {
    const byte = buffer[index] ?? 0
    for (let bit = 0; bit < 8; bit++) {
      if (byte & (1 << bit)) settledAbove.push(position + (index - headerBytes) * 8 + bit)
    }
  }
  const flags = buffer[1] ?? 0
  return { settledAbove, isFinal: (flags & isFinalFlag) !== 0, epoch: buffer.readUInt32BE(2) }
}

function checksum(buffer: Buffer): number {
  return crc32(buffer.subarray(headerBytes), crc32(buffer.subarray(0, 6))) & 0xffff
}
