import type { Availability } from './availability.ts'
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

/** Of a record, as `OutgoingRecord` has it. Keys count: they are users' ids, which may be as long as messages. */
export function recordBytes(key: string, valueBytes: number): number {
  return Buffer.byteLength(key) + valueBytes + overheadBytes
}

/** What the outbox needs of a Kafka producer. */
export type BatchSender = {
  send(
    batch: readonly { readonly topic: string; readonly records: OutgoingRecord[] }[],
  ): Promise<{ ok: true } | { ok: false; detail: string }>
}

/**
 * What became of a request's records. `acknowledged`: all in-sync replicas have all of them. `too_late`: no
 * acknowledgement in time, they may come to be written. `unavailable`: Kafka doesn't take records. `full`: so much
 * waits already that nothing was taken.
 */
export type Delivered = 'acknowledged' | 'too_late' | 'unavailable' | 'full'

export type OutboxOptions = {
  readonly sender: BatchSender
  readonly availability: Availability
  /** How long records wait for others to travel with, while nothing is under way. */
  readonly lingerMs: number
  /** How long a request waits for its acknowledgement. */
  readonly ackTimeoutMs: number
  /** Most bytes of records that aren't acknowledged yet. */
  readonly bufferBytes: number
}

/** A produce of more would hold up the event loop for long. */
const maxSendRecords = 2_000
const maxSendBytes = 4_000_000
/** Of one partition: a topic takes 1 MB at once. */
const maxPartitionBytes = 900_000
/** A request's records are split into parts of at most this, so that parts of several requests fill a produce well. */
const maxPartBytes = 450_000

/** Records of one request that travel together. */
export type Part = {
  readonly topic: string
  readonly records: OutgoingRecord[]
  /** Of the records. */
  bytes: number
  /** The `messageId` that a client gave, for each record. */
  readonly ids: (string | undefined)[]
  /** Those of `ids` that are in flight, of the part's source. */
  readonly flights: Map<string, Part>
  /** Of the request, which identical messages of another one don't share. */
  readonly occasion: Occasion
  /** Requests that wait for this part. */
  readonly tickets: Ticket[]
}

type Ticket = { open: number; isDone: boolean; resolve: (delivered: Delivered) => void }

/** The records of one request, being collected. */
export class Parcel {
  readonly topic: string
  readonly occasion: Occasion
  readonly parts: Part[] = []
  /** Parts of other requests that are waited for too. */
  readonly joined = new Set<Part>()
  readonly flights: Map<string, Part>
  bytes = 0
  #last: Part | undefined

  constructor(topic: string, occasion: Occasion, flights: Map<string, Part>) {
    this.topic = topic
    this.occasion = occasion
    this.flights = flights
  }

  /** `id`: by which an identical message is to find this one, while it is in flight. */
  add(record: OutgoingRecord, id: string | undefined): void {
    const { bytes } = record
    let part = this.#last
    if (part === undefined || part.bytes + bytes > maxPartBytes || part.records.length === maxSendRecords) {
      const { topic, occasion, flights } = this
      part = { topic, records: [], bytes: 0, ids: [], flights, occasion, tickets: [] }
      this.#last = part
      this.parts.push(part)
    }
    part.records.push(record)
    part.ids.push(id)
    part.bytes += bytes
    this.bytes += bytes
  }
}

/**
 * Brings the records of many requests to Kafka in few produces, and tells each request what became of its own. Owns
 * what waits, and what is in flight. One produce is under way at a time, and takes along all that came since the one
 * before: so the records of a partition are written in the order of their coming.
 */
export class Outbox {
  readonly #options: OutboxOptions
  /** In the order of their coming; from `#head` on. */
  #waiting: Part[] = []
  #head = 0
  #bytes = 0
  #records = 0
  #isSending = false
  #timer: NodeJS.Timeout | undefined
  readonly #flights = new Map<string, Map<string, Part>>()

  constructor(options: OutboxOptions) {
    this.#options = options
  }

  /** Bytes of records that aren't acknowledged yet. */
  get bytes(): number {
    return this.#bytes
  }

  /** Records that aren't acknowledged yet. */
  get records(): number {
    return this.#records
  }

  /** An empty parcel. `origin` separates the ids of one source from those of another. */
  parcel(topic: string, origin: string, occasion: Occasion): Parcel {
    let flights = this.#flights.get(origin)
    if (flights === undefined) {
      flights = new Map()
      this.#flights.set(origin, flights)
    }
    return new Parcel(topic, occasion, flights)
  }

  /** Takes a parcel, and resolves once it is known what became of it; at the latest after `ackTimeoutMs`. */
  async submit(parcel: Parcel): Promise<Delivered> {
    const { availability, bufferBytes, ackTimeoutMs } = this.#options
    const { parts, joined } = parcel
    if (parts.length === 0 && joined.size === 0) return 'acknowledged'
    if (!availability.isAvailable) return 'unavailable'
    if (this.#bytes + parcel.bytes > bufferBytes) return 'full'

    const { promise, resolve } = Promise.withResolvers<Delivered>()
    const ticket: Ticket = { open: parts.length + joined.size, isDone: false, resolve }
    for (const part of joined) part.tickets.push(ticket)
    for (const part of parts) this.#take(part, ticket)
    this.#sendLater()
    const deadline = setTimeout(() => {
      finish(ticket, 'too_late')
      this.#dropUnwanted()
    }, ackTimeoutMs)
    const delivered = await promise
    clearTimeout(deadline)
    return delivered
  }

  /** Nothing is sent after it. */
  stop(): void {
    clearTimeout(this.#timer)
  }

  #take(part: Part, ticket: Ticket): void {
    part.tickets.push(ticket)
    for (const id of part.ids) if (id !== undefined) part.flights.set(id, part)
    this.#waiting.push(part)
    this.#records += part.records.length
    this.#bytes += part.bytes
  }

  /** What comes while nothing is under way waits for others for a moment. */
  #sendLater(): void {
    if (this.#isSending || this.#timer !== undefined || this.#head === this.#waiting.length) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#sendAll()
    }, this.#options.lingerMs)
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    while (this.#head < this.#waiting.length) await this.#send(this.#takeParts())
    this.#isSending = false
  }

  /** From the head, as many as one produce may have; at least one. */
  #takeParts(): Part[] {
    const parts: Part[] = []
    const partitionBytes: number[] = []
    let records = 0
    let bytes = 0
    for (let part = this.#waiting[this.#head]; part !== undefined; part = this.#waiting[this.#head]) {
      records += part.records.length
      bytes += part.bytes
      const isTooMuch = records > maxSendRecords || bytes > maxSendBytes || !hasRoom(partitionBytes, part)
      if (parts.length > 0 && isTooMuch) break
      parts.push(part)
      this.#head++
    }
    this.#forgetTaken()
    return parts
  }

  async #send(parts: readonly Part[]): Promise<void> {
    const { sender, availability, ackTimeoutMs } = this.#options
    // Who waited for it has been told by then.
    const slow = setTimeout(
      () => availability.failed(`no acknowledgement within ${ackTimeoutMs} ms`),
      ackTimeoutMs,
    )
    const outcome = await sender.send(batchOf(parts))
    clearTimeout(slow)
    if (outcome.ok) availability.worked()
    else availability.failed(outcome.detail)
    for (const part of parts) this.#settle(part, outcome.ok ? 'acknowledged' : 'unavailable')
  }

  #settle(part: Part, delivered: 'acknowledged' | 'unavailable'): void {
    this.#records -= part.records.length
    this.#bytes -= part.bytes
    for (const id of part.ids) {
      if (id !== undefined && part.flights.get(id) === part) part.flights.delete(id)
    }
    for (const ticket of part.tickets) {
      ticket.open--
      if (delivered === 'unavailable' || ticket.open === 0) finish(ticket, delivered)
    }
  }

  /** What nobody waits for any more isn't sent: its clients were told to send it again. Times run out in order. */
  #dropUnwanted(): void {
    for (let part = this.#waiting[this.#head]; part !== undefined; part = this.#waiting[this.#head]) {
      if (part.tickets.some(({ isDone }) => !isDone)) break
      this.#head++
      this.#settle(part, 'unavailable')
    }
    this.#forgetTaken()
  }

  #forgetTaken(): void {
    if (this.#head < 1_000 && this.#head < this.#waiting.length) return
    this.#waiting = this.#waiting.slice(this.#head)
    this.#head = 0
  }
}

function finish(ticket: Ticket, delivered: Delivered): void {
  if (ticket.isDone) return
  ticket.isDone = true
  ticket.resolve(delivered)
}

/** Adds a part to what its partitions get, and says whether that is not too much for any. */
function hasRoom(partitionBytes: number[], part: Part): boolean {
  let most = 0
  for (const { partition, bytes } of part.records) {
    const sum = (partitionBytes[partition] ?? 0) + bytes
    partitionBytes[partition] = sum
    if (sum > most) most = sum
  }
  return most <= maxPartitionBytes
}

function batchOf(parts: readonly Part[]): { topic: string; records: OutgoingRecord[] }[] {
  const byTopic = new Map<string, OutgoingRecord[]>()
  for (const { topic, records } of parts) {
    const before = byTopic.get(topic)
    if (before === undefined) byTopic.set(topic, [...records])
    else for (const record of records) before.push(record)
  }
  return [...byTopic].map(([topic, records]) => ({ topic, records }))
}
