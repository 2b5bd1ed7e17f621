import type { RecordContent } from '../../src/message/held-record.ts'
import type { OutboundRecord } from '../../src/pipeline/pipeline-ports.ts'

/** The parts of a record that the queue keeps. A key or value of `null` is written as an empty one. */
export type WrittenRecord = Pick<OutboundRecord, 'key' | 'value' | 'headers'>

const chunkBytes = 256 * 1024
/** The bytes of a frame: the append time, and the lengths of the key, the value and the headers. */
const frameBytes = 8 + 3 * 4

/**
 * A queue of the records of a log, first in, first out. The records are bytes in large chunks. If they were
 * objects, the garbage collector would visit a million waiting records again and again.
 */
export class RecordQueue {
  #chunks: Buffer[] = []
  #readAt = 0
  #writeAt = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  /** The append time of the first record, in epoch milliseconds. `undefined` while the queue is empty. */
  get headMs(): number | undefined {
    return this.#length === 0 ? undefined : this.#head.readDoubleLE(this.#readAt)
  }

  push({ key, value, headers }: WrittenRecord, appendedMs: number): void {
    const text = JSON.stringify(headers)
    const keyBytes = key?.length ?? 0
    const valueBytes = value?.length ?? 0
    const headerBytes = Buffer.byteLength(text)
    const chunk = this.#room(frameBytes + keyBytes + valueBytes + headerBytes)
    let at = chunk.writeDoubleLE(appendedMs, this.#writeAt)
    for (const length of [keyBytes, valueBytes, headerBytes]) at = chunk.writeUInt32LE(length, at)
    if (key !== null) at += key.copy(chunk, at)
    if (value !== null) at += value.copy(chunk, at)
    this.#writeAt = at + chunk.write(text, at)
    this.#length++
  }

  /** Removes and returns the first record. Its key and value are slices of a chunk with many records. */
  shift(): RecordContent {
    const chunk = this.#head
    const start = this.#readAt
    const key = start + frameBytes
    const value = key + chunk.readUInt32LE(start + 8)
    const headers = value + chunk.readUInt32LE(start + 12)
    this.#readAt = headers + chunk.readUInt32LE(start + 16)
    this.#length--
    return {
      key: chunk.subarray(key, value),
      value: chunk.subarray(value, headers),
      headers: readHeaders(chunk.toString('utf8', headers, this.#readAt)),
    }
  }

  /** The chunk that contains the first record. */
  get #head(): Buffer {
    const [first, second] = this.#chunks
    if (first !== undefined && (second === undefined || this.#readAt < endOf(first))) return first
    if (second === undefined) throw new Error('the queue is empty')
    this.#chunks.shift()
    this.#readAt = 0
    return second
  }

  #room(bytes: number): Buffer {
    const last = this.#chunks.at(-1)
    if (last !== undefined && this.#writeAt + bytes <= last.length - endBytes) return last
    if (last !== undefined) last.writeUInt32LE(this.#writeAt, last.length - endBytes)
    const chunk = Buffer.allocUnsafeSlow(Math.max(chunkBytes, bytes + endBytes))
    this.#chunks.push(chunk)
    this.#writeAt = 0
    return chunk
  }
}

/** The number of bytes at the end of a full chunk that contain the position where its records end. */
const endBytes = 4

function endOf(chunk: Buffer): number {
  return chunk.readUInt32LE(chunk.length - endBytes)
}

function readHeaders(text: string): Record<string, string> {
  const headers: Record<string, string> = JSON.parse(text)
  return headers
}
