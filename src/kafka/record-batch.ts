import {
  afterLength,
  attributesAt,
  checksumAt,
  countAt,
  firstTimestampAt,
  lastOffsetDeltaAt,
  leaderEpochAt,
  lengthAt,
  magicAt,
  maxTimestampAt,
  producerIdAt,
  recordsAt,
} from './batch-layout.ts'
import { decompress, tooLongCode } from './codecs.ts'
import { crc32c } from './crc32c.ts'

/** Values as they came; a list where a header is repeated. */
export type RecordHeaders = Record<string, Buffer | null | (Buffer | null)[]>

/** Key, value and headers are slices of a whole fetch: copy what is kept. */
export type FetchedRecord = {
  readonly offset: number
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: RecordHeaders
  /** A marker of a transaction, or a place that compaction has left empty: nothing to be given on. */
  readonly isControlRecord: boolean
  /** By it one knows what belongs to aborted transactions. */
  readonly batchContext: { readonly producerId: string; readonly inTransaction: boolean }
  /** Why its content can't be read. Such a record stands for all of its batch that are not before it. */
  readonly unreadable?: string
}

/** What a fetch brought of a partition. */
export type RecordSet = {
  readonly records: FetchedRecord[]
  /**
   * From which offset on the log is of which leader's epoch, ascending: told for each batch that was read.
   */
  readonly epochs: readonly { readonly from: number; readonly leaderEpoch: number }[]
  /** One past the last batch that was read; -1 where none was. */
  readonly nextOffset: number
  /**
   * Why nothing was read from `nextOffset` on, or from the beginning: the batch there isn't what was written.
   */
  readonly damage: string | undefined
}

export type ReadRecordSetOptions = {
  /** A damaged batch is one record that says so, at its last offset; else reading ends before it. */
  readonly passDamaged: boolean
  /** One past the last offset of the log: a damaged batch may say anything of where it ends. */
  readonly end: number
}

/**
 * What a batch may cost in memory once it is read: as many times its size, and in any case this much. More
 * than that is no compression of messages, but an attack or an accident.
 */
const maxExpansion = 64
const minAllowanceBytes = 64 * 1024 ** 2
/** Once a fetch of a partition costs so much, its further batches are left for the next one. */
const maxFetchBytes = 8 * 1024 ** 2
/** What a record, and a header, take as objects. */
const recordBytes = 256
const recordHeaderBytes = 128
/** Further headers of a record are passed over: nobody means so many. */
export const maxRecordHeaders = 1_000

const codecMask = 0x07
const appendTimeFlag = 0x08
const transactionFlag = 0x10
const controlFlag = 0x20

type BatchHead = {
  readonly baseOffset: number
  readonly lastOffset: number
  readonly codec: number
  readonly count: number
  readonly firstTimestampMs: number
  readonly maxTimestampMs: number
  readonly isAppendTime: boolean
  readonly isControl: boolean
  readonly context: FetchedRecord['batchContext']
}

/** What was written before Kafka 0.11 has another form. */
function isRecordBatch(bytes: Buffer): boolean {
  return bytes[magicAt] === 2
}

/**
 * Reads the record batches that a fetch brought for a partition. The checksum of each is looked at, since a
 * disk may give other bytes than it was given. A batch that is what was written and still can't be read (it
 * costs too much memory, its content is garbage) becomes one record that says so, at its last offset: no
 * batch brings a worker down, and with it each one that the partition goes to.
 *
 * Of an incomplete batch at the end nothing is read. Never rejects.
 */
export async function readRecordSet(
  bytes: Buffer,
  { passDamaged, end }: ReadRecordSetOptions,
): Promise<RecordSet> {
  const records: FetchedRecord[] = []
  const epochs: { from: number; leaderEpoch: number }[] = []
  let nextOffset = -1
  let spentBytes = 0
  let damage: string | undefined
  for (let start = 0; start + recordsAt <= bytes.length && spentBytes < maxFetchBytes;) {
    const batch = batchAt(bytes, start)
    if (batch === undefined) break
    damage = damageOf(batch)
    if (damage !== undefined && (!passDamaged || nextOffset >= 0)) break
    if (damage === undefined) {
      epochs.push({ from: readInt64(batch, 0), leaderEpoch: batch.readInt32BE(leaderEpochAt) })
      spentBytes += await readBatch(batch, records)
      nextOffset = lastOffsetOf(batch) + 1
    } else {
      const lastOffset = lastOffsetOfDamaged(batch, bytes, start + batch.length, end)
      records.push(damagedRecord(batch, lastOffset, damage))
      nextOffset = lastOffset + 1
      damage = undefined
    }
    start += batch.length
  }
  // A broker gives at least the first batch as a whole, however large it is.
  if (nextOffset < 0 && bytes.length > 0) damage ??= 'its length is wrong'
  return { records, epochs, nextOffset, damage }
}

/** `undefined` where it isn't whole. */
function batchAt(bytes: Buffer, start: number): Buffer | undefined {
  const end = start + afterLength + bytes.readInt32BE(start + lengthAt)
  return end > bytes.length || end < start + recordsAt ? undefined : bytes.subarray(start, end)
}

function damageOf(batch: Buffer): string | undefined {
  if (!isRecordBatch(batch)) return `its format is ${batch[magicAt]}`
  const [written, found] = [batch.readUInt32BE(checksumAt), crc32c(batch, attributesAt, batch.length)]
  return written === found
    ? undefined
    : `its checksum is ${hexOf(written)}, and its content has ${hexOf(found)}`
}

function hexOf(checksum: number): string {
  return checksum.toString(16).padStart(8, '0')
}

function lastOffsetOf(batch: Buffer): number {
  return readInt64(batch, 0) + Math.max(0, batch.readInt32BE(lastOffsetDeltaAt))
}

/**
 * What it says itself may be damaged too: it ends where the batch behind it begins, and not behind the end of
 * the log.
 */
function lastOffsetOfDamaged(batch: Buffer, bytes: Buffer, next: number, end: number): number {
  const first = readInt64(batch, 0)
  if (next + lengthAt <= bytes.length) return Math.max(first, readInt64(bytes, next) - 1)
  return isRecordBatch(batch) ? Math.max(first, Math.min(lastOffsetOf(batch), end - 1)) : first
}

function damagedRecord(batch: Buffer, lastOffset: number, damage: string): FetchedRecord {
  const unreadable = `offsets ${readInt64(batch, 0)} to ${lastOffset} of the partition can't be read: their batch is damaged at the broker (${damage})`
  return { ...emptyRecord(readHead(batch)), offset: lastOffset, isControlRecord: false, unreadable }
}

/** Gives what its records cost in memory, in bytes. */
async function readBatch(batch: Buffer, into: FetchedRecord[]): Promise<number> {
  const head = readHead(batch)
  const allowedBytes = Math.max(minAllowanceBytes, batch.length * maxExpansion)
  const reader = new BatchReader(head, allowedBytes)
  try {
    if (head.count < 0) throw new RangeError(`${head.count} records`)
    if (head.count * recordBytes > allowedBytes) throw tooLong()
    const compressed = batch.subarray(recordsAt)
    const content = head.codec === 0 ? compressed : await decompress(head.codec, compressed, allowedBytes)
    reader.read(content, into)
    // The last ones were compacted away.
    if (reader.nextOffset <= head.lastOffset) into.push({ ...emptyRecord(head), isControlRecord: true })
  } catch (error) {
    const why = whyOf(error, allowedBytes)
    const unreadable = `offsets ${reader.nextOffset} to ${head.lastOffset} of the partition can't be read: ${why}`
    if (reader.nextOffset <= head.lastOffset) into.push({ ...emptyRecord(head), unreadable })
  }
  return reader.spentBytes
}

function readHead(batch: Buffer): BatchHead {
  const attributes = batch.readInt16BE(attributesAt)
  return {
    baseOffset: readInt64(batch, 0),
    lastOffset: lastOffsetOf(batch),
    codec: attributes & codecMask,
    count: batch.readInt32BE(countAt),
    firstTimestampMs: readInt64(batch, firstTimestampAt),
    maxTimestampMs: readInt64(batch, maxTimestampAt),
    isAppendTime: (attributes & appendTimeFlag) !== 0,
    isControl: (attributes & controlFlag) !== 0,
    context: {
      producerId: String(batch.readBigInt64BE(producerIdAt)),
      inTransaction: (attributes & transactionFlag) !== 0,
    },
  }
}

/** Exact up to 2^53: offsets and milliseconds stay far below. */
function readInt64(bytes: Buffer, at: number): number {
  return bytes.readInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4)
}

/** In the place of the last of a batch. */
function emptyRecord(head: BatchHead): FetchedRecord {
  return {
    offset: head.lastOffset,
    timestampMs: head.maxTimestampMs,
    key: null,
    value: null,
    headers: {},
    isControlRecord: head.isControl,
    batchContext: head.context,
  }
}

function tooLong(): Error {
  return Object.assign(new RangeError('it costs too much memory'), { code: tooLongCode })
}

function whyOf(error: unknown, allowedBytes: number): string {
  const isTooLong = error instanceof Error && 'code' in error && error.code === tooLongCode
  if (isTooLong) return `their batch takes more than ${allowedBytes} bytes of memory; send smaller batches`
  return `their batch is damaged (${error instanceof Error ? error.message : String(error)})`
}

/**
 * Reads the records of one batch. Throws at what is damaged, and, with the code `tooLongCode`, at what costs
 * too much.
 */
class BatchReader {
  readonly #head: BatchHead
  readonly #allowedBytes: number
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #end = 0
  /** Records before it were read. */
  nextOffset: number
  spentBytes = 0

  constructor(head: BatchHead, allowedBytes: number) {
    this.#head = head
    this.#allowedBytes = allowedBytes
    this.nextOffset = head.baseOffset
  }

  read(content: Buffer, into: FetchedRecord[]): void {
    this.#bytes = content
    this.#spend(content.length)
    for (let left = this.#head.count; left > 0; left--) into.push(this.#record())
  }

  #spend(bytes: number): void {
    this.spentBytes += bytes
    if (this.spentBytes > this.#allowedBytes) throw tooLong()
  }

  #record(): FetchedRecord {
    this.#end = this.#bytes.length
    this.#spend(recordBytes)
    const length = this.#varint()
    const end = this.#at + length
    if (!(length > 0) || end > this.#end) throw new RangeError(`a record of ${length} bytes`)
    this.#end = end
    const { baseOffset, lastOffset, firstTimestampMs, maxTimestampMs, isAppendTime, isControl, context } =
      this.#head
    // Attributes, of which there are none.
    this.#byte()
    const timestampMs = firstTimestampMs + this.#varint()
    const offset = baseOffset + this.#varint()
    if (offset < this.nextOffset || offset > lastOffset) throw new RangeError(`the offset ${offset}`)
    const key = this.#data()
    const value = this.#data()
    const headers = this.#headers()
    this.#at = end
    this.nextOffset = offset + 1
    return {
      offset,
      timestampMs: isAppendTime ? maxTimestampMs : timestampMs,
      key,
      value,
      headers,
      isControlRecord: isControl,
      batchContext: context,
    }
  }

  #headers(): RecordHeaders {
    const headers: RecordHeaders = {}
    const count = Math.min(this.#varint(), maxRecordHeaders)
    if (count > 0) this.#spend(count * recordHeaderBytes)
    for (let left = count; left > 0; left--) {
      const name = this.#data()?.toString() ?? ''
      const value = this.#data()
      // To assign it would set the prototype; no header that means something has this name.
      if (name === '__proto__') continue
      const before = Object.hasOwn(headers, name) ? headers[name] : undefined
      if (before === undefined) headers[name] = value
      else if (Array.isArray(before)) before.push(value)
      else headers[name] = [before, value]
    }
    return headers
  }

  /** Bytes behind their length; -1 is null. */
  #data(): Buffer | null {
    const length = this.#varint()
    if (length === -1) return null
    const end = this.#at + length
    if (!(length >= 0) || end > this.#end) throw new RangeError(`a field of ${length} bytes`)
    const data = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return data
  }

  /** Zigzag, of any length: what is past 2^53 is garbage and needn't be exact. */
  #varint(): number {
    let value = 0
    let scale = 1
    let byte
    do {
      byte = this.#byte()
      value += (byte & 0x7f) * scale
      scale *= 128
    } while (byte >= 0x80 && scale < 2 ** 70)
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  #byte(): number {
    const byte = this.#at < this.#end ? this.#bytes[this.#at] : undefined
    if (byte === undefined) throw new RangeError('it ends too soon')
    this.#at++
    return byte
  }
}
