import { compressSync as compressSnappySync } from 'snappy'

/**
 * Compresses as Java's SnappyOutputStream does. The result has magic bytes, two versions and blocks, each
 * behind its length.
 */
export function xerialSync(bytes: Buffer): Buffer {
  const blockBytes = 32 * 1024
  const parts: Buffer[] = [Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1])]
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const block = compressSnappySync(bytes.subarray(at, at + blockBytes))
    const length = Buffer.alloc(4)
    length.writeInt32BE(block.length)
    parts.push(length, block)
  }
  return Buffer.concat(parts)
}
