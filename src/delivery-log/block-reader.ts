import {
  blockFormat,
  type LogKind,
  logKinds,
  type LogOutcome,
  logOutcomes,
  type LogRecord,
  type LogVerdict,
  logVerdicts,
  dueMsOf,
  userHashBytes,
} from './log-record.ts'
import { valuesEndBytes, valuesMark } from './block-writer.ts'

/**
 * Reads the records of a block of the delivery log one after the other, without creating an object for each
 * record. `next` moves to the next record and puts its values into the fields of this object.
 */
export class BlockReader {
  #bytes: Buffer = empty
  #at = 0
  #left = 0
  #sinceMs = 0
  kind = 0
  atMs = 0
  isEnd = false
  weight = 1
  destination = ''
  hook = ''
  source = ''
  messageId = ''
  messageType = ''
  originTopic = ''
  originPartition = 0
  originOffset = 0
  attempt = 0
  verdict = 0
  outcome = 0
  status = 0
  durationMicros = 0
  reason = ''
  error = ''
  waitMs = 0
  ageMs = 0
  /** The start of the user's hash in `bytes`. It equals `userEnd` if the record has no hash. */
  userAt = 0
  userEnd = 0
  job = ''
  answerAt = 0
  answerEnd = 0
  /**
   * The start of the hashes of the record's indexed values in `bytes`. It equals `valuesEnd` if there are
   * none.
   */
  valuesAt = 0
  valuesEnd = 0
  /** The start and the end of the values of the records that come next. */
  #nextValues = 0
  #lastValues = 0

  get bytes(): Buffer {
    return this.#bytes
  }

  /**
   * Opens a block. Returns false if the block has another version of the format. Throws a `RangeError` if the
   * block is damaged.
   */
  open(block: Buffer): boolean {
    this.#bytes = block
    this.#at = 0
    this.#left = 0
    if (this.#int() !== blockFormat) return false
    this.#sinceMs = this.#int()
    this.#findValues()
    return true
  }

  #findValues(): void {
    const bytes = this.#bytes
    const end = bytes.length - valuesEndBytes
    const has = end >= 0 && bytes[bytes.length - 1] === valuesMark
    this.#lastValues = has ? end : 0
    this.#nextValues = has ? end - bytes.readUInt32LE(end) : 0
    if (this.#nextValues < 0) throw new RangeError('a block of the delivery log has too few values')
  }

  /** Moves to the next record. Returns false if there are no more records. */
  next(): boolean {
    if (this.#left === 0 && !this.#nextPart()) return false
    this.#left--
    this.kind = this.#int()
    this.atMs = this.#sinceMs + this.#int()
    this.isEnd = this.#byte() !== 0
    this.weight = this.#int()
    this.destination = this.#text()
    this.hook = this.#text()
    this.source = this.#text()
    this.messageId = this.#text()
    this.messageType = this.#text()
    this.originTopic = this.#text()
    this.originPartition = this.#int()
    this.originOffset = this.#int()
    this.attempt = this.#int()
    this.verdict = this.#int()
    this.outcome = this.#int()
    this.status = this.#int()
    this.durationMicros = this.#int()
    this.reason = this.#text()
    this.error = this.#text()
    this.waitMs = this.#int()
    this.ageMs = this.#int()
    this.userEnd = this.#skip()
    this.userAt = this.#start
    this.job = this.#text()
    this.answerEnd = this.#skip()
    this.answerAt = this.#start
    this.#takeValues()
    return true
  }

  #takeValues(): void {
    if (this.#nextValues >= this.#lastValues) {
      this.valuesAt = this.valuesEnd = 0
      return
    }
    this.valuesAt = this.#nextValues + 1
    this.valuesEnd = this.valuesAt + userHashBytes * (this.#bytes[this.#nextValues] ?? 0)
    if (this.valuesEnd > this.#lastValues)
      throw new RangeError('a block of the delivery log has too few values')
    this.#nextValues = this.valuesEnd
  }

  /** Returns the current record as an object that doesn't share the block's memory. */
  record(unit: number): LogRecord {
    return {
      atMs: this.atMs,
      kind: kindOf(this.kind),
      isEnd: this.isEnd,
      weight: this.weight,
      destination: this.destination,
      hook: this.hook,
      source: this.source,
      messageId: this.messageId,
      messageType: this.messageType,
      origin: { topic: this.originTopic, partition: this.originPartition, offset: this.originOffset },
      unit,
      attempt: this.attempt,
      verdict: verdictOf(this.verdict),
      outcome: outcomeOf(this.outcome),
      status: this.status,
      durationMs: this.durationMicros / 1_000,
      reason: this.reason,
      error: this.error,
      dueMs: dueMsOf(kindOf(this.kind), this.atMs, this.waitMs),
      firstSeenMs: this.atMs - this.ageMs,
      user: this.#bytes.toString('hex', this.userAt, this.userEnd),
      job: this.job,
      answer: this.#bytes.toString('utf8', this.answerAt, this.answerEnd),
    }
  }

  /**
   * Reads the beginning of the next part of the block, and returns false if there are no more parts. Avro
   * writes the records of a block in parts. Each part begins with the number of its records. The number 0
   * ends the block.
   */
  #nextPart(): boolean {
    const count = this.#int()
    if (count === 0) return false
    // If the count is negative, the size of the part in bytes follows.
    if (count < 0) this.#int()
    this.#left = Math.abs(count)
    return true
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw new RangeError('a block of the delivery log ends too soon')
    return byte
  }

  #int(): number {
    const bytes = this.#bytes
    let byte = bytes[this.#at++] ?? endless
    let value = byte & 0x7f
    // Most numbers have only one or two bytes, but this loop reads numbers of any length.
    for (let scale = 128; byte >= 0x80; scale *= 128) {
      byte = bytes[this.#at++] ?? endless
      if (byte === endless || scale > 2 ** 56)
        throw new RangeError('a block of the delivery log ends too soon')
      value += (byte & 0x7f) * scale
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  #start = 0

  /** Reads a length, skips that many bytes, and returns the place after them. */
  #skip(): number {
    const length = this.#int()
    this.#start = this.#at
    this.#at += length
    if (length < 0 || this.#at > this.#bytes.length)
      throw new RangeError(`a field of ${length} bytes in a block of the delivery log`)
    return this.#at
  }

  #text(): string {
    const end = this.#skip()
    const start = this.#start
    return start === end ? '' : this.#bytes.toString('utf8', start, end)
  }
}

/**
 * Returns all records of a block. Returns an empty list if the block has another version of the format.
 * Throws a `RangeError` if the block is damaged.
 */
export function readBlock(block: Buffer, unit: number): readonly LogRecord[] {
  const reader = new BlockReader()
  const records: LogRecord[] = []
  if (reader.open(block)) while (reader.next()) records.push(reader.record(unit))
  return records
}

/**
 * Returns the kind of record at a position of the list `logKinds`. A later version of Sluice may have added
 * kinds. If the position is after the end of the list, returns the first kind, so that the other fields of
 * the record can still be read.
 */
export function kindOf(index: number): LogKind {
  return logKinds[index] ?? 'attempted'
}

export function verdictOf(index: number): LogVerdict {
  return logVerdicts[index] ?? ''
}

export function outcomeOf(index: number): LogOutcome {
  return logOutcomes[index] ?? ''
}

const empty = Buffer.alloc(0)
/** The value that stands for a byte after the end of the block. No byte has this value. */
const endless = 0x100
