import type { Kafka } from 'kafkajs'
import { setTimeout as delay } from 'node:timers/promises'
import { Fifo } from '../../async/fifo.ts'
import {
  type Batch,
  PartitionDispatch,
  type PartitionDispatchOptions,
} from '../../async/partition-dispatch.ts'
import { isTooLarge } from '../wire/error-codes.ts'
import { type FailingPartition, FailingPartitions, unknownPartition } from './failing-partitions.ts'
import type { OnClockSkew } from './clock-skew.ts'
import { missingTopic } from './obstacle.ts'
import type { LinkTimeouts } from './produce-link.ts'
import type { ProduceOutcome } from './produce-outcome.ts'
import { RoutedLinks } from './routed-links.ts'
import { headersBytes } from '../wire/produce-request.ts'
import { throttlePatienceMs } from '../wire/throttle.ts'
import { whenLate, within } from '../../async/within.ts'
import { messageOf } from '../wire/errors.ts'
import type { PartitionRecords, WrittenRecord } from '../../message/records.ts'

/**
 * A record to write. A record that was made from another record keeps the partition number of that record. A
 * new record is placed by its key, with murmur2 as in Java's clients.
 */
export type ProducerRecord = Omit<WrittenRecord, 'key'> & {
  readonly topic: string
  readonly partition?: number
  readonly key: Buffer | null
}

/**
 * The result of `produce`. `refused` means that the broker will never take this record, because the record is
 * too large for its topic or for any topic.
 */
export type ProduceResult = 'acknowledged' | 'refused'

export type RecordProducer = {
  /**
   * Resolves once all in-sync replicas have the record. If the partition doesn't take the record, the
   * producer sends the record again and again, until the producer is stopped.
   */
  produce(record: ProducerRecord): Promise<ProduceResult>
  /**
   * Writes a record like `produce`, and returns its offset. If an acknowledgement was lost, the record may
   * also exist at other offsets, lower or higher.
   */
  produceAt(record: ProducerRecord): Promise<{ offset: number } | 'refused'>
  /** The number of records that wait for their acknowledgement. */
  readonly pending: number
  /** For each topic, the number of partitions that have taken nothing for some seconds. */
  readonly failing: ReadonlyMap<string, number>
  /**
   * The time from which all brokers read again what this producer sends, by `performance.now`. It lies in the
   * past unless a broker throttles this client.
   */
  readonly readsFromMs: number
  stop(): Promise<void>
}

export type ProducerOptions = {
  kafka: Kafka
  /**
   * The limit for a record, in bytes. A larger record is refused without being sent. The limit is needed
   * because a broker closes the connection if a request is larger than its `socket.request.max.bytes`. A
   * record of that size would be sent again forever.
   */
  maxRecordBytes: number
  /**
   * The limit for the records of a partition that are sent together, in bytes. A record that is larger than
   * this limit is sent alone.
   */
  batchBytes?: number
  /** A partition takes no records while it has fewer in-sync replicas than this number. */
  minInsync?: number
  /** Called each time that a partition has not taken the records that were sent to it. */
  onFailed?: () => void
  /**
   * Called with `isFailing` true when a partition has taken nothing for some seconds. Called with `isFailing`
   * false when this partition takes records again. The records of other partitions are still written.
   */
  onFailing?: (failing: FailingPartition, isFailing: boolean) => void
  /**
   * Called with true when no partition takes records any more, and with false when a partition takes records
   * again.
   */
  onStalled?: (isStalled: boolean, reason: string) => void
  /** Called after each write to a topic whose records have the time of the broker. */
  onClockSkew?: OnClockSkew
}

const defaultBatchBytes = 900_000
const mostRecords = 1_000
/**
 * How long records are collected before they are sent together, in milliseconds. Records are collected
 * because a request costs as much CPU as a hundred records, and no record of this producer is urgent.
 */
const lingerMs = 20
const backoffs = { minBackoffMs: 250, maxBackoffMs: 5_000 }
/**
 * The time after which a partition that takes nothing is reported, in milliseconds. If the leader of a
 * partition moves, the new leader is usually found within this time.
 */
const patienceMs = 3_000
/**
 * Long timeouts, so that slow replicas can get the records in time. The timeouts can be long because only
 * records of the same partitions wait for a request under way.
 */
const timeouts: LinkTimeouts = { replicasTimeoutMs: 10_000, sendTimeoutMs: 20_000 }

type Waiting = {
  readonly record: ProducerRecord
  readonly bytes: number
  /** Reports the result. The offset is -1 if the record is refused. */
  readonly resolve: (result: ProduceResult, offset: number) => void
}

type Sent = PartitionRecords & { readonly batch: Batch<Waiting> }

/** Starts a producer, and connects. Rejects when no broker can be reached. */
export async function startProducer(options: ProducerOptions): Promise<RecordProducer> {
  const producer = new PartitionedProducer(options)
  await producer.connect()
  return producer
}

/**
 * Collects the records of a partition while the previous batch of the partition is under way. The producer
 * isn't idempotent. Each partition has one produce request under way at a time, so its records are written in
 * the order in which they came. If an acknowledgement is lost, a record may be written twice, which is
 * allowed.
 */
class PartitionedProducer implements RecordProducer {
  readonly #options: ProducerOptions
  readonly #links: RoutedLinks
  readonly #dispatch: PartitionDispatch<Waiting>
  readonly #failing: FailingPartitions
  /** The records that have no partition yet, by topic. */
  readonly #unplaced = new Map<string, Fifo<Waiting>>()
  readonly #stopping = new AbortController()
  #pending = 0

  constructor(options: ProducerOptions) {
    const {
      kafka,
      batchBytes = defaultBatchBytes,
      minInsync = 1,
      onFailing,
      onStalled,
      onClockSkew,
    } = options
    this.#options = options
    this.#links = new RoutedLinks(kafka, timeouts, { onClockSkew })
    this.#failing = new FailingPartitions({
      patienceMs,
      onFailing: (failing, isFailing) => onFailing?.(failing, isFailing),
      onStalled: (isStalled, reason) => onStalled?.(isStalled, reason),
      isAnyOpen: (isFailing) => this.#isAnyOpen(minInsync, isFailing),
    })
    this.#dispatch = new PartitionDispatch({
      lingerMs,
      lingersBetween: true,
      batchBytes,
      ...backoffs,
      most: { records: mostRecords, bytes: batchBytes },
      recordsOf: () => 1,
      send: (batches, route, onEnd) => this.#send(batches, route, onEnd),
    })
  }

  connect(): Promise<void> {
    return this.#links.main.connect()
  }

  produce(record: ProducerRecord): Promise<ProduceResult> {
    return new Promise((resolve) => this.#enqueue(record, resolve))
  }

  produceAt(record: ProducerRecord): Promise<{ offset: number } | 'refused'> {
    return new Promise((resolve) => {
      this.#enqueue(record, (result, offset) => resolve(result === 'refused' ? result : { offset }))
    })
  }

  get pending(): number {
    return this.#pending
  }

  get failing(): ReadonlyMap<string, number> {
    return this.#failing.reported
  }

  get readsFromMs(): number {
    return this.#links.readsFromMs
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#dispatch.stop()
    this.#failing.stop()
    await this.#links.close()
  }

  #enqueue(record: ProducerRecord, resolve: Waiting['resolve']): void {
    const bytes = sizeOf(record)
    if (bytes > this.#options.maxRecordBytes) {
      resolve('refused', -1)
      return
    }
    this.#pending++
    const waiting = { record, bytes, resolve }
    if (record.partition === undefined) this.#placeLater(waiting)
    else this.#dispatch.push(record.topic, record.partition, waiting)
  }

  #placeLater(waiting: Waiting): void {
    const { topic } = waiting.record
    const line = this.#unplaced.get(topic)
    if (line !== undefined) {
      line.push(waiting)
      return
    }
    const started = new Fifo<Waiting>()
    started.push(waiting)
    this.#unplaced.set(topic, started)
    void this.#placeAll(topic, started)
  }

  async #placeAll(topic: string, line: Fifo<Waiting>): Promise<void> {
    const { signal } = this.#stopping
    let backoffMs = backoffs.minBackoffMs
    for (let first = line.peek(); first !== undefined && !signal.aborted; first = line.peek()) {
      const placed = await this.#placeOf(first.record)
      if (placed.partition !== undefined) {
        backoffMs = backoffs.minBackoffMs
        line.shift()
        this.#failing.placed(topic)
        this.#dispatch.push(topic, placed.partition, first)
        continue
      }
      this.#failed({ topic, partition: unknownPartition, reason: placed.reason })
      await delay(backoffMs, undefined, { signal }).catch(() => undefined)
      backoffMs = Math.min(backoffMs * 2, backoffs.maxBackoffMs)
    }
    this.#unplaced.delete(topic)
  }

  async #placeOf({ topic, key }: ProducerRecord): Promise<{ partition: number | undefined; reason: string }> {
    const failing = { topic, partition: unknownPartition, reason: noAnswer }
    const answered = whenLate(
      patienceMs,
      () => this.#failing.failed(failing, true),
      () => this.#links.main.readsFromMs,
    )
    try {
      const placing = this.#links.main.placeOf(topic, key)
      const readsFrom = (): number => this.#links.main.readsFromMs
      if (!(await within(timeouts.sendTimeoutMs, placing, readsFrom)))
        return { partition: undefined, reason: noAnswer }
      return { partition: await placing, reason: missingTopic(topic) }
    } catch (error) {
      return { partition: undefined, reason: messageOf(error) }
    } finally {
      answered()
    }
  }

  #send(...[batches, route, onEnd]: Parameters<PartitionDispatchOptions<Waiting>['send']>): void {
    const sends = batches.map((batch): Sent => {
      const { topic, partition, items } = batch
      return { topic, partition, records: items.map(({ record }) => record), batch }
    })
    const slow = (items: readonly Sent[], isThrottled: boolean): void => {
      const why = isThrottled ? throttled : noAnswer
      for (const { topic, partition } of items)
        this.#failing.failed({ topic, partition, reason: `${topic}/${partition}: ${why}` }, true)
    }
    const listener = { slow: { afterMs: patienceMs, afterThrottledMs: throttlePatienceMs, call: slow } }
    void this.#links
      .on(route)
      .send(sends, ({ batch }, outcome) => this.#settle(batch, outcome, onEnd), listener)
  }

  #settle(
    batch: Batch<Waiting>,
    outcome: ProduceOutcome,
    onEnd: Parameters<PartitionDispatchOptions<Waiting>['send']>[2],
  ): void {
    const { topic, partition, items } = batch
    if (outcome.isWritten) {
      this.#failing.took(topic, partition)
      for (const [index, item] of items.entries()) this.#end(item, 'acknowledged', outcome.offset + index)
      onEnd(batch, { kind: 'taken' })
      return
    }
    if (!isTooLarge(outcome.errorCode)) {
      this.#failed({ topic, partition, reason: outcome.reason })
      onEnd(batch, { kind: 'failed', again: items })
      return
    }
    this.#failing.took(topic, partition)
    // The broker refuses a whole batch if one of its records is too large for the topic.
    const [only] = items
    if (items.length > 1 || only === undefined) {
      onEnd(batch, { kind: 'split', again: items })
      return
    }
    this.#end(only, 'refused', -1)
    onEnd(batch, { kind: 'taken' })
  }

  #end({ resolve }: Waiting, result: ProduceResult, offset: number): void {
    this.#pending--
    resolve(result, offset)
  }

  #failed(failing: FailingPartition): void {
    this.#options.onFailed?.()
    this.#failing.failed(failing)
  }

  async #isAnyOpen(
    minInsync: number,
    isFailing: (topic: string, partition: number) => boolean,
  ): Promise<boolean> {
    const topics = [...new Set([...this.#dispatch.topics, ...this.#unplaced.keys()])]
    const look = { minInsync, timeoutMs: patienceMs }
    try {
      const open = await this.#links.main.openPartitions(topics, look)
      return open.some(({ topic, partition }) => !isFailing(topic, partition))
    } catch {
      return false
    }
  }
}

const noAnswer = `no acknowledgement within ${patienceMs} ms`
const throttled = `nothing was written for ${throttlePatienceMs / 60_000} min, because a quota of this client id or its user is used up: raise it (producer_byte_rate, request_percentage)`

/**
 * The most bytes that the format adds to a record without headers: the header of a batch that has only this
 * record, and all length fields.
 */
const recordOverheadBytes = 128

/** Returns an upper limit on the bytes of a record in a batch of its own. */
export function sizeOf({ key, value, headers }: WrittenRecord): number {
  const bytes = recordOverheadBytes + headersBytes(headers)
  return bytes + Buffer.byteLength(key ?? '') + Buffer.byteLength(value ?? '')
}

/**
 * Returns a function for `onFailing`. The function calls `tell` with true and the reason when a partition
 * begins to fail while no other partition fails. It calls `tell` with false when no partition fails any more.
 */
export function whileAnyFails(
  tell: (isFailing: boolean, reason: string) => void,
): NonNullable<ProducerOptions['onFailing']> {
  let count = 0
  return ({ reason }, isFailing) => {
    count += isFailing ? 1 : -1
    if (isFailing ? count === 1 : count === 0) tell(isFailing, isFailing ? reason : '')
  }
}
