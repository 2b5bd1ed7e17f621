import type { Occasion } from './clock.ts'

/** A record for Kafka, with its partition. */
export type OutgoingRecord = {
  readonly partition: number
  readonly key: string
  /** The value as text, or as bytes in UTF-8. */
  readonly value: string | Buffer
  readonly headers: Readonly<Record<string, string>>
  /** The size of the whole record, by `recordBytes`. */
  readonly bytes: number
}

/**
 * An upper estimate of what Kafka adds to key and value, including the headers with the source's name and id.
 */
const overheadBytes = 200

/**
 * Returns the `bytes` of an `OutgoingRecord`. The key counts, because it is a user's id, which may be as long
 * as a message.
 */
export function recordBytes(key: string, valueBytes: number): number {
  return Buffer.byteLength(key) + valueBytes + overheadBytes
}

/**
 * The outcome of a request's records. `acknowledged`: all in-sync replicas have all records. `too_late`: some
 * records weren't acknowledged in time, and may still be written. `unavailable`: some of the records are for
 * a partition of which Kafka takes no records, so no record was sent. `full`: the buffer is full, so no
 * record was taken.
 */
export type Delivered = 'acknowledged' | 'too_late' | 'unavailable' | 'full'

/**
 * The most records of one part. A request's records for one partition are split into such parts, so that the
 * parts of several requests fill a produce well.
 */
const maxPartRecords = 2_000

/** Records of one request for one partition. They are sent together. */
export type Part = {
  readonly topic: string
  readonly partition: number
  readonly records: OutgoingRecord[]
  /** The bytes of all records. */
  bytes: number
  /** The `messageId` that a client gave, for each record. */
  readonly ids: (string | undefined)[]
  /**
   * The parts of the same source by `messageId`: parts in flight, and acknowledged parts of requests that
   * were not answered 200.
   */
  readonly flights: Map<string, Part>
  /** The occasion of this request. An identical message of another request has another occasion. */
  readonly occasion: Occasion
  /** The requests that wait, or have waited, for this part. */
  readonly tickets: Ticket[]
  isAcknowledged: boolean
}

/** A request that waits for `open` more parts. `delivered` is set once the request has its answer. */
export type Ticket = {
  open: number
  delivered: Delivered | undefined
  readonly resolve: (delivered: Delivered) => void
}

/** The records of one request, while they are collected. */
export class Parcel {
  readonly topic: string
  readonly occasion: Occasion
  readonly parts: Part[] = []
  /** Parts of other requests that this request waits for too. */
  readonly joined = new Set<Part>()
  readonly flights: Map<string, Part>
  bytes = 0
  readonly #maxPartBytes: number
  /** The last part of each partition. */
  readonly #last = new Map<number, Part>()

  get records(): number {
    return this.parts.reduce((sum, { records }) => sum + records.length, 0)
  }

  /** `maxPartBytes`: the most bytes of one part. */
  constructor(topic: string, occasion: Occasion, flights: Map<string, Part>, maxPartBytes: number) {
    this.#maxPartBytes = maxPartBytes
    this.topic = topic
    this.occasion = occasion
    this.flights = flights
  }

  /**
   * Adds a record. While the record is in flight, another message with the same `id` can be recognized as
   * identical.
   */
  add(record: OutgoingRecord, id: string | undefined): void {
    const part = this.#partFor(record)
    part.records.push(record)
    part.ids.push(id)
    part.bytes += record.bytes
    this.bytes += record.bytes
  }

  #partFor({ partition, bytes }: OutgoingRecord): Part {
    const last = this.#last.get(partition)
    const hasRoom =
      last !== undefined && last.bytes + bytes <= this.#maxPartBytes && last.records.length < maxPartRecords
    if (hasRoom) return last
    const { topic, occasion, flights } = this
    const empty = { records: [], bytes: 0, ids: [], tickets: [], isAcknowledged: false }
    const part: Part = { topic, partition, occasion, flights, ...empty }
    this.#last.set(partition, part)
    this.parts.push(part)
    return part
  }
}
