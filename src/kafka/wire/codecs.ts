import { promisify } from 'node:util'
import { constants, unzip, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import kafkajs from 'kafkajs'
import { compressFrame, decompressFrame } from 'lz4-napi'
import type snappy from 'snappy'

/**
 * Teaches kafkajs the codecs that it lacks. kafkajs has only gzip, and a batch in any other codec stops the
 * consumer. The next consumer that takes over the partition is stopped by the same batch. Call this once,
 * before the first client is created.
 */
export function registerCodecs(): void {
  const { CompressionCodecs, CompressionTypes } = kafkajs
  CompressionCodecs[CompressionTypes.Snappy] = () => ({
    compress: async (encoder: { buffer: Buffer }) => (await loadSnappy()).compress(encoder.buffer),
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

type Snappy = Pick<typeof snappy, 'compress' | 'uncompress'>

/**
 * Loads snappy's native library when the first batch needs it, because the library takes 3 MB. If the library
 * can't be loaded, ends the process with an error. The promise must not reject, because then the batch would
 * seem to be damaged, and its records would be skipped.
 */
async function loadSnappy(): Promise<Snappy> {
  try {
    return await import('snappy')
  } catch (cause) {
    process.nextTick(() => {
      throw new Error("the package snappy can't be loaded on this platform: install it again", { cause })
    })
    return new Promise(() => undefined)
  }
}

/**
 * The number of each codec, as the attributes of a batch contain it. Source: the Kafka protocol, record batch
 * attributes.
 */
const codecIds = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const

/**
 * The code of the error that zlib throws when the output would be longer than allowed. The other codecs in
 * this file throw errors with the same code.
 */
export const tooLongCode = 'ERR_BUFFER_TOO_LARGE'

const unlimited = 2 ** 31

/**
 * Decompresses bytes. Rejects if the bytes are damaged, or if `codec` isn't known. Rejects with the code
 * `tooLongCode` before the output takes much more than `maxBytes`.
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

/**
 * The first bytes of xerial's format, in which Java clients wrap snappy. Then come two version numbers, and
 * then the blocks. The length of a block comes before the block.
 */
const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const xerialHeaderBytes = 16

async function decompressSnappy(buffer: Buffer, maxBytes: number): Promise<Buffer> {
  const blocks = snappyBlocks(buffer)
  refuseOver(
    maxBytes,
    blocks.reduce((sum, block) => sum + snappyLength(block), 0),
  )
  const { uncompress } = await loadSnappy()
  const plain: Buffer[] = []
  for (const block of blocks) {
    const bytes = await uncompress(block, { asBuffer: true })
    plain.push(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes))
  }
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

/** Returns the decompressed size of a snappy block, which is the varint at the start of the block. */
function snappyLength(block: Buffer): number {
  let length = 0
  for (let at = 0; at < 5; at++) {
    const byte = block[at] ?? 0
    length += (byte & 0x7f) * 128 ** at
    if (byte < 0x80) break
  }
  return length
}

const lz4Magic = 0x184d2204
const lz4HeaderBytes = 7
/** The most bytes into which one byte of LZ4 can be decompressed. */
const lz4MaxRatio = 255

/**
 * Returns an upper bound for the decompressed size of LZ4 frames. Computes it from the sizes of their blocks.
 * The bound is needed because the library can't limit the decompressed size. Source: LZ4 frame format 1.6.
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
