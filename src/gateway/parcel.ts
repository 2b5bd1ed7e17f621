import type { Occasion } from './clock.ts'

/** A record for Kafka, with its place. */
export type OutgoingRecord = {
  readonly partition: number
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
  /** Of the whole record, by `recordBytes`. */
  readonly bytes: number
}

/** What Kafka adds to key and value, the name and id of a source among it: at most, and roughly. */
const overheadBytes = 200

/**
 * Of a record, as `OutgoingRecord` has it. Keys count: they are users' ids, which may be as long as messages.
 */
export function recordBytes(key: string, valueBytes: number): number {
  return Buffer.byteLength(key) + valueBytes + overheadBytes
}

/**
 * What became of a request's records. `acknowledged`: all in-sync replicas have all of them. `too_late`: not
 * all were acknowledged in time, and they may come to be written. `unavailable`: Kafka doesn't take records
 * of a partition that some of them are for; none was sent. `full`: so much waits already that nothing was
 * taken.
 */
export type Delivered = 'acknowledged' | 'too_late' | 'unavailable' | 'full'

/**
 * A request's records of one partition are split into parts of at most this, so that parts of several
 * requests fill a produce well.
 */
const maxPartRecords = 2_000

/** Records of one request for one partition, which travel together. */
export type Part = {
  readonly topic: string
  readonly partition: number
  readonly records: OutgoingRecord[]
  /** Of the records. */
  bytes: number
  /** The `messageId` that a client gave, for each record. */
  readonly ids: (string | undefined)[]
  /** Those of `ids` that are in flight, or were acknowledged to nobody, of the part's source. */
  readonly flights: Map<string, Part>
  /** Of the request, which identical messages of another one don't share. */
  readonly occasion: Occasion
  /** Requests that wait for this part, or have waited. */
  readonly tickets: Ticket[]
  isAcknowledged: boolean
}

/** A request that waits: for so many parts still. `delivered` once it is told. */
export type Ticket = {
  open: number
  delivered: Delivered | undefined
  readonly resolve: (delivered: Delivered) => void
}

/** The records of one request, being collected. */
export class Parcel {
  readonly topic: string
  readonly occasion: Occasion
  readonly parts: Part[] = []
  /** Parts of other requests that are waited for too. */
  readonly joined = new Set<Part>()
  readonly flights: Map<string, Part>
  bytes = 0
  readonly #maxPartBytes: number
  /** The last part of each partition. */
  readonly #last = new Map<number, Part>()

  get records(): number {
    return this.parts.reduce((sum, { records }) => sum + records.length, 0)
  }

  /** `maxPartBytes`: as `maxPartRecords`. */
  constructor(topic: string, occasion: Occasion, flights: Map<string, Part>, maxPartBytes: number) {
    this.#maxPartBytes = maxPartBytes
    this.topic = topic
    this.occasion = occasion
    this.flights = flights
  }

  /** `id`: by which an identical message is to find this one, while it is in flight. */
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
