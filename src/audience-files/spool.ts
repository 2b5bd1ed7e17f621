import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const mostBufferedBytes = 16 * 1024 ** 2
const mostBlockBytes = 64 * 1024
const leastBlockBytes = 16 * 1024
const mostBytesOfUnit = 3

type Block = { readonly at: number; readonly bytes: number }
type Bucket = { readonly blocks: Block[]; buffer: Buffer; filled: number; count: number }

/**
 * Keeps texts on disk, in buckets, because there may be more texts than fit into memory. All buckets are in
 * one file in the folder for temporary files. The file has no name, so it disappears even if the process is
 * killed. Reads and writes are synchronous, because the process has nothing else to do. Most reads and writes
 * only reach the file cache of the system. Methods throw if the disk is full.
 */
export class Spool {
  readonly #file: number
  readonly #buckets: readonly Bucket[]
  readonly #blockBytes: number
  #end = 0

  constructor(buckets: number) {
    this.#blockBytes = Math.max(
      leastBlockBytes,
      Math.min(mostBlockBytes, Math.floor(mostBufferedBytes / buckets)),
    )
    this.#file = openNameless()
    this.#buckets = Array.from({ length: buckets }, () => ({
      blocks: [],
      buffer: Buffer.alloc(0),
      filled: 0,
      count: 0,
    }))
  }

  count(bucket: number): number {
    return this.#buckets[bucket]?.count ?? 0
  }

  /** Adds a text to a bucket. The text must not contain a line feed. */
  add(bucket: number, text: string): void {
    const entry = this.#bucket(bucket)
    entry.count++
    const mostBytes = text.length * mostBytesOfUnit + 1
    if (entry.filled + mostBytes > entry.buffer.length) this.#flush(entry)
    if (mostBytes > this.#blockBytes) {
      this.#write(entry, Buffer.from(`${text}\n`))
      return
    }
    // A bucket gets its buffer with its first text, so that an empty bucket takes no memory.
    if (entry.buffer.length === 0) entry.buffer = Buffer.allocUnsafe(this.#blockBytes)
    entry.filled += entry.buffer.write(text, entry.filled)
    entry.filled = entry.buffer.writeUInt8(lineFeed, entry.filled)
  }

  /** Yields the texts of a bucket in lists, in the order in which the texts were added. */
  *read(bucket: number): Generator<readonly string[]> {
    const entry = this.#bucket(bucket)
    this.#flush(entry)
    for (const { at, bytes } of entry.blocks) {
      const block = Buffer.allocUnsafe(bytes)
      for (let read = 0; read < bytes;) {
        const count = readSync(this.#file, block, read, bytes - read, at + read)
        if (count === 0) throw new Error('the spool file is shorter than what was written to it')
        read += count
      }
      yield block.toString('utf8', 0, bytes - 1).split('\n')
    }
  }

  close(): void {
    closeSync(this.#file)
  }

  #bucket(bucket: number): Bucket {
    const entry = this.#buckets[bucket]
    if (entry === undefined) throw new Error(`the spool has no bucket ${bucket}`)
    return entry
  }

  #flush(entry: Bucket): void {
    if (entry.filled === 0) return
    this.#write(entry, entry.buffer.subarray(0, entry.filled))
    entry.filled = 0
  }

  #write(entry: Bucket, bytes: Buffer): void {
    for (let written = 0; written < bytes.length;) {
      written += writeSync(this.#file, bytes, written, bytes.length - written, this.#end + written)
    }
    entry.blocks.push({ at: this.#end, bytes: bytes.length })
    this.#end += bytes.length
  }
}

const lineFeed = 0x0a

function openNameless(): number {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  try {
    return openSync(join(folder, 'spool'), 'wx+', 0o600)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
