import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
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
    decompress: decompressSnappy,
  })
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder: { buffer: Buffer }) => compressFrame(encoder.buffer),
    decompress: (buffer: Buffer) => decompressFrame(buffer),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder: { buffer: Buffer }) =>
      zstdCompressSync(encoder.buffer, { params: { [constants.ZSTD_c_compressionLevel]: 3 } }),
    decompress: async (buffer: Buffer) => zstdDecompressSync(buffer),
  })
}

/** Java clients wrap snappy in xerial's blocks: magic, two versions, then length-prefixed blocks. */
const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const xerialHeaderBytes = 16

async function decompressSnappy(buffer: Buffer): Promise<Buffer> {
  if (!buffer.subarray(0, xerialMagic.length).equals(xerialMagic)) return uncompressBlock(buffer)
  const blocks: Buffer[] = []
  for (let at = xerialHeaderBytes; at < buffer.length;) {
    const length = buffer.readInt32BE(at)
    at += 4
    blocks.push(await uncompressBlock(buffer.subarray(at, at + length)))
    at += length
  }
  return Buffer.concat(blocks)
}

async function uncompressBlock(block: Buffer): Promise<Buffer> {
  const plain = await uncompress(block, { asBuffer: true })
  return Buffer.isBuffer(plain) ? plain : Buffer.from(plain)
}
