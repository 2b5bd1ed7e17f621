import { afterLength, attributesAt, checksumAt, recordsAt } from './batch-layout.ts'
import { ByteReader } from './bytes.ts'
import { crc32c } from './crc32c.ts'
import type { WireRequest } from './wire-request.ts'
import type { HeaderValue } from '../../message/record-headers.ts'
import type { WrittenRecord } from '../../message/records.ts'

export type ProducedPartition = {
  readonly partition: number
  readonly messages: readonly WrittenRecord[]
  /** The sequence number of the first record, if the producer is idempotent. Default: 0. */
  readonly firstSequence?: number
}

export type ProducedTopic = { readonly topic: string; readonly partitions: readonly ProducedPartition[] }

/**
 * A broker's answer to a produce request, partition by partition. If `errorCode` is 0, the records were
 * written from `baseOffset` on.
 */
export type ProduceAnswer = {
  readonly clientSideThrottleTime: number
  readonly topics: readonly {
    readonly topicName: string
    readonly partitions: readonly {
      readonly partition: number
      readonly errorCode: number
      readonly baseOffset: number
      /**
       * The broker's time of the append, in epoch milliseconds. -1 if the topic keeps the times of producers.
       */
      readonly appendedMs: number
    }[]
  }[]
}

export type ProduceRequest = {
  readonly acks: number
  readonly timeoutMs: number
  readonly topicData: readonly ProducedTopic[]
  /** The producer's id. -1n if the producer isn't idempotent. */
  readonly producerId: bigint
  readonly producerEpoch: number
  /** The id of the transaction of which the records are a part. Absent if there is no transaction. */
  readonly transactionalId?: string
  /** The time of the records that have no time of their own, in epoch milliseconds. */
  readonly timestampMs: number
}

/**
 * Builds a request that isn't idempotent. The broker acknowledges the records when all in-sync replicas have
 * them. The broker waits for the replicas no longer than `timeoutMs`.
 */
export function produceRequest(
  topicData: readonly ProducedTopic[],
  timeoutMs: number,
): WireRequest<ProduceAnswer> {
  return {
    apiKey: 0,
    apiName: 'Produce',
    lowest: 3,
    highest: 7,
    write: () => writeRecordsNow(topicData, timeoutMs, acksOfAll),
    read: readProduceAnswer,
  }
}

/** The bit of a batch's attributes that says that the batch is a part of a transaction. */
const inTransaction = 0x10

/** The value of `acks` with which the broker answers when all in-sync replicas have the records. */
const acksOfAll = -1

/**
 * Writes the body of a produce request that isn't idempotent. Records without a time of their own have the
 * present time.
 */
export function writeRecordsNow(
  topicData: readonly ProducedTopic[],
  timeoutMs: number,
  acks: number,
): Buffer {
  return writeProduceRequest({
    acks,
    timeoutMs,
    topicData,
    producerId: -1n,
    producerEpoch: 0,
    timestampMs: Date.now(),
  })
}

function readProduceAnswer(body: Buffer, version: number): ProduceAnswer {
  const reader = new ByteReader(body)
  const topics = reader.array(() => ({
    topicName: reader.string(),
    partitions: reader.array(() => {
      const partition = reader.int32()
      const errorCode = reader.int16()
      const baseOffset = reader.int64()
      const appendedMs = reader.int64()
      // The start of the log, which is skipped.
      if (version >= 5) reader.int64()
      return { partition, errorCode, baseOffset, appendedMs }
    }),
  }))
  const throttleMs = reader.int32()
  // In versions before 6, the broker itself waits for the throttle time before it answers.
  return { clientSideThrottleTime: version >= 6 ? throttleMs : 0, topics }
}

/**
 * Writes the body of a produce request, versions 3 to 7 of the Kafka protocol, with uncompressed record
 * batches (magic 2). kafkajs would write the same bytes, but takes ten times as long. For each record and
 * each header, it makes an encoder with a buffer, and it copies each byte five times. This function first
 * measures all records, and then writes each byte once.
 */
export function writeProduceRequest(request: ProduceRequest): Buffer {
  const { acks, timeoutMs, topicData, timestampMs, transactionalId } = request
  const sizes = new Sizes()
  const batchBytes: number[] = []
  const idBytes = bytesOf(transactionalId)
  let length = 2 + Math.max(0, idBytes) + 2 + 4 + 4
  for (const { topic, partitions } of topicData) {
    length += 2 + Buffer.byteLength(topic) + 4
    for (const { messages } of partitions) {
      const bytes = recordsAt + sizes.measure(messages, timestampMs)
      batchBytes.push(bytes)
      length += 4 + 4 + bytes
    }
  }

  const out = new Writer(length, sizes)
  out.int16(idBytes)
  if (transactionalId !== undefined) out.text(transactionalId, idBytes)
  out.int16(acks)
  out.int32(timeoutMs)
  out.int32(topicData.length)
  let batch = 0
  for (const { topic, partitions } of topicData) {
    out.int16(Buffer.byteLength(topic))
    out.text(topic, Buffer.byteLength(topic))
    out.int32(partitions.length)
    for (const produced of partitions) {
      const bytes = batchBytes[batch++] ?? 0
      out.int32(produced.partition)
      out.int32(bytes)
      out.batch(produced, bytes, request)
    }
  }
  return out.finished()
}

/** The sizes of records and of their parts, in the order in which the writer needs them. */
class Sizes {
  readonly #found: number[] = []
  #next = 0
  #lastHeaders: WrittenRecord['headers']
  #lastHeadersBytes = headersBytes(undefined)

  /** Returns the number of bytes of a batch's records. `nowMs` is the time of records that have none. */
  measure(records: readonly WrittenRecord[], nowMs: number): number {
    const firstMs = records[0]?.timestampMs ?? nowMs
    let sum = 0
    let offsetDelta = 0
    for (const { key, value, headers, timestampMs = nowMs } of records) {
      const keyBytes = bytesOf(key)
      const valueBytes = bytesOf(value)
      const body =
        1 + // the attributes
        varlongBytes(timestampMs - firstMs) +
        varintBytes(offsetDelta++) +
        dataBytes(keyBytes) +
        dataBytes(valueBytes) +
        this.#headersBytes(headers)
      this.#found.push(body, keyBytes, valueBytes)
      sum += varintBytes(body) + body
    }
    return sum
  }

  take(): number {
    return this.#found[this.#next++] ?? 0
  }

  /**
   * Returns the number of bytes of a record's headers. Consecutive records often share one headers object,
   * which is then measured only once.
   */
  #headersBytes(headers: WrittenRecord['headers']): number {
    if (headers !== this.#lastHeaders) {
      this.#lastHeaders = headers
      this.#lastHeadersBytes = headersBytes(headers)
    }
    return this.#lastHeadersBytes
  }
}

class Writer {
  readonly #bytes: Buffer
  readonly #sizes: Sizes
  #at = 0
  /** The headers that were written last. Their bytes lie between `#headersStart` and `#headersEnd`. */
  #lastHeaders: WrittenRecord['headers']
  #headersStart = 0
  #headersEnd = 0

  constructor(length: number, sizes: Sizes) {
    this.#bytes = Buffer.allocUnsafe(length)
    this.#sizes = sizes
  }

  /**
   * Returns the bytes that were written. Throws if the measured length was wrong. Without this check, bytes
   * that weren't written could be sent to Kafka. Such bytes may be other data of this process.
   */
  finished(): Buffer {
    if (this.#at !== this.#bytes.length) {
      throw new Error(`a produce request of ${this.#bytes.length} bytes ended at ${this.#at}`)
    }
    return this.#bytes
  }

  int16(value: number): void {
    this.#at = this.#bytes.writeInt16BE(value, this.#at)
  }

  int32(value: number): void {
    this.#at = this.#bytes.writeInt32BE(value, this.#at)
  }

  text(value: string, bytes: number): void {
    this.#bytes.write(value, this.#at, bytes)
    this.#at += bytes
  }

  batch(
    { messages, firstSequence = 0 }: ProducedPartition,
    bytes: number,
    { producerId, producerEpoch, timestampMs, transactionalId }: ProduceRequest,
  ): void {
    const start = this.#at
    this.#int64(0n) // the broker sets the offset
    this.int32(bytes - afterLength)
    this.int32(0) // the leader's epoch, which isn't set (as in kafkajs)
    this.#int8(2)
    this.int32(0) // the checksum, which is written at the end
    this.int16(transactionalId === undefined ? 0 : inTransaction)
    this.int32(messages.length - 1)
    const firstMs = messages[0]?.timestampMs ?? timestampMs
    let lastMs = firstMs
    for (const one of messages) lastMs = Math.max(lastMs, one.timestampMs ?? timestampMs)
    this.#int64(BigInt(firstMs))
    this.#int64(BigInt(lastMs))
    this.#int64(producerId)
    this.int16(producerEpoch)
    this.int32(firstSequence)
    this.int32(messages.length)
    let offsetDelta = 0
    for (const record of messages)
      this.#record(record, (record.timestampMs ?? timestampMs) - firstMs, offsetDelta++)
    const checksum = crc32c(this.#bytes, start + attributesAt, this.#at)
    this.#bytes.writeUInt32BE(checksum, start + checksumAt)
  }

  #record({ key, value, headers }: WrittenRecord, timeDeltaMs: number, offsetDelta: number): void {
    this.#varint(this.#sizes.take())
    this.#int8(0)
    this.#varlong(timeDeltaMs)
    this.#varint(offsetDelta)
    this.#data(key, this.#sizes.take())
    this.#data(value, this.#sizes.take())
    this.#writeHeaders(headers)
  }

  /**
   * Writes headers. If the previous record has the same headers object, the bytes of its headers are copied.
   */
  #writeHeaders(headers: WrittenRecord['headers']): void {
    const start = this.#at
    if (this.#headersEnd > 0 && headers === this.#lastHeaders) {
      for (let from = this.#headersStart; from < this.#headersEnd; from++) {
        this.#bytes[this.#at++] = this.#bytes[from] ?? 0
      }
      return
    }
    this.#newHeaders(headers)
    this.#lastHeaders = headers
    this.#headersStart = start
    this.#headersEnd = this.#at
  }

  #newHeaders(headers: WrittenRecord['headers']): void {
    const names = headers === undefined ? [] : Object.keys(headers)
    let count = 0
    for (const name of names) count += countOf(headers?.[name])
    this.#varint(count)
    for (const name of names) {
      const given = headers?.[name]
      if (isList(given)) for (const one of given) this.#header(name, one)
      else this.#header(name, given)
    }
  }

  #header(name: string, value: HeaderValue | undefined): void {
    this.#data(name, Buffer.byteLength(name))
    this.#data(value, bytesOf(value))
  }

  #data(data: Buffer | string | null | undefined, bytes: number): void {
    this.#varint(bytes)
    if (typeof data === 'string') this.text(data, bytes)
    else if (data !== null && data !== undefined) this.#at += data.copy(this.#bytes, this.#at)
  }

  #int8(value: number): void {
    this.#at = this.#bytes.writeInt8(value, this.#at)
  }

  #int64(value: bigint): void {
    this.#at = this.#bytes.writeBigInt64BE(value, this.#at)
  }

  #varint(value: number): void {
    let left = zigzag(value)
    while (left >= 0x80) {
      this.#bytes[this.#at++] = (left & 0x7f) | 0x80
      left >>>= 7
    }
    this.#bytes[this.#at++] = left
  }

  /** Writes a difference of times. The times of a compacted topic may differ by years. */
  #varlong(value: number): void {
    let left = zigzagLong(value)
    for (; left >= 0x80; left = Math.floor(left / 0x80)) this.#bytes[this.#at++] = (left % 0x80) | 0x80
    this.#bytes[this.#at++] = left
  }
}

/** Returns the length in bytes. Returns -1 for `null` and `undefined`. */
function bytesOf(data: Buffer | string | null | undefined): number {
  if (typeof data === 'string') return Buffer.byteLength(data)
  return data?.length ?? -1
}

function dataBytes(bytes: number): number {
  return varintBytes(bytes) + Math.max(0, bytes)
}

/** Returns the bytes of a record's headers, with their number. */
export function headersBytes(headers: WrittenRecord['headers']): number {
  if (headers === undefined) return 1
  let count = 0
  let bytes = 0
  for (const name of Object.keys(headers)) {
    const nameBytes = dataBytes(Buffer.byteLength(name))
    const value = headers[name]
    if (isList(value)) {
      count += value.length
      for (const one of value) bytes += nameBytes + dataBytes(bytesOf(one))
    } else {
      count++
      bytes += nameBytes + dataBytes(bytesOf(value))
    }
  }
  return varintBytes(count) + bytes
}

function countOf(value: HeaderValue | readonly HeaderValue[] | undefined): number {
  return isList(value) ? value.length : 1
}

function isList(value: HeaderValue | readonly HeaderValue[] | undefined): value is readonly HeaderValue[] {
  return Array.isArray(value)
}

function zigzag(value: number): number {
  return ((value << 1) ^ (value >> 31)) >>> 0
}

function varintBytes(value: number): number {
  const bits = zigzag(value)
  if (bits < 0x80) return 1
  if (bits < 0x4000) return 2
  if (bits < 0x20_0000) return 3
  return bits < 0x1000_0000 ? 4 : 5
}

/** Like `zigzag`, for values of more than 32 bits. The bit operators of JavaScript would cut them off. */
function zigzagLong(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value
}

function varlongBytes(value: number): number {
  let bytes = 1
  for (let left = zigzagLong(value); left >= 0x80; left = Math.floor(left / 0x80)) bytes++
  return bytes
}
