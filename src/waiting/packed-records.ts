import type { HeaderValue, ReceivedHeaders } from '../message/record-headers.ts'
import type { WholeRecord } from '../message/records.ts'

/** The size of a segment, in bytes. A larger record has a buffer of its own. */
const segmentBytes = 32 * 1024
/** The most segments that are kept for later. */
const mostFree = 256
/** The estimated memory of a record beside its bytes: its place in four lists. */
const recordBytes = 40

/** The length that stands for the value null. */
const nullLength = -1
const noBytes = Buffer.alloc(0)

/**
 * Buffers of one size, which are used again and again. V8 counts the bytes of buffers, and marks all of its
 * heap when 64 MiB of them have been made and outlived their youth.
 */
export class Segments {
  readonly #free: Buffer[] = []

  /** The bytes that wait for their next use. */
  get freeBytes(): number {
    return this.#free.length * segmentBytes
  }

  take(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(segmentBytes)
  }

  giveBack(segments: readonly Buffer[]): void {
    this.#free.push(...segments.slice(0, mostFree - this.#free.length))
  }
}

/**
 * Records of a log, in a few buffers. As objects they would outlive their youth, and V8 would mark its whole
 * heap every few seconds to find those that are garbage.
 */
export class PackedRecords {
  readonly #segments: Segments
  readonly #taken: Buffer[] = []
  /** The names of headers. Most records have the same ones. */
  readonly #names: string[] = []
  readonly #numbers = new Map<string, number>()
  /** Of each record: its offset, its time, and its place in one of the buffers. */
  readonly #offsets: number[] = []
  readonly #timesMs: number[] = []
  readonly #buffers: Buffer[] = []
  readonly #places: number[] = []
  readonly #unreadable = new Map<number, WholeRecord>()
  #at = segmentBytes
  #bytes = 0
  #contentBytes = 0

  constructor(records: readonly WholeRecord[], segments: Segments) {
    this.#segments = segments
    for (const record of records) this.#add(record)
  }

  get count(): number {
    return this.#offsets.length
  }

  /** The bytes of their keys, values and headers. */
  get contentBytes(): number {
    return this.#contentBytes
  }

  /** The memory that they take, in bytes. */
  get bytes(): number {
    return this.#bytes + this.#taken.length * segmentBytes
  }

  /** The offset and the time of each record, in the order of the offsets. */
  *times(): Generator<Pick<WholeRecord, 'offset' | 'timestampMs'>> {
    for (const [index, offset] of this.#offsets.entries())
      yield { offset, timestampMs: this.#timesMs[index] ?? 0 }
  }

  /** Returns the place of the record at an offset among all of them, from 0. -1: there is none. */
  placeOf(offset: number): number {
    let [low, high] = [0, this.#offsets.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#offsets[middle] ?? Infinity) < offset) low = middle + 1
      else high = middle
    }
    return this.#offsets[low] === offset ? low : -1
  }

  /** Returns a copy of the record at a place. Key and value share no memory with other records. */
  read(place: number): WholeRecord | undefined {
    const offset = this.#offsets[place]
    const buffer = this.#buffers[place]
    if (offset === undefined || buffer === undefined) return undefined
    const unreadable = this.#unreadable.get(offset)
    return unreadable ?? this.#read(offset, this.#timesMs[place] ?? 0, buffer, this.#places[place] ?? 0)
  }

  /** Gives their memory back. Call nothing else afterwards. */
  release(): void {
    this.#segments.giveBack(this.#taken)
    this.#taken.length = 0
    this.#offsets.length = 0
  }

  #add(record: WholeRecord): void {
    const { offset, timestampMs, leaderEpoch = -1, key, value, headers, unreadable } = record
    this.#offsets.push(offset)
    this.#timesMs.push(timestampMs)
    this.#bytes += recordBytes
    if (unreadable !== undefined) {
      this.#unreadable.set(offset, record)
      this.#buffers.push(noBytes)
      this.#places.push(0)
      return
    }
    const bytes = 16 + lengthOf(key) + lengthOf(value) + headersBytes(headers)
    this.#contentBytes += bytes
    const buffer = this.#roomFor(bytes)
    this.#buffers.push(buffer)
    this.#places.push(this.#at)
    const place = this.#at
    buffer.writeInt32LE(leaderEpoch, place)
    const keyEnd = write(buffer, key, place + 8)
    this.#at = write(buffer, value, keyEnd)
    let count = 0
    for (const name in headers) {
      const of = headers[name]
      if (of === undefined) continue
      if (!Array.isArray(of)) {
        this.#addHeader(buffer, name, of)
        count++
        continue
      }
      for (const one of of) this.#addHeader(buffer, name, one)
      count += of.length
    }
    buffer.writeInt32LE(count, place + 4)
  }

  #addHeader(buffer: Buffer, name: string, value: HeaderValue): void {
    const valueAt = buffer.writeInt32LE(this.#numberOf(name), this.#at)
    this.#at = write(buffer, typeof value === 'string' ? Buffer.from(value) : value, valueAt)
  }

  /** Returns a buffer that has room for a record at `#at`. */
  #roomFor(bytes: number): Buffer {
    const last = this.#taken.at(-1)
    if (last !== undefined && this.#at + bytes <= segmentBytes) return last
    this.#at = 0
    if (bytes <= segmentBytes) {
      const segment = this.#segments.take()
      this.#taken.push(segment)
      return segment
    }
    this.#bytes += bytes
    return Buffer.allocUnsafeSlow(bytes)
  }

  #numberOf(name: string): number {
    let number = this.#numbers.get(name)
    if (number === undefined) {
      number = this.#names.push(name) - 1
      this.#numbers.set(name, number)
      this.#bytes += 2 * name.length
    }
    return number
  }

  #read(offset: number, timestampMs: number, buffer: Buffer, place: number): WholeRecord {
    const leaderEpoch = buffer.readInt32LE(place)
    const count = buffer.readInt32LE(place + 4)
    const keyLength = buffer.readInt32LE(place + 8)
    const keyAt = place + 12
    const valueLength = buffer.readInt32LE(keyAt + Math.max(0, keyLength))
    const valueAt = keyAt + Math.max(0, keyLength) + 4
    // A delivery keeps both for long. A small buffer that shares its memory with others would keep these too.
    const own = Buffer.allocUnsafeSlow(Math.max(0, keyLength) + Math.max(0, valueLength))
    const key = copy(buffer, keyAt, keyLength, own.subarray(0, Math.max(0, keyLength)))
    const value = copy(buffer, valueAt, valueLength, own.subarray(Math.max(0, keyLength)))
    const headers = this.#readHeaders(buffer, valueAt + Math.max(0, valueLength), count)
    return { offset, timestampMs, leaderEpoch, key, value, headers }
  }

  #readHeaders(buffer: Buffer, place: number, count: number): NonNullable<ReceivedHeaders> {
    const headers: Record<string, HeaderValue | HeaderValue[]> = {}
    let at = place
    for (let left = count; left > 0; left--) {
      const name = this.#names[buffer.readInt32LE(at)] ?? ''
      const length = buffer.readInt32LE(at + 4)
      at += 8
      const value = length === nullLength ? null : Buffer.from(buffer.subarray(at, at + length))
      at += Math.max(0, length)
      const before = Object.hasOwn(headers, name) ? headers[name] : undefined
      if (before === undefined) headers[name] = value
      else if (Array.isArray(before)) before.push(value)
      else headers[name] = [before, value]
    }
    return headers
  }
}

/** Returns the bytes of all headers. */
function headersBytes(headers: NonNullable<ReceivedHeaders>): number {
  let bytes = 0
  for (const name in headers) {
    const of = headers[name]
    if (Array.isArray(of)) for (const one of of) bytes += 8 + lengthOf(one)
    else if (of !== undefined) bytes += 8 + lengthOf(of)
  }
  return bytes
}

function lengthOf(value: HeaderValue): number {
  return value === null ? 0 : typeof value === 'string' ? Buffer.byteLength(value) : value.length
}

function write(buffer: Buffer, value: Buffer | null, at: number): number {
  buffer.writeInt32LE(value === null ? nullLength : value.length, at)
  value?.copy(buffer, at + 4)
  return at + 4 + lengthOf(value)
}

function copy(from: Buffer, at: number, length: number, to: Buffer): Buffer | null {
  if (length === nullLength) return null
  from.copy(to, 0, at, at + length)
  return to
}
