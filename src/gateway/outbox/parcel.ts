import type { Occasion } from '../messages/clock.ts'
import type { WrittenRecord } from '../../message/records.ts'

/** A record for Kafka, with its partition. */
export type OutgoingRecord = WrittenRecord & {
  readonly partition: number
  readonly key: string
  /** The value as text, or as bytes in UTF-8. */
  readonly value: string | Buffer
  /** The size of the whole record, as the function `recordBytes` computes it. */
  readonly bytes: number
}

/**
 * An upper limit on the bytes that a record has in addition to its key and value. The header `source-id` is
 * included.
 */
const overheadBytes = 200

/**
 * Returns the `bytes` of an `OutgoingRecord`. The key is included, because it is a user id, which may be as
 * long as a message.
 */
export function recordBytes(key: string, valueBytes: number): number {
  return Buffer.byteLength(key) + valueBytes + overheadBytes
}

/**
 * The outcome of a request's records.
 *
 * - `acknowledged`: all in-sync replicas have all records.
 * - `too_late`: some records weren't acknowledged in time. They may still be written.
 * - `unavailable`: no record was sent, because Kafka accepts no records for the partition of at least one
 *   record.
 * - `throttled`: a broker has announced that it accepts nothing for a while, because a quota is used up. Some
 *   records may still be written after this time.
 * - `full`: no record was sent, because the buffer has no room.
 */
export type Delivered = 'acknowledged' | 'too_late' | 'unavailable' | 'throttled' | 'full'

/**
 * The limit on the number of records of one part. A request's records for one partition are split into parts
 * of this size, so that parts of several requests can fill one produce request.
 */
const maxPartRecords = 2_000

/** Records of one request for one partition that are sent together. */
export type Part = {
  readonly topic: string
  readonly partition: number
  readonly records: OutgoingRecord[]
  /** The total bytes of all records. */
  bytes: number
  /** For each record, the `messageId` from the client, if there is one. */
  readonly ids: (string | undefined)[]
  /**
   * Parts with messages of the same source, by `messageId`: the parts in flight, and the acknowledged parts
   * of requests that were not answered 200.
   */
  readonly flights: Map<string, Part>
  /**
   * The times that the messages of the request share. Another request with an identical message has other
   * times.
   */
  readonly occasion: Occasion
  /** The requests that wait or have waited for this part. */
  readonly tickets: Ticket[]
  isAcknowledged: boolean
}

/**
 * A request that waits for parts. `open`: the number of parts that aren't acknowledged yet. `delivered`: set
 * once the outcome of the request is known.
 */
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
  /**
   * Parts of other requests. This request waits for these parts too, because they contain messages that are
   * identical to messages of this request.
   */
  readonly joined = new Set<Part>()
  readonly flights: Map<string, Part>
  bytes = 0
  readonly #maxPartBytes: number
  /** For each partition, the part to which a record was added last. */
  readonly #last = new Map<number, Part>()

  get records(): number {
    return this.parts.reduce((sum, { records }) => sum + records.length, 0)
  }

  /** `maxPartBytes`: the limit on the bytes of one part. */
  constructor(topic: string, occasion: Occasion, flights: Map<string, Part>, maxPartBytes: number) {
    this.#maxPartBytes = maxPartBytes
    this.topic = topic
    this.occasion = occasion
    this.flights = flights
  }

  /**
   * Adds a record. `id` is the `messageId` from the client. It makes it possible to recognize an identical
   * message while the record is in flight.
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
