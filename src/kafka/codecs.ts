import { promisify } from 'node:util'
import { constants, unzip, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import kafkajs from 'kafkajs'
import { compressFrame, decompressFrame } from 'lz4-napi'
import { compress, uncompress } from 'snappy'

/**
 * Teaches kafkajs the codecs it lacks; only gzip is built in, and a batch in any other stops the consumer
 * and each one that takes over from it. Called once, before the first client is made.
 */
export function registerCodecs(): void {
  const { CompressionCodecs, CompressionTypes } = kafkajs
  CompressionCodecs[CompressionTypes.Snappy] = () => ({
    compress: (encoder: { buffer: Buffer }) => compress(encoder.buffer),
    decompress: (buffer: Buffer) => decompress(codecIds.snappy, buffer),
  })
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder: { buffer: Buffer }) => compressFrame(encoder.buffer),
    decompress: (buffer: Buffer) => decompress(codecIds.lz4, buffer),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder: { buffer: Buffer }) =>
      zstdCompressSync(encoder.buffer, { params: { [constants.ZSTD_c_compressionLevel]: 3 } }),
    decompress: (buffer: Buffer) => decompress(codecIds.zstd, buffer),
  })
}

/** As batches name them. Source: the Kafka protocol, record batch attributes. */
const codecIds = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const

/** What zlib throws when the output would be longer than it may be; so do the other codecs here. */
export const tooLongCode = 'ERR_BUFFER_TOO_LARGE'

const unlimited = 2 ** 31

/**
 * Rejects when the bytes are damaged or `codec` isn't known, and, with the code `tooLongCode`, before more
 * than about `maxBytes` are made of them.
 */
export async function decompress(codec: number, bytes: Buffer, maxBytes = unlimited): Promise<Buffer> {
  switch (codec) {
    case codecIds.none:
      return bytes
    case codecIds.gzip:
      return unzipped(bytes, { maxOutputLength: maxBytes })
    case codecIds.snappy:
      return decompressSnappy(bytes, maxBytes)
    case codecIds.lz4:
      refuseOver(maxBytes, lz4Bound(bytes))
      return decompressFrame(bytes)
    case codecIds.zstd:
      return zstdDecompressSync(bytes, { maxOutputLength: maxBytes })
    default:
      throw new RangeError(`the codec ${codec} is not known`)
  }
}

const unzipped = promisify(unzip)

function refuseOver(maxBytes: number, length: number): void {
  if (length <= maxBytes) return
  throw Object.assign(new RangeError(`it is over ${maxBytes} bytes`), { code: tooLongCode })
}

/** Java clients wrap snappy in xerial's blocks: magic, two versions, then length-prefixed blocks. */
const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const xerialHeaderBytes = 16

async function decompressSnappy(buffer: Buffer, maxBytes: number): Promise<Buffer> {
  const blocks = snappyBlocks(buffer)
  refuseOver(
    maxBytes,
    blocks.reduce((sum, block) => sum + snappyLength(block), 0),
  )
  const plain: Buffer[] = []
  for (const block of blocks) plain.push(await uncompressBlock(block))
  return plain.length === 1 && plain[0] !== undefined ? plain[0] : Buffer.concat(plain)
}

function snappyBlocks(buffer: Buffer): Buffer[] {
  if (!buffer.subarray(0, xerialMagic.length).equals(xerialMagic)) return [buffer]
  const blocks: Buffer[] = []
  for (let at = xerialHeaderBytes; at < buffer.length;) {
    const length = buffer.readUInt32BE(at)
    at += 4
    blocks.push(buffer.subarray(at, at + length))
    at += length
  }
  return blocks
}

/** What a snappy block becomes: the varint at its beginning. */
function snappyLength(block: Buffer): number {
  let length = 0
  for (let at = 0; at < 5; at++) {
    const byte = block[at] ?? 0
    length += (byte & 0x7f) * 128 ** at
    if (byte < 0x80) break
  }
  return length
}

async function uncompressBlock(block: Buffer): Promise<Buffer> {
  const plain = await uncompress(block, { asBuffer: true })
  return Buffer.isBuffer(plain) ? plain : Buffer.from(plain)
}

const lz4Magic = 0x184d2204
const lz4HeaderBytes = 7
/** A byte of LZ4 stands for no more than 255. */
const lz4MaxRatio = 255

/**
 * What LZ4 frames become at the most, by the sizes of their blocks: the library itself can't be held back.
 * Source: LZ4 frame format 1.6.
 */
function lz4Bound(bytes: Buffer): number {
  let bound = 0
  let at = 0
  while (at + lz4HeaderBytes <= bytes.length && bytes.readUInt32LE(at) === lz4Magic) {
    const flags = bytes[at + 4] ?? 0
    const maxBlockBytes = 2 ** (8 + 2 * (((bytes[at + 5] ?? 0) >> 4) & 0x07))
    const blockChecksumBytes = (flags & 0x10) === 0 ? 0 : 4
    const contentSizeBytes = (flags & 0x08) === 0 ? 0 : 8
    const contentChecksumBytes = (flags & 0x04) === 0 ? 0 : 4
    const dictionaryBytes = (flags & 0x01) === 0 ? 0 : 4
    at += lz4HeaderBytes + contentSizeBytes + dictionaryBytes
    for (;;) {
      const size = at + 4 <= bytes.length ? bytes.readUInt32LE(at) & 0x7fffffff : 0
      at += 4
      if (size === 0) break
      bound += Math.min(maxBlockBytes, size * lz4MaxRatio)
      at += size + blockChecksumBytes
    }
    at += contentChecksumBytes
  }
  return bound
}
