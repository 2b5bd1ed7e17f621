import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { compressedRequest } from './compressed-produce.ts'
import { errorCodes } from './error-codes.ts'
import { type ProducedRecords, ProduceLink } from './produce-link.ts'
import type { WrittenRecord } from './produce-request.ts'
import { within } from './within.ts'

/** Writes what may be lost. It never throws, and nobody waits for it. */
export type LossyProducer = {
  /** It holds all that it may. */
  readonly isFull: boolean
  /**
   * Takes a value for a partition, which is of so many `records`; where there is no room for it, they are
   * dropped.
   */
  offer(partition: number, value: Buffer, records: number): void
  /** Writes what it holds, for so long at most; the rest is dropped. */
  stop(withinMs: number): Promise<void>
}

export type LossyProducerOptions = {
  readonly kafka: Kafka
  readonly topic: string
  /** The most that waits, or is under way, in bytes. */
  readonly maxBytes: number
  readonly onWritten: (records: number) => void
  readonly onDropped: (records: number, why: DropReason) => void
  /** Told when Kafka begins to take nothing, with what it says, and when it takes something again. */
  readonly onTrouble: (reason: string | undefined) => void
}

/**
 * `full`: Kafka can't keep up. `refused`: it did not take them. `unknown`: its answer did not come; it may
 * have taken them.
 */
export type DropReason = 'full' | 'refused' | 'unknown'

const timeouts = { replicasTimeoutMs: 5_000, sendTimeoutMs: 10_000 }
const maxRequestBytes = 512 * 1024
const minBackoffMs = 250
const maxBackoffMs = 5_000
/** So often a value is sent, where Kafka says that it hasn't taken it: a leader that moves is followed. */
const maxTries = 5

type Waiting = {
  readonly partition: number
  readonly record: WrittenRecord
  readonly bytes: number
  readonly records: number
  tries: number
}

/** Values of one partition that are sent together. */
type Parcel = ProducedRecords & { readonly waiting: readonly Waiting[] }

export function startLossyProducer(options: LossyProducerOptions): LossyProducer {
  return new BoundedProducer(options)
}

/**
 * One request at a time, on connections of its own. What may have been written isn't sent again: nothing
 * comes twice.
 */
class BoundedProducer implements LossyProducer {
  readonly #options: LossyProducerOptions
  readonly #link: ProduceLink
  readonly #stopping = new AbortController()
  #queue: Waiting[] = []
  #heldBytes = 0
  #sending: Promise<void> | undefined
  #isTroubled = false

  constructor(options: LossyProducerOptions) {
    this.#options = options
    this.#link = new ProduceLink(options.kafka, timeouts, compressedRequest)
  }

  get isFull(): boolean {
    return this.#heldBytes >= this.#options.maxBytes
  }

  offer(partition: number, value: Buffer, records: number): void {
    if (this.isFull || this.#stopping.signal.aborted) {
      this.#options.onDropped(records, 'full')
      return
    }
    this.#heldBytes += value.length
    const record = { key: String(partition), value }
    this.#queue.push({ partition, record, bytes: value.length, records, tries: 0 })
    this.#sending ??= this.#sendAll()
  }

  async stop(withinMs: number): Promise<void> {
    if (this.#sending !== undefined) await within(withinMs, this.#sending)
    this.#stopping.abort()
    for (const waiting of this.#queue.splice(0)) this.#drop(waiting, 'full')
    await within(withinMs, this.#link.close())
  }

  async #sendAll(): Promise<void> {
    let backoffMs = minBackoffMs
    // What is offered in this turn of the event loop goes together.
    await Promise.resolve()
    while (this.#queue.length > 0 && !this.#stopping.signal.aborted) {
      if (await this.#sendSome()) {
        backoffMs = minBackoffMs
        continue
      }
      await delay(backoffMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
      backoffMs = Math.min(2 * backoffMs, maxBackoffMs)
    }
    this.#sending = undefined
  }

  /** Gives false where nothing was taken. */
  async #sendSome(): Promise<boolean> {
    const parcels = parcelsOf(this.#options.topic, this.#take())
    const open = new Set(parcels)
    let isTaken = false
    let trouble = 'no answer'
    try {
      await this.#link.send(parcels, (parcel, outcome) => {
        if (!open.delete(parcel)) return
        isTaken ||= outcome.isWritten
        if (!outcome.isWritten) trouble = outcome.reason
        this.#settle(parcel, outcome.isWritten ? 'written' : outcome.errorCode)
      })
    } catch (error) {
      trouble = error instanceof Error ? error.message : String(error)
    }
    for (const parcel of open) this.#settle(parcel, undefined)
    open.clear()
    this.#tell(isTaken ? undefined : trouble)
    return isTaken
  }

  #take(): Waiting[] {
    let bytes = 0
    let count = 0
    while (count < this.#queue.length && bytes < maxRequestBytes) bytes += this.#queue[count++]?.bytes ?? 0
    return this.#queue.splice(0, count)
  }

  #settle({ waiting }: Parcel, outcome: 'written' | number | undefined): void {
    for (const one of waiting) {
      if (outcome === 'written') {
        this.#heldBytes -= one.bytes
        this.#options.onWritten(one.records)
      } else if (outcome === undefined) this.#drop(one, 'unknown')
      else if (++one.tries < maxTries && !isTooLarge(outcome)) this.#queue.push(one)
      else this.#drop(one, 'refused')
    }
  }

  #drop({ bytes, records }: Waiting, why: DropReason): void {
    this.#heldBytes -= bytes
    this.#options.onDropped(records, why)
  }

  #tell(trouble: string | undefined): void {
    const isTroubled = trouble !== undefined
    if (isTroubled === this.#isTroubled) return
    this.#isTroubled = isTroubled
    this.#options.onTrouble(trouble)
  }
}

function parcelsOf(topic: string, waiting: readonly Waiting[]): Parcel[] {
  const byPartition = Map.groupBy(waiting, ({ partition }) => partition)
  return [...byPartition].map(([partition, ofIt]) => ({
    topic,
    partition,
    records: ofIt.map(({ record }) => record),
    waiting: ofIt,
  }))
}

function isTooLarge(errorCode: number): boolean {
  return errorCode === errorCodes.MESSAGE_TOO_LARGE || errorCode === errorCodes.RECORD_LIST_TOO_LARGE
}
