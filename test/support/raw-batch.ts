import { gzipSync, zstdCompressSync } from 'node:zlib'
import kafkajs, { CompressionTypes, Partitioners } from 'kafkajs'
import { crc32c } from '../../src/kafka/wire/crc32c.ts'
import { type FetchedRecord, readRecordSet } from '../../src/kafka/wire/record-batch.ts'
import { otherProgram } from './kafka.ts'

/**
 * Writes record batches byte by byte. Other clients may write records that kafkajs can't write, such as
 * headers without a value, or with a name that isn't UTF-8. Source: the Kafka protocol, record batch format
 * (magic 2).
 */

type Bytes = string | Buffer | null

export type RawRecord = {
  readonly key?: Bytes
  readonly value?: Bytes
  /** The headers, in this order. Names may repeat. */
  readonly headers?: readonly (readonly [name: string | Buffer, value: Bytes])[]
}

/**
 * Encodes the records of a batch. The first record has offset 0 of the batch. All have the time of the batch.
 */
export function encodeRecords(records: readonly RawRecord[]): Buffer {
  return Buffer.concat(records.flatMap(encodeRecord))
}

function encodeRecord({ key = null, value = null, headers = [] }: RawRecord, offsetDelta: number): Buffer[] {
  const body = [
    Buffer.from([0]),
    varint(0),
    varint(offsetDelta),
    ...data(key),
    ...data(value),
    varint(headers.length),
    ...headers.flatMap(([name, content]) => [...data(name), ...data(content)]),
  ]
  return [varint(body.reduce((sum, { length }) => sum + length, 0)), ...body]
}

function data(bytes: Bytes): Buffer[] {
  if (bytes === null) return [varint(-1)]
  const buffer = Buffer.from(bytes)
  return [varint(buffer.length), buffer]
}

/** Encodes an integer as a zigzag varint. */
export function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let left = value >= 0 ? value * 2 : -value * 2 - 1; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left])
    bytes.push((left % 128) + 128)
  }
}

export type BatchFields = {
  baseOffset?: number
  lastOffsetDelta?: number
  count?: number
  /** The number of the codec, plus 8 for append time, 16 for a transaction, and 32 for control records. */
  attributes?: number
  firstTimestampMs?: number
  maxTimestampMs?: number
  producerId?: number
}

/** Encodes a batch in the form in which a fetch returns it. */
export function encodeBatch(content: Buffer, fields: BatchFields & { count: number }): Buffer {
  const { baseOffset = 0, count, lastOffsetDelta = count - 1, attributes = 0 } = fields
  const { firstTimestampMs = 0, maxTimestampMs = firstTimestampMs, producerId = -1 } = fields
  const head = Buffer.alloc(61)
  head.writeBigInt64BE(BigInt(baseOffset), 0)
  head.writeInt32BE(head.length - 12 + content.length, 8)
  head.writeInt8(2, 16)
  head.writeInt16BE(attributes, 21)
  head.writeInt32BE(lastOffsetDelta, 23)
  head.writeBigInt64BE(BigInt(firstTimestampMs), 27)
  head.writeBigInt64BE(BigInt(maxTimestampMs), 35)
  head.writeBigInt64BE(BigInt(producerId), 43)
  head.writeInt16BE(-1, 51)
  head.writeInt32BE(-1, 53)
  head.writeInt32BE(count, 57)
  return sealed(Buffer.concat([head, content]))
}

/** Writes the valid checksum into a batch, as every client does. Returns the batch. */
export function sealed(batch: Buffer): Buffer {
  batch.writeUInt32BE(crc32c(batch, 21, batch.length), 17)
  return batch
}

/** Returns the records of batches as a worker reads them. Stops before the first damaged batch. */
export async function readBatches(bytes: Buffer): Promise<FetchedRecord[]> {
  return (await readRecordSet(bytes, { passDamaged: false, end: Number.MAX_SAFE_INTEGER })).records
}

const compressors = { gzip: gzipSync, zstd: zstdCompressSync }
const codecs = { gzip: CompressionTypes.GZIP, zstd: CompressionTypes.ZSTD } as const

/**
 * Writes records as one compressed batch. Returns the offset of the first record. Only one call may run at a
 * time, because each call replaces the codec of kafkajs.
 */
export async function produceRaw(
  topic: string,
  partition: number,
  records: readonly RawRecord[],
  { codec = 'gzip' }: { codec?: keyof typeof codecs } = {},
): Promise<number> {
  const type = codecs[codec]
  const compressed = compressors[codec](encodeRecords(records))
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const { CompressionCodecs } = kafkajs
  const original = CompressionCodecs[type]
  // kafkajs writes these bytes into a batch, with the batch's header and checksum.
  CompressionCodecs[type] = () => ({
    compress: async () => compressed,
    decompress: async (bytes: Buffer) => bytes,
  })
  try {
    const messages = records.map(() => ({ key: null, value: null, partition }))
    // kafkajs groups messages by partition with `reduce`, and copies the whole list for each message. With
    // 100,000 messages, that takes minutes.
    Object.defineProperty(messages, 'reduce', { value: () => ({ [partition]: messages }) })
    const [written] = await producer.send({ topic, messages, compression: type, acks: -1 })
    return Number(written?.baseOffset)
  } finally {
    CompressionCodecs[type] = original
    await producer.disconnect()
  }
}
