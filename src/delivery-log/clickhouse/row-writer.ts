import { type BlockReader, kindOf, outcomeOf, verdictOf } from '../block-reader.ts'
import { userHashBytes } from '../log-record.ts'

const initialBytes = 256 * 1024
/** An upper limit on the bytes of a row without its texts. */
const fixedBytes = 160

/**
 * Writes rows in ClickHouse's format RowBinary into a reused buffer. The values of a row are in the order of
 * `columns`. Source: https://clickhouse.com/docs/interfaces/formats/RowBinary
 */
export class RowWriter {
  #bytes = Buffer.allocUnsafeSlow(initialBytes)
  #at = 0
  rows = 0

  /** The rows that were added so far. After a call of `clear`, new rows overwrite the same memory. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  clear(): void {
    this.#at = 0
    this.rows = 0
  }

  /**
   * Adds the reader's current record as a row. The record has the index `number` in the block at `offset`.
   */
  add(reader: BlockReader, { atMs, unit, offset, number }: RowAt): void {
    this.#makeRoom(reader)
    this.rows++
    this.#text(reader.destination)
    this.#int64(atMs)
    this.#int32(unit)
    this.#int64(offset)
    this.#int32(number)
    this.#text(kindOf(reader.kind))
    this.#bytes[this.#at++] = reader.isEnd ? 1 : 0
    this.#int32(reader.weight)
    this.#text(reader.hook)
    this.#text(reader.source)
    this.#text(reader.messageId)
    this.#text(reader.messageType)
    this.#text(reader.originTopic)
    this.#int32(reader.originPartition)
    this.#int64(reader.originOffset)
    this.#int32(reader.attempt)
    this.#text(verdictOf(reader.verdict))
    this.#text(outcomeOf(reader.outcome))
    this.#at = this.#bytes.writeUInt16LE(reader.status & 0xffff, this.#at)
    this.#int64(reader.durationMicros)
    this.#text(reader.reason)
    this.#text(reader.error)
    this.#int64(reader.waitMs)
    this.#int64(reader.ageMs)
    this.#text(reader.bytes.toString('hex', reader.userAt, reader.userEnd))
    this.#text(reader.job)
    this.#data(reader.bytes, reader.answerAt, reader.answerEnd)
  }

  #makeRoom(reader: BlockReader): void {
    const texts =
      reader.destination.length +
      reader.hook.length +
      reader.source.length +
      reader.messageId.length +
      reader.messageType.length +
      reader.originTopic.length +
      reader.reason.length +
      reader.error.length +
      reader.job.length
    const answer = reader.answerEnd - reader.answerAt
    const wanted = this.#at + fixedBytes + 3 * texts + 2 * (reader.userEnd - reader.userAt) + answer
    if (wanted <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow(2 * wanted)
    this.#bytes.copy(grown, 0, 0, this.#at)
    this.#bytes = grown
  }

  #int32(value: number): void {
    this.#at = this.#bytes.writeUInt32LE(value >>> 0, this.#at)
  }

  /** Writes an integer of 64 bits in two's complement. */
  #int64(value: number): void {
    this.#int32(value % 2 ** 32)
    this.#int32(Math.floor(value / 2 ** 32))
  }

  #length(value: number): void {
    let left = value
    while (left > 0x7f) {
      this.#bytes[this.#at++] = (left & 0x7f) | 0x80
      left >>>= 7
    }
    this.#bytes[this.#at++] = left
  }

  #text(text: string): void {
    if (text === '') {
      this.#bytes[this.#at++] = 0
      return
    }
    this.#length(Buffer.byteLength(text))
    this.#at += this.#bytes.write(text, this.#at)
  }

  #data(from: Buffer, start: number, end: number): void {
    this.#length(end - start)
    this.#at += from.copy(this.#bytes, this.#at, start, end)
  }
}

/** The place of a row: its time, the block of the topic in which it came, and its index in that block. */
export type RowAt = {
  readonly atMs: number
  readonly unit: number
  readonly offset: number
  readonly number: number
}

/**
 * Encodes rows of the table of keys for the indexed values of a record, in RowBinary and in the order of
 * `keyColumns`. The hash of a value is a number of 48 bits, as the log has it. Those of messages and users
 * are made by ClickHouse, and have 64 bits.
 */
export function keyRows(
  { bytes, destination, valuesAt, valuesEnd }: BlockReader,
  { atMs, unit, offset, number }: RowAt,
): Buffer {
  const rows: Buffer[] = []
  const name = Buffer.from(destination)
  for (let at = valuesAt; at < valuesEnd; at += userHashBytes) {
    const head = Buffer.alloc(8)
    head.writeUIntLE(bytes.readUIntBE(at, userHashBytes), 0, userHashBytes)
    const tail = Buffer.alloc(24)
    tail.writeBigInt64LE(BigInt(atMs), 0)
    tail.writeUInt32LE(unit, 8)
    tail.writeBigUInt64LE(BigInt(offset), 12)
    tail.writeUInt32LE(number, 20)
    rows.push(head, lengthOf(name.length), name, tail)
  }
  return Buffer.concat(rows)
}

function lengthOf(value: number): Buffer {
  const bytes: number[] = []
  let left = value
  for (; left > 0x7f; left >>>= 7) bytes.push((left & 0x7f) | 0x80)
  return Buffer.from([...bytes, left])
}

/** A row of the table of positions: the position in one partition of the topic. */
export type WrittenPosition = {
  readonly partition: number
  readonly next: number
  readonly topicId: string
  readonly writtenAtMs: number
}

/** Encodes rows of the table of positions in RowBinary: `partition`, `next`, `topic_id`, `written_at`. */
export function positionRows(positions: readonly WrittenPosition[]): Buffer {
  return Buffer.concat(
    positions.map(({ partition, next, topicId, writtenAtMs }) => {
      const id = Buffer.from(topicId.slice(0, 100), 'latin1')
      const row = Buffer.alloc(21 + id.length)
      row.writeUInt32LE(partition, 0)
      row.writeBigUInt64LE(BigInt(next), 4)
      row[12] = id.length
      id.copy(row, 13)
      row.writeBigInt64LE(BigInt(writtenAtMs), 13 + id.length)
      return row
    }),
  )
}
