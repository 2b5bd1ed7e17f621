import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import type { HeaderValue, ReceivedHeaders } from '../message/record-headers.ts'
import type { Decoded } from './decoder.ts'
import { type FramedRefusal, foreignFrame, magicByte, mayBeFramed } from './frame.ts'

/** The parts of a record that the intake needs. */
export type Arriving = Pick<HeldRecord, 'topic' | 'partition' | 'isAbandoned' | 'giveBack'>

export type IntakeOptions<R extends Arriving> = {
  /** The topics whose values may be framed. Records of other topics are passed on unchanged. */
  topics: ReadonlySet<string>
  /** Decodes a framed value, like `Decoder.decode`. */
  decode: (value: Buffer) => Decoded | Promise<void>
  /** Begins to ask for the schema of a framed value that will be decoded later, like `Decoder.lookAhead`. */
  lookAhead: (value: Buffer) => void
  /** Takes a record whose value is plain JSON. Must not throw. */
  next: (record: R, content: RecordContent) => void
  /**
   * Takes a record whose value can't be decoded, or is framed in a way that Sluice doesn't read. The content
   * is unchanged.
   */
  refuse: (record: R, content: RecordContent, refusal: FramedRefusal) => void
  /** Stops (`isFull`) or starts fetching from a partition. Records that were fetched before still arrive. */
  setPartitionFull: (topic: string, partition: number, isFull: boolean) => void
}

/** A step between the consumer and a receiver of plain JSON. */
export type Intake<R extends Arriving> = {
  /**
   * Passes a record on, in the order of its partition. If schemas are missing for this record or for earlier
   * records of its partition, the record waits until these schemas are available.
   */
  accept(record: R, content: RecordContent): void
  /** Returns the waiting records of lost partitions to the consumer. Call this when partitions were lost. */
  letGoAbandoned(): void
  /** Returns to the consumer all waiting records. */
  stop(): void
  /**
   * The number of waiting records, their size in bytes, and the number of their partitions. For each
   * partition, at most the records of one fetch wait.
   */
  readonly held: { readonly records: number; readonly bytes: number; readonly partitions: number }
}

export function createIntake<R extends Arriving>(options: IntakeOptions<R>): Intake<R> {
  return new SchemaIntake(options)
}

type Held<R> = { readonly record: R; readonly content: RecordContent; readonly bytes: number }

/** The waiting records of one partition, starting with the first record that needs a schema. */
type Line<R> = { readonly name: string; readonly waiting: Held<R>[] }

class SchemaIntake<R extends Arriving> implements Intake<R> {
  readonly #options: IntakeOptions<R>
  /**
   * The lines of waiting records, by topic and partition. Invariant: a partition has a line if and only if
   * this intake has stopped fetching from the partition.
   */
  readonly #lines = new Map<string, Line<R>>()
  #records = 0
  #bytes = 0

  constructor(options: IntakeOptions<R>) {
    this.#options = options
  }

  get held(): { records: number; bytes: number; partitions: number } {
    return { records: this.#records, bytes: this.#bytes, partitions: this.#lines.size }
  }

  accept(record: R, content: RecordContent): void {
    if (this.#lines.size === 0 && !mayBeFramed(content.value)) this.#options.next(record, content)
    else this.#consider(record, content)
  }

  letGoAbandoned(): void {
    for (const line of this.#lines.values()) {
      if (line.waiting.some(({ record }) => record.isAbandoned)) this.#letGo(line)
    }
  }

  stop(): void {
    for (const line of this.#lines.values()) this.#letGo(line)
  }

  #consider(record: R, content: RecordContent): void {
    const line = this.#lines.size === 0 ? undefined : this.#lines.get(nameOf(record))
    if (line !== undefined) {
      this.#hold(line, record, content)
      return
    }
    const underWay = this.#pass(record, content)
    if (underWay === undefined) return
    const started: Line<R> = { name: nameOf(record), waiting: [] }
    this.#lines.set(started.name, started)
    this.#options.setPartitionFull(record.topic, record.partition, true)
    this.#hold(started, record, content)
    void underWay.then(() => this.#goOn(started))
  }

  /**
   * Passes a record on. If the record's schema isn't available yet, passes nothing on, and returns a promise
   * that resolves when this method should be called again.
   */
  #pass(record: R, content: RecordContent): Promise<void> | undefined {
    const { topics, decode, next, refuse } = this.#options
    const { key, value, headers } = content
    if (value === null || !mayBeFramed(value) || !topics.has(record.topic)) {
      next(record, content)
      return undefined
    }
    if (value[0] !== magicByte) {
      const refusal = foreignFrame(value, headers)
      if (refusal === undefined) next(record, content)
      else refuse(record, content, refusal)
      return undefined
    }
    const decoded = decode(value)
    if (decoded instanceof Promise) return decoded
    if (decoded.ok) next(record, { key, value: decoded.value, ...(headers !== undefined && { headers }) })
    else refuse(record, content, decoded)
    return undefined
  }

  /**
   * Passes on the waiting records of a partition, now that the schema for the first of them is available.
   * Stops at the first record whose schema isn't available, because later records may need other schemas.
   */
  #goOn(line: Line<R>): void {
    if (this.#lines.get(line.name) !== line) return
    let passed = 0
    let underWay: Promise<void> | undefined
    for (const { record, content, bytes } of line.waiting) {
      underWay = this.#pass(record, content)
      if (underWay !== undefined) break
      passed++
      this.#forget(bytes)
    }
    const [first] = line.waiting.splice(0, passed)
    if (underWay !== undefined) void underWay.then(() => this.#goOn(line))
    else if (first !== undefined) this.#end(line, first.record)
  }

  #letGo(line: Line<R>): void {
    // The line is emptied, because the lookup of a schema keeps the line in memory, and may go on for hours.
    const waiting = line.waiting.splice(0)
    const [first] = waiting
    for (const { record, bytes } of waiting) {
      this.#forget(bytes)
      record.giveBack()
    }
    if (first !== undefined) this.#end(line, first.record)
  }

  #end({ name }: Line<R>, { topic, partition }: R): void {
    this.#lines.delete(name)
    this.#options.setPartitionFull(topic, partition, false)
  }

  #hold(line: Line<R>, record: R, content: RecordContent): void {
    const copy = copyOf(content)
    const { topics, lookAhead } = this.#options
    if (copy.value?.[0] === magicByte && topics.has(record.topic)) lookAhead(copy.value)
    const bytes = (copy.key?.length ?? 0) + (copy.value?.length ?? 0)
    line.waiting.push({ record, content: copy, bytes })
    this.#records++
    this.#bytes += bytes
  }

  #forget(bytes: number): void {
    this.#records--
    this.#bytes -= bytes
  }
}

function nameOf({ topic, partition }: Arriving): string {
  return `${topic}/${partition}`
}

/**
 * Copies the content of a record. Without the copy, a waiting record would keep the whole answer to a fetch
 * in memory.
 */
function copyOf({ key, value, headers, unreadable }: RecordContent): RecordContent {
  return {
    key: key && Buffer.from(key),
    value: value && Buffer.from(value),
    ...(headers !== undefined && { headers: copyHeaders(headers) }),
    ...(unreadable !== undefined && { unreadable }),
  }
}

function copyHeaders(headers: NonNullable<ReceivedHeaders>): ReceivedHeaders {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map(copyBytes) : value === undefined ? value : copyBytes(value),
    ]),
  )
}

function copyBytes(value: HeaderValue): HeaderValue {
  return Buffer.isBuffer(value) ? Buffer.from(value) : value
}
