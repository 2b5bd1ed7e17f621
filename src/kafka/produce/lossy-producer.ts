import type { Kafka } from 'kafkajs'
import {
  type Batch,
  type BatchEnd,
  PartitionDispatch,
  type PartitionDispatchOptions,
} from '../../async/partition-dispatch.ts'
import { within } from '../../async/within.ts'
import type { WrittenRecord } from '../../message/records.ts'
import { compressedRequest } from '../wire/compressed-produce.ts'
import { isTooLarge } from '../wire/error-codes.ts'
import type { OnClockSkew } from './clock-skew.ts'
import type { ProduceLink } from './produce-link.ts'
import type { ProduceOutcome } from './produce-outcome.ts'
import { RoutedLinks } from './routed-links.ts'

/**
 * A producer for records that may be lost. `offer` never throws, and nobody waits until the records are
 * written.
 */
export type LossyProducer = {
  /** True while the producer holds as many bytes as `maxBytes` allows. */
  readonly isFull: boolean
  /**
   * Takes a value for a partition. `records` is the number of records in the value. Drops the value if there
   * is no room.
   */
  offer(partition: number, value: Buffer, records: number): void
  /**
   * Writes the values that the producer holds, for at most `withinMs` milliseconds. Drops the values that
   * aren't written by then.
   */
  stop(withinMs: number): Promise<void>
}

export type LossyProducerOptions = {
  readonly kafka: Kafka
  readonly topic: string
  /** The most bytes that may wait or be under way to Kafka. */
  readonly maxBytes: number
  readonly onWritten: (records: number) => void
  readonly onDropped: (records: number, why: DropReason) => void
  /**
   * Called with a reason when a partition begins to fail while no other partition fails. Called with
   * `undefined` when no partition fails any more.
   */
  readonly onTrouble: (reason: string | undefined) => void
  /** Called after each write to a topic whose records have the time of the broker. */
  readonly onClockSkew?: OnClockSkew
  /** The connections. Default: connections to Kafka. */
  readonly links?: LossyLinks
}

/** The part of `RoutedLinks` that a lossy producer uses. */
export type LossyLinks = Pick<RoutedLinks, 'leadersOf' | 'close'> & {
  on(...route: Parameters<RoutedLinks['on']>): Pick<ProduceLink, 'send'>
}

/**
 * The reason why records were dropped. With `full`, Kafka can't keep up. With `refused`, Kafka did not take
 * them. With `unknown`, no answer came, so Kafka may have taken them.
 */
export type DropReason = 'full' | 'refused' | 'unknown'

const timeouts = { replicasTimeoutMs: 5_000, sendTimeoutMs: 10_000 }
/** Small requests, because compressing a larger one would block the event loop for too long. */
const maxRequestBytes = 512 * 1024
const most = { records: 1_000, bytes: 2 * maxRequestBytes }
const backoffs = { minBackoffMs: 250, maxBackoffMs: 5_000 }
/**
 * The most tries to send a value. A value is sent again only if it is certain that Kafka has not taken the
 * value. These tries take long enough for the leader of a partition to move to another broker. A try without
 * a connection to the leader doesn't count.
 */
const maxTries = 5

/**
 * The time after which the failure of a partition is forgotten, in milliseconds. If failures weren't
 * forgotten, a partition that gets no further values would count as failing for good.
 */
const troubleForgottenMs = 60_000

type Value = {
  readonly record: WrittenRecord
  readonly bytes: number
  readonly records: number
  /** The leader of the partition when the value was offered. `undefined` if it wasn't known. */
  readonly leader: number | undefined
  isSending: boolean
  tries: number
}

export function startLossyProducer(options: LossyProducerOptions): LossyProducer {
  return new BoundedProducer(options)
}

/**
 * Sends the values like the other producers, but drops a value if Kafka may have taken it, so that no value
 * is written twice. Also drops values if there is no room for them.
 */
class BoundedProducer implements LossyProducer {
  readonly #options: LossyProducerOptions
  readonly #links: LossyLinks
  readonly #dispatch: PartitionDispatch<Value>
  readonly #held = new Set<Value>()
  #heldBytes = 0
  /** The bytes that are held, by the leader of their partition. */
  readonly #bytesOf = new Map<number | undefined, number>()
  /**
   * The time of each partition's last failure, by `performance.now`. A partition isn't listed if values were
   * written to it after its failure.
   */
  readonly #failed = new Map<number, number>()
  #isTroubled = false
  #isStopping = false
  /** Called when the producer holds nothing any more. */
  #onEmpty: (() => void) | undefined

  constructor(options: LossyProducerOptions) {
    this.#options = options
    const { kafka, links, onClockSkew } = options
    this.#links = links ?? new RoutedLinks(kafka, timeouts, { requestOf: compressedRequest, onClockSkew })
    this.#dispatch = new PartitionDispatch({
      // All values that are offered in this turn of the event loop are sent together.
      lingerMs: 0,
      lingersBetween: false,
      batchBytes: maxRequestBytes,
      ...backoffs,
      most,
      recordsOf: () => 1,
      send: (batches, route, onEnd) => this.#send(batches, route, onEnd),
    })
  }

  get isFull(): boolean {
    return this.#heldBytes >= this.#options.maxBytes
  }

  offer(partition: number, value: Buffer, records: number): void {
    const { topic, onDropped } = this.#options
    const leaders = this.#links.leadersOf(topic)
    const leader = leaders.get(partition)
    if (this.isFull || this.#isStopping || this.#isOverShare(leader, new Set(leaders.values()))) {
      onDropped(records, 'full')
      return
    }
    const bytes = value.length
    const record = { key: String(partition), value }
    const offered = { record, bytes, records, leader, isSending: false, tries: 0 }
    this.#held.add(offered)
    this.#count(offered, bytes)
    this.#dispatch.push(topic, partition, offered)
  }

  async stop(withinMs: number): Promise<void> {
    const emptied = new Promise<void>((resolve) => {
      if (this.#held.size === 0) resolve()
      else this.#onEmpty = resolve
    })
    await within(withinMs, emptied)
    this.#isStopping = true
    this.#dispatch.stop()
    for (const value of this.#held) if (!value.isSending) this.#drop(value, unsentBy(value))
    // The requests under way end when their connections are closed.
    await within(withinMs, Promise.all([this.#links.close(), emptied]))
  }

  /**
   * Returns true if the values for one leader take at least as many bytes as are still free in the producer.
   * This limits a leader that hangs to half of the room. Always returns false while only one of the leaders
   * has got values.
   */
  #isOverShare(leader: number | undefined, leaders: ReadonlySet<number>): boolean {
    const isShared = [...leaders].filter((one) => this.#bytesOf.has(one)).length > 1
    return isShared && (this.#bytesOf.get(leader) ?? 0) >= this.#options.maxBytes - this.#heldBytes
  }

  #send(...[batches, route, onEnd]: Parameters<PartitionDispatchOptions<Value>['send']>): void {
    const sends = batches.map((batch) => {
      const { topic, partition, items } = batch
      for (const item of items) item.isSending = true
      return { topic, partition, records: items.map(({ record }) => record), batch }
    })
    void this.#links.on(route).send(sends, ({ batch }, outcome) => {
      for (const item of batch.items) item.isSending = false
      onEnd(batch, this.#settle(batch, outcome))
    })
  }

  #settle({ partition, items }: Batch<Value>, outcome: ProduceOutcome): BatchEnd<Value> {
    if (outcome.isWritten) {
      this.#written(partition, items)
      return { kind: 'taken' }
    }
    const { reason, errorCode, isSent } = outcome
    this.#failed.set(partition, performance.now())
    this.#tell(reason)
    if (isTooLarge(errorCode)) {
      for (const one of items) this.#drop(one, 'refused')
      return { kind: 'taken' }
    }
    if (isSent && errorCode === undefined) {
      for (const one of items) this.#drop(one, 'unknown')
      return { kind: 'failed', again: [] }
    }
    const again: Value[] = []
    for (const one of items) {
      if (errorCode !== undefined) one.tries++
      if (this.#isStopping || one.tries >= maxTries) this.#drop(one, unsentBy(one))
      else again.push(one)
    }
    return { kind: 'failed', again }
  }

  #written(partition: number, values: readonly Value[]): void {
    for (const value of values) {
      this.#done(value)
      this.#options.onWritten(value.records)
    }
    const forgottenMs = performance.now() - troubleForgottenMs
    this.#failed.delete(partition)
    for (const [other, failedMs] of this.#failed) if (failedMs < forgottenMs) this.#failed.delete(other)
    if (this.#failed.size === 0) this.#tell(undefined)
  }

  #drop(value: Value, why: DropReason): void {
    this.#done(value)
    this.#options.onDropped(value.records, why)
  }

  #done(value: Value): void {
    this.#held.delete(value)
    this.#count(value, -value.bytes)
    if (this.#held.size === 0) this.#onEmpty?.()
  }

  #count({ leader }: Value, bytes: number): void {
    this.#heldBytes += bytes
    this.#bytesOf.set(leader, (this.#bytesOf.get(leader) ?? 0) + bytes)
  }

  #tell(trouble: string | undefined): void {
    const isTroubled = trouble !== undefined
    if (isTroubled === this.#isTroubled) return
    this.#isTroubled = isTroubled
    this.#options.onTrouble(trouble)
  }
}

/** The reason to drop a value that Kafka certainly doesn't have. */
function unsentBy({ tries }: Value): DropReason {
  return tries > 0 ? 'refused' : 'full'
}
