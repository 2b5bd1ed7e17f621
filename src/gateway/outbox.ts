import type { Availability } from './availability.ts'
import type { Occasion } from './clock.ts'
import { isUnwanted, PartitionQueue, type Produce, type Room } from './partition-queue.ts'
import { type Delivered, Parcel, type Part, type Ticket } from './parcel.ts'
import { Unanswered } from './unanswered.ts'

/** What the outbox needs of a Kafka producer. */
export type ProduceSender = {
  /**
   * Sends what is for each partition once, and calls `onSettled` once for each: without `failure` when Kafka
   * has acknowledged it. The `isolated` route never holds up the main one.
   */
  send(
    produces: readonly Produce[],
    route: 'main' | 'isolated',
    onSettled: (produce: Produce, failure: string | undefined) => void,
  ): void
}

export type OutboxOptions = {
  readonly sender: ProduceSender
  readonly availability: Availability
  /** How long records wait for others to travel with, while nothing is under way. */
  readonly lingerMs: number
  /** How long a request waits for its acknowledgement. */
  readonly ackTimeoutMs: number
  /** Most bytes of records that aren't acknowledged yet. */
  readonly bufferBytes: number
  /** The most that a topic takes at once for a partition, in bytes. */
  readonly batchBytes: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** A produce of more would hold up the event loop for long. */
const maxSendRecords = 2_000
const maxSendBytes = 4_000_000
/** A produce that takes longer is that of a sick partition: those that it has nothing for wait no more. */
const slowMs = 250

/**
 * Brings the records of many requests to Kafka in few produces, and tells each request what became of its
 * own. Owns what waits, and what is in flight. One produce is under way at a time, and takes along all that
 * came since the one before. Each part of a request is settled by the partition that it is for. What a
 * partition doesn't take is sent to it again, apart from what is for others, until nobody waits for it.
 */
export class Outbox {
  readonly #options: OutboxOptions
  readonly #queues = new Map<string, PartitionQueue[]>()
  /** Lanes that have something to send, in the order in which they came to have it. */
  readonly #ready = new Set<PartitionQueue>()
  readonly #flights = new Map<string, Map<string, Part>>()
  readonly #unanswered: Unanswered
  #bytes = 0
  #records = 0
  #isSending = false
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: OutboxOptions) {
    this.#options = options
    this.#unanswered = new Unanswered(options.now)
  }

  /** Bytes of records that aren't acknowledged yet. */
  get bytes(): number {
    return this.#bytes
  }

  /** Records that aren't acknowledged yet. */
  get records(): number {
    return this.#records
  }

  /** Why nothing for a topic would be taken now; `undefined` where something may be. */
  obstacle(topic: string): 'unavailable' | 'full' | undefined {
    const { availability, bufferBytes } = this.#options
    if (!availability.isAvailable(topic)) return 'unavailable'
    return this.#bytes >= bufferBytes ? 'full' : undefined
  }

  /** An empty parcel. `origin` separates the ids of one source from those of another. */
  parcel(topic: string, origin: string, occasion: Occasion): Parcel {
    let flights = this.#flights.get(origin)
    if (flights === undefined) {
      flights = new Map()
      this.#flights.set(origin, flights)
    }
    return new Parcel(topic, occasion, flights, this.#options.batchBytes / 2)
  }

  /**
   * Takes a parcel, and resolves once it is known what became of it; at the latest after `ackTimeoutMs`.
   * Where one of its records can't be written now, none of them is sent: its client sends all again, and what
   * is sent twice is written twice.
   */
  async submit(parcel: Parcel): Promise<Delivered> {
    const { availability, bufferBytes, ackTimeoutMs } = this.#options
    const { topic, parts } = parcel
    this.#unanswered.forget()
    const joined = [...parcel.joined].filter(({ isAcknowledged }) => !isAcknowledged)
    if (parts.length === 0 && joined.length === 0) return 'acknowledged'
    if (!parts.every(({ partition }) => availability.takes(topic, partition))) return 'unavailable'
    if (this.#bytes + parcel.bytes > bufferBytes) return 'full'

    const { promise, resolve } = Promise.withResolvers<Delivered>()
    const ticket: Ticket = { open: parts.length + joined.length, delivered: undefined, resolve }
    for (const part of joined) part.tickets.push(ticket)
    for (const part of parts) this.#take(part, ticket)
    this.#sendLater()
    const deadline = setTimeout(() => this.#giveUp(ticket, [...joined, ...parts]), ackTimeoutMs)
    const delivered = await promise
    clearTimeout(deadline)
    return delivered
  }

  /** Nothing is sent after it. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #queueOf({ topic, partition }: Part): PartitionQueue {
    let queues = this.#queues.get(topic)
    if (queues === undefined) {
      queues = []
      this.#queues.set(topic, queues)
    }
    return (queues[partition] ??= new PartitionQueue(topic, partition, this.#options.batchBytes))
  }

  #take(part: Part, ticket: Ticket): void {
    part.tickets.push(ticket)
    for (const id of part.ids) if (id !== undefined) part.flights.set(id, part)
    this.#records += part.records.length
    this.#bytes += part.bytes
    const queue = this.#queueOf(part)
    const wasEmpty = queue.isEmpty
    queue.push(part)
    if (wasEmpty && !queue.isSending) this.#makeReady(queue, this.#options.lingerMs)
  }

  /**
   * What a healthy queue has travels with that of others; what a sick one has goes by itself, after a rest.
   */
  #makeReady(queue: PartitionQueue, restMs: number): void {
    if (queue.isEmpty || this.#isStopped) return
    if (!queue.isSick) this.#ready.add(queue)
    else setTimeout(() => this.#sendIsolated(queue), restMs)
  }

  /** What comes while nothing is under way waits for others for a moment. */
  #sendLater(): void {
    if (this.#isSending || this.#timer !== undefined || this.#ready.size === 0 || this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#sendMain()
    }, this.#options.lingerMs)
  }

  #sendMain(): void {
    if (this.#isSending || this.#isStopped) return
    const produces = this.#takeProduces()
    if (produces.length === 0) return
    this.#isSending = true
    let open = produces.length
    const goOn = (): void => {
      clearTimeout(slow)
      open = 0
      this.#isSending = false
      this.#sendMain()
    }
    const slow = setTimeout(goOn, slowMs)
    this.#send(produces, 'main', () => {
      open--
      if (open === 0) goOn()
      else this.#sendLater()
    })
  }

  #sendIsolated(queue: PartitionQueue): void {
    if (queue.isSending || queue.isEmpty || this.#isStopped) return
    const produce = this.#produceOf(queue, { records: maxSendRecords, bytes: maxSendBytes }, true)
    this.#send([produce], 'isolated', () => this.#sendLater())
  }

  /** As much as one produce may have. */
  #takeProduces(): Produce[] {
    const room: Room = { records: maxSendRecords, bytes: maxSendBytes }
    const produces: Produce[] = []
    for (const queue of this.#ready) {
      const produce = this.#produceOf(queue, room, produces.length === 0)
      if (produce.parts.length === 0) break
      produces.push(produce)
      this.#ready.delete(queue)
    }
    return produces
  }

  #produceOf(queue: PartitionQueue, room: Room, isFirst: boolean): Produce {
    const parts = queue.take(room, isFirst)
    queue.isSending = parts.length > 0
    const { topic, partition } = queue
    const records = parts.length === 1 ? (parts[0]?.records ?? []) : parts.flatMap((part) => part.records)
    return { topic, partition, records, queue, parts, sentMs: this.#options.now() }
  }

  /** Calls `onSettled` when what became of a produce has been told to all that waited for it. */
  #send(
    produces: readonly Produce[],
    route: 'main' | 'isolated',
    onSettled: (produce: Produce) => void,
  ): void {
    const { sender, availability, ackTimeoutMs } = this.#options
    const open = new Set(produces)
    // Who waited for it has been told by then.
    const late = setTimeout(() => {
      const reason = `no acknowledgement within ${ackTimeoutMs} ms`
      for (const { topic, partition, sentMs } of open) availability.failed(topic, partition, reason, sentMs)
    }, ackTimeoutMs)
    sender.send(produces, route, (produce, failure) => {
      open.delete(produce)
      if (open.size === 0) clearTimeout(late)
      if (failure === undefined) this.#worked(produce)
      else this.#failed(produce, failure)
      onSettled(produce)
    })
  }

  #worked({ topic, partition, queue, parts }: Produce): void {
    this.#options.availability.worked(topic, partition)
    queue.worked()
    this.#makeReady(queue, queue.backoffMs)
    for (const part of parts) this.#acknowledge(part)
  }

  #failed({ topic, partition, queue, parts, sentMs }: Produce, failure: string): void {
    this.#options.availability.failed(topic, partition, failure, sentMs)
    for (const part of parts) if (isUnwanted(part)) this.#release(part)
    queue.failed(parts.filter((part) => !isUnwanted(part)))
    this.#makeReady(queue, queue.backoffMs)
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

  /** It is no longer in flight. */
  #release(part: Part): void {
    this.#records -= part.records.length
    this.#bytes -= part.bytes
    for (const id of part.ids) {
      if (id !== undefined && part.flights.get(id) === part) part.flights.delete(id)
    }
  }

  /**
   * What nobody waits for any more isn't sent: its clients are told to send it again. What is written already
   * isn't then.
   */
  #giveUp(ticket: Ticket, parts: readonly Part[]): void {
    finish(ticket, 'too_late')
    for (const part of parts) {
      if (part.isAcknowledged) this.#unanswered.keep(part)
      else for (const unwanted of this.#queueOf(part).takeUnwanted()) this.#release(unwanted)
    }
  }
}

function finish(ticket: Ticket, delivered: Delivered): void {
  if (ticket.delivered !== undefined) return
  ticket.delivered = delivered
  ticket.resolve(delivered)
}
