import type { Availability } from './availability.ts'
import type { Occasion } from '../messages/clock.ts'
import {
  type Batch,
  PartitionDispatch,
  type PartitionDispatchOptions,
  type Route,
} from '../../async/partition-dispatch.ts'
import { type Delivered, type OutgoingRecord, Parcel, type Part, type Ticket } from './parcel.ts'
import { Unanswered } from './unanswered.ts'
import type { PartitionRecords } from '../../message/records.ts'

/** Records for one partition that are written by one produce request. */
export type Produce = PartitionRecords<OutgoingRecord>

/** The method of a Kafka producer that the outbox uses. */
export type ProduceSender = {
  /**
   * Sends each entry of `produces` once, and calls `onSettled` once for each entry. If Kafka has acknowledged
   * its records, `failure` is `undefined`.
   *
   * Calls `onThrottled` for an entry if its broker has announced that it accepts nothing for `throttleMs`
   * milliseconds, because a quota is used up. If `isSent` is true, the entry is written after this time.
   * Otherwise it is never sent, and `onSettled` is called next.
   */
  send(
    produces: readonly Produce[],
    route: Route,
    onSettled: (produce: Produce, failure: string | undefined) => void,
    onThrottled: (produce: Produce, throttleMs: number, isSent: boolean) => void,
  ): void
}

export type OutboxOptions = {
  readonly sender: ProduceSender
  readonly availability: Availability
  /**
   * The time in milliseconds that a record waits for other records that can be sent together with it. A
   * record waits for this time only if no send is in flight.
   */
  readonly lingerMs: number
  /**
   * The longest time that a client's request waits until Kafka has acknowledged its records, in milliseconds.
   */
  readonly ackTimeoutMs: number
  /** The limit on the bytes of records that aren't acknowledged yet. */
  readonly bufferBytes: number
  /** The topic's limit on the bytes of one batch of records for a partition. */
  readonly batchBytes: number
  /** Returns milliseconds of a monotonic clock. */
  readonly now: () => number
}

/**
 * Limits on the number of records and of bytes of one send. A larger send would block the event loop for too
 * long.
 */
const most = { records: 2_000, bytes: 4_000_000 }
const backoffs = { minBackoffMs: 50, maxBackoffMs: 400 }

/**
 * Writes the records of many requests to Kafka in few sends, and reports to each request the outcome of its
 * own records. Holds the records that wait and the records that are in flight. When a send has ended or is
 * slow, a new send begins with the records that have arrived in the meantime. If Kafka accepts no records for
 * a partition, only the records for that partition fail. They are sent again as long as a request waits for
 * them, separately from records for other partitions.
 */
export class Outbox {
  readonly #options: OutboxOptions
  readonly #dispatch: PartitionDispatch<Part>
  readonly #flights = new Map<string, Map<string, Part>>()
  readonly #unanswered: Unanswered
  #bytes = 0
  #records = 0

  constructor(options: OutboxOptions) {
    const { lingerMs, batchBytes } = options
    this.#options = options
    this.#dispatch = new PartitionDispatch({
      lingerMs,
      lingersBetween: false,
      batchBytes,
      ...backoffs,
      most,
      recordsOf: ({ records }) => records.length,
      send: (batches, route, onEnd) => this.#send(batches, route, onEnd),
    })
    this.#unanswered = new Unanswered(options.now)
  }

  /** The number of bytes of records that Kafka hasn't acknowledged yet. */
  get bytes(): number {
    return this.#bytes
  }

  /** The number of records that Kafka hasn't acknowledged yet. */
  get records(): number {
    return this.#records
  }

  /**
   * If the outbox accepts no records for a topic now, returns the reason. Returns `undefined` if it may
   * accept some records.
   */
  obstacle(topic: string): 'unavailable' | 'throttled' | 'full' | undefined {
    const { availability, bufferBytes } = this.#options
    if (!availability.isAvailable(topic)) return 'unavailable'
    if (availability.isThrottled(topic)) return 'throttled'
    return this.#bytes >= bufferBytes ? 'full' : undefined
  }

  /** Returns for how long the brokers of a topic's partitions accept nothing at most, in milliseconds. */
  throttleMs(topic: string): number {
    return this.#options.availability.throttleMs(topic)
  }

  /**
   * Creates an empty parcel, which collects the records of one request. `origin` is the id of the request's
   * source. To find identical messages, messages are compared only with messages of the same `origin`.
   */
  parcel(topic: string, origin: string, occasion: Occasion): Parcel {
    let flights = this.#flights.get(origin)
    if (flights === undefined) {
      flights = new Map()
      this.#flights.set(origin, flights)
    }
    return new Parcel(topic, occasion, flights, this.#options.batchBytes / 2)
  }

  /**
   * Sends a parcel, which has the records of one request. Resolves once the parcel's outcome is known, and
   * after `ackTimeoutMs` at the latest. If one of the records can't be written now, no record of the parcel
   * is sent. If the other records were sent, they would be written twice, because the client sends all
   * records again.
   */
  async submit(parcel: Parcel): Promise<Delivered> {
    const { availability, bufferBytes, ackTimeoutMs } = this.#options
    const { topic, parts } = parcel
    this.#unanswered.forget()
    const joined = [...parcel.joined].filter(({ isAcknowledged }) => !isAcknowledged)
    if (parts.length === 0 && joined.length === 0) return 'acknowledged'
    if (!parts.every(({ partition }) => availability.takes(topic, partition))) return 'unavailable'
    const isThrottled = [...parts, ...joined].some(
      ({ partition }) => availability.throttleMs(topic, partition) > 0,
    )
    if (isThrottled) return 'throttled'
    if (this.#bytes + parcel.bytes > bufferBytes) return 'full'

    const { promise, resolve } = Promise.withResolvers<Delivered>()
    const ticket: Ticket = { open: parts.length + joined.length, delivered: undefined, resolve }
    for (const part of joined) part.tickets.push(ticket)
    for (const part of parts) this.#take(part, ticket)
    const deadline = setTimeout(() => this.#giveUp(ticket, [...joined, ...parts]), ackTimeoutMs)
    const delivered = await promise
    clearTimeout(deadline)
    if (delivered === 'throttled') this.#forget([...joined, ...parts])
    return delivered
  }

  /** Stops the outbox. After this call, nothing is sent. */
  stop(): void {
    this.#dispatch.stop()
  }

  #take(part: Part, ticket: Ticket): void {
    part.tickets.push(ticket)
    for (const id of part.ids) if (id !== undefined) part.flights.set(id, part)
    this.#records += part.records.length
    this.#bytes += part.bytes
    this.#dispatch.push(part.topic, part.partition, part)
  }

  #send(...[batches, route, onEnd]: Parameters<PartitionDispatchOptions<Part>['send']>): void {
    const { sender, availability, ackTimeoutMs, now } = this.#options
    const sentMs = now()
    const open = new Map(batches.map((batch) => [produceOf(batch), batch] as const))
    /** The produces that their broker doesn't read now. `true` if they are written later. */
    const throttled = new Map<Produce, boolean>()
    // When this timer fires, every request that waited for the records of this send has been answered.
    const late = setTimeout(() => {
      const reason = `no acknowledgement within ${ackTimeoutMs} ms`
      for (const produce of open.keys())
        if (!throttled.has(produce)) availability.failed(produce.topic, produce.partition, reason, sentMs)
    }, ackTimeoutMs)
    const settle = (produce: Produce, failure: string | undefined): void => {
      const batch = open.get(produce)
      open.delete(produce)
      if (open.size === 0) clearTimeout(late)
      if (batch === undefined) return
      const { topic, partition, items } = batch
      if (failure === undefined) {
        availability.worked(topic, partition)
        onEnd(batch, { kind: 'taken' })
        for (const part of items) this.#acknowledge(part)
        return
      }
      for (const part of items) if (isUnwanted(part)) this.#release(part)
      const again = items.filter((part) => !isUnwanted(part))
      if (throttled.get(produce) === false) onEnd(batch, { kind: 'split', again })
      else {
        availability.failed(topic, partition, failure, sentMs)
        onEnd(batch, { kind: 'failed', again })
      }
    }
    sender.send([...open.keys()], route, settle, (produce, throttleMs, isSent) => {
      throttled.set(produce, isSent)
      availability.throttled(produce.topic, produce.partition, throttleMs)
      for (const { tickets } of open.get(produce)?.items ?? [])
        for (const ticket of tickets) finish(ticket, 'throttled')
    })
  }

  #acknowledge(part: Part): void {
    part.isAcknowledged = true
    this.#release(part)
    for (const ticket of part.tickets) {
      ticket.open--
      if (ticket.open === 0) finish(ticket, 'acknowledged')
    }
    if (part.tickets.some(({ delivered }) => delivered !== undefined && delivered !== 'acknowledged')) {
      this.#unanswered.keep(part)
    }
  }

  /** Removes a part from the parts in flight. */
  #release(part: Part): void {
    this.#records -= part.records.length
    this.#bytes -= part.bytes
    for (const id of part.ids) {
      if (id !== undefined && part.flights.get(id) === part) part.flights.delete(id)
    }
  }

  /**
   * Answers a request that has timed out. The answer asks the client to send all messages again. Drops the
   * unsent records of this request, except records for which another request waits too. Remembers its
   * acknowledged parts, so that they aren't written a second time when the client sends them again.
   */
  #giveUp(ticket: Ticket, parts: readonly Part[]): void {
    finish(ticket, 'too_late')
    this.#forget(parts)
  }

  #forget(parts: readonly Part[]): void {
    for (const part of parts) {
      if (part.isAcknowledged) this.#unanswered.keep(part)
      else {
        // Parts time out in the order in which they arrived, so parts for which no request waits are at the
        // head of the queue. If a throttle has ended a request early, a part of it may be further behind.
        // This part is written, and kept when it is acknowledged.
        const queue = this.#dispatch.queueOf(part.topic, part.partition)
        for (const unwanted of queue.takeWhile(isUnwanted)) this.#release(unwanted)
      }
    }
  }
}

function produceOf({ topic, partition, items }: Batch<Part>): Produce {
  const records = items.length === 1 ? (items[0]?.records ?? []) : items.flatMap((part) => part.records)
  return { topic, partition, records }
}

/** Returns true if no request waits for this part any more. */
function isUnwanted({ tickets }: Part): boolean {
  return tickets.every(({ delivered }) => delivered !== undefined)
}

function finish(ticket: Ticket, delivered: Delivered): void {
  if (ticket.delivered !== undefined) return
  ticket.delivered = delivered
  ticket.resolve(delivered)
}
