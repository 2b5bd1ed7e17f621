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

/**
 * The values of a record's headers, by the header's name. If several headers have the same name, the value is
 * a list.
 */
export type RecordHeaders = Record<string, Buffer | null | (Buffer | null)[]>

/**
 * A record as it was fetched. Key, value and headers are slices of the answer to a fetch. If you keep them,
 * copy them, because a slice keeps the whole answer in memory.
 */
export type FetchedRecord = {
  readonly offset: number
  /** Within the years 1 to 9999, whatever the producer wrote (`timeWithin`). */
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** Records of a batch whose headers are the same bytes share this object. */
  readonly headers: Readonly<RecordHeaders>
  /** The epoch of the leader that appended the record. -1 if it isn't known. */
  readonly leaderEpoch: number
  /**
   * True for a transaction marker. Also true for the empty record that `readRecordSet` adds to the end of a
   * batch if compaction has removed the batch's last records. Neither kind of record is delivered.
   */
  readonly isControlRecord: boolean
  /**
   * The producer of the record's batch, and whether the batch is part of a transaction. These facts show
   * which records belong to aborted transactions.
   */
  readonly batchContext: { readonly producerId: string; readonly inTransaction: boolean }
  /**
   * The reason why the content can't be read. A record with a reason takes the place of all further records
   * of its batch.
   */
  readonly unreadable?: string
}

/** The records that a fetch brought for one partition. */
export type RecordSet = {
  readonly records: FetchedRecord[]
  /** The leader epoch of each batch that was read, with the offset from which it applies, ascending. */
  readonly epochs: readonly { readonly from: number; readonly leaderEpoch: number }[]
  /** The offset after the last batch that was read. -1 if no batch was read. */
  readonly nextOffset: number
  readonly sizes: BatchSizes
  /**
   * A description of the damage, if reading ended before a damaged batch. This batch begins at `nextOffset`.
   * If no batch was read, the first batch is damaged.
   */
  readonly damage: string | undefined
}

/** The sizes of the batches that a fetch brought for one partition, in bytes. */
export type BatchSizes = {
  /** The number of batches that were read, their bytes together, and those of the largest. */
  readonly batches: number
  readonly bytes: number
  readonly largest: number
  /**
   * The size of the batch that the broker cut off at the end. 0 if no batch was cut off, or if its size was
   * cut off too.
   */
  readonly cut: number
}

export type ReadRecordSetOptions = {
  /**
   * True if a damaged batch becomes one record that reports the damage, at the batch's last offset. False if
   * reading ends before the batch.
   */
  readonly passDamaged: boolean
  /**
   * The offset at which the log ends. A damaged batch is assumed to end before this offset, because the last
   * offset in the batch's own header can't be trusted.
   */
  readonly end: number
}

/**
 * The memory that the records of a batch may take: this many times the size of the batch, or
 * `minAllowanceBytes` if that is more. Compressed messages never need more. So a batch that needs more comes
 * from an attack or an accident.
 */
const maxExpansion = 64
const minAllowanceBytes = 64 * 1024 ** 2
/**
 * The memory that the records of one fetch of a partition may take, in bytes. Once they take this much,
 * further batches aren't read, and the next fetch brings them again.
 */
const maxFetchBytes = 8 * 1024 ** 2
/** The estimated memory of the objects for a record, in bytes. */
const recordBytes = 256
/** The estimated memory of the objects for a header of a record, in bytes. */
const recordHeaderBytes = 128
/**
 * The maximum number of headers that are read from a record. Further headers are skipped, because nobody
 * sends so many on purpose.
 */
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
  readonly leaderEpoch: number
  readonly context: FetchedRecord['batchContext']
}

/** Returns true if a batch has the present format. Batches from before Kafka 0.11 have another format. */
function isRecordBatch(bytes: Buffer): boolean {
  return bytes[magicAt] === 2
}

/**
 * Reads the record batches that a fetch brought for a partition. Checks the checksum of each batch, because a
 * disk may return other bytes than the bytes that were written. A batch with a correct checksum may still be
 * unreadable, because its content is garbage or takes too much memory. The unreadable records of a batch then
 * become one record with a reason, at the last offset of the batch. If such a batch crashed a worker, it
 * would also crash each further worker that becomes the owner of the partition.
 *
 * Skips an incomplete batch at the end. Never rejects.
 */
export async function readRecordSet(
  bytes: Buffer,
  { passDamaged, end }: ReadRecordSetOptions,
): Promise<RecordSet> {
  const records: FetchedRecord[] = []
  const epochs: { from: number; leaderEpoch: number }[] = []
  let nextOffset = -1
  let largest = 0
  let batches = 0
  let spentBytes = 0
  let damage: string | undefined
  let start = 0
  while (start + recordsAt <= bytes.length && spentBytes < maxFetchBytes) {
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
    batches++
    largest = Math.max(largest, batch.length)
    start += batch.length
  }
  // A broker always sends the whole first batch, even if it is very large.
  if (nextOffset < 0 && bytes.length > 0) damage ??= 'its length is wrong'
  const sizes = { batches, bytes: start, largest, cut: cutBytesAt(bytes, start) }
  return { records, epochs, nextOffset, sizes, damage }
}

/** Returns the size of the batch at `start` if the bytes end before the batch, and 0 if not. */
function cutBytesAt(bytes: Buffer, start: number): number {
  if (start + afterLength > bytes.length) return 0
  const size = afterLength + bytes.readInt32BE(start + lengthAt)
  return size >= recordsAt && start + size > bytes.length ? size : 0
}

/** Returns the batch at `start`. Returns `undefined` if the batch isn't complete. */
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
 * Returns the last offset of a damaged batch. The batch's own field for this offset isn't trusted, because it
 * may be damaged too. If another batch follows, the damaged batch ends where that batch begins. Otherwise it
 * ends at the end of the log at the latest.
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

/** Reads the records of a batch. Returns the memory that they take, in bytes. */
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
    // If offsets are left over, compaction has removed the last records of the batch.
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
    leaderEpoch: batch.readInt32BE(leaderEpochAt),
    context: {
      producerId: String(batch.readBigInt64BE(producerIdAt)),
      inTransaction: (attributes & transactionFlag) !== 0,
    },
  }
}

/**
 * Reads an integer of eight bytes. The result is exact up to 2^53. Offsets and milliseconds stay far below
 * this number.
 */
function readInt64(bytes: Buffer, at: number): number {
  return bytes.readInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4)
}

/** The first and the last millisecond of the years that ISO 8601 writes with four digits: 1 to 9999. */
const earliestMs = -62_135_596_800_000
const latestMs = 253_402_300_799_999

/**
 * Returns the nearest time in the years 1 to 9999. In a topic that has the times of its producers, a record
 * may have any 64-bit number as its time. Most of these are no time for `Date`, and too large for an exact
 * number.
 */
function timeWithin(ms: number): number {
  return ms < earliestMs ? earliestMs : ms > latestMs ? latestMs : ms
}

/** Makes a record without content, at the last offset of a batch. */
function emptyRecord(head: BatchHead): FetchedRecord {
  return {
    offset: head.lastOffset,
    timestampMs: timeWithin(head.maxTimestampMs),
    key: null,
    value: null,
    headers: {},
    leaderEpoch: head.leaderEpoch,
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
 * Reads the records of one batch. Throws if the batch is damaged. Throws with the code `tooLongCode` if the
 * records take too much memory.
 */
class BatchReader {
  readonly #head: BatchHead
  readonly #allowedBytes: number
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #end = 0
  /** The headers of the last record, and the place of their bytes. */
  #headers: RecordHeaders = {}
  #headersAt = 0
  #headersEnd = -1
  /** The offset before which all records were read. */
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
    const { baseOffset, lastOffset, firstTimestampMs, maxTimestampMs, isAppendTime } = this.#head
    const { leaderEpoch, isControl, context } = this.#head
    // The attributes of the record. Kafka doesn't use this field.
    this.#byte()
    const timestampMs = firstTimestampMs + this.#varint()
    const offset = baseOffset + this.#varint()
    if (offset < this.nextOffset || offset > lastOffset) throw new RangeError(`the offset ${offset}`)
    const key = this.#data()
    const value = this.#data()
    const headers = this.#headersUntil(end)
    this.#at = end
    this.nextOffset = offset + 1
    return {
      offset,
      timestampMs: timeWithin(isAppendTime ? maxTimestampMs : timestampMs),
      key,
      value,
      headers,
      leaderEpoch,
      isControlRecord: isControl,
      batchContext: context,
    }
  }

  /**
   * Returns the headers of a record that ends at `end`. Most records have the same headers as the record
   * before, such as `source-id`, and share its object.
   */
  #headersUntil(end: number): RecordHeaders {
    const start = this.#at
    if (!this.#isSpelledAsBefore(start, end)) {
      this.#headers = this.#newHeaders()
      this.#headersAt = start
      this.#headersEnd = end
    }
    return this.#headers
  }

  #isSpelledAsBefore(start: number, end: number): boolean {
    const bytes = this.#bytes
    const before = this.#headersAt
    if (end - start !== this.#headersEnd - before) return false
    for (let at = start, other = before; at < end; at++, other++) if (bytes[at] !== bytes[other]) return false
    return true
  }

  #newHeaders(): RecordHeaders {
    const headers: RecordHeaders = {}
    const count = Math.min(this.#varint(), maxRecordHeaders)
    if (count > 0) this.#spend(count * recordHeaderBytes)
    for (let left = count; left > 0; left--) {
      const name = this.#data()?.toString() ?? ''
      const value = this.#data()
      // Assigning this name would set the prototype. No meaningful header has this name.
      if (name === '__proto__') continue
      const before = Object.hasOwn(headers, name) ? headers[name] : undefined
      if (before === undefined) headers[name] = value
      else if (Array.isArray(before)) before.push(value)
      else headers[name] = [before, value]
    }
    return headers
  }

  /** Reads a length, and then this number of bytes. The length -1 stands for null. */
  #data(): Buffer | null {
    const length = this.#varint()
    if (length === -1) return null
    const end = this.#at + length
    if (!(length >= 0) || end > this.#end) throw new RangeError(`a field of ${length} bytes`)
    const data = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return data
  }

  /**
   * Reads a zigzag integer of any length. A value beyond 2^53 can only be garbage, so it needn't be exact.
   */
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
