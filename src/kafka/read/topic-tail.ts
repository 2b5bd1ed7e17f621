import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { type ClusterView, createClusterView } from '../cluster/cluster-view.ts'
import type { FetchHandle } from '../fetch/fetch-handle.ts'
import { createFetcher, type Fetcher } from '../fetch/fetcher.ts'
import { type Location, locate } from '../fetch/positions.ts'
import type { FetchedRecord } from '../wire/record-batch.ts'

/**
 * The place from which a partition is read: the offset `next`, the beginning, or the end. `topicId` is the id
 * that the topic had when `next` was noted. It is empty if the id isn't known.
 */
export type TailStart = { readonly next: number; readonly topicId: string } | 'beginning' | 'end'

export type TopicTailOptions = {
  readonly kafka: Kafka
  readonly topic: string
  readonly startOf: (partition: number) => TailStart
  /** How long each fetch gathers records, in milliseconds. Default: records come as soon as they can. */
  readonly gatherMs?: number
  /**
   * Called before the first record of a partition, and again after another log has replaced the partition's
   * log. `isOther` is true if the reading was to continue in the former log.
   */
  readonly onStart: (partition: number, next: number, topicId: string, isOther: boolean) => void
  /**
   * Called with the records in the order of their offsets, once for each record. Keys and values are slices
   * of the answer to a fetch.
   */
  readonly onRecords: (partition: number, records: readonly FetchedRecord[]) => void
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>
}

/** A reader of all partitions of a topic, outside any consumer group. It reads until it is stopped. */
export type TopicTail = {
  /** Pauses fetching while `isFull` is true. */
  setFull(isFull: boolean): void
  /** Resolves once all partitions are read from their places. Never rejects. */
  readonly begun: Promise<void>
  /**
   * The reason why the topic or one of its partitions can't be read, in words. `undefined` while all
   * partitions are read.
   */
  readonly trouble: string | undefined
  /**
   * The age of the last record that was read from a partition, in milliseconds. This is the maximum over all
   * partitions with unread records. 0 if all records are read. -1 while the age isn't known. After all
   * records of a partition were read, the brokers may not report the end of its log for some seconds. Then
   * newer records may be unread, so the time since the last report counts as the age.
   */
  readonly behindMs: number
  stop(): Promise<void>
}

/**
 * The pause between two tries, in milliseconds, while the topic doesn't exist yet or a leader doesn't answer.
 */
const againMs = 1_000
const longestWaitMs = 250
/** The time for which the reported end of a log counts as its present end, in milliseconds. */
const endKnownForMs = 10_000

/**
 * `topicId` is the id of the topic to whose log the handle's position belongs. It is empty if it isn't known.
 */
type Reading = { handle: FetchHandle; lastMs: number; topicId: string }

export function startTopicTail(options: TopicTailOptions): TopicTail {
  return new PartitionsTail(options)
}

class PartitionsTail implements TopicTail {
  readonly #options: TopicTailOptions
  readonly #view: ClusterView
  readonly #fetcher: Fetcher
  readonly #readings = new Map<number, Reading>()
  readonly #stopping = new AbortController()
  readonly #begun = Promise.withResolvers<void>()
  readonly #running: Promise<void>
  #isFull = false
  #trouble: string | undefined = 'the topic has not been found yet'

  constructor(options: TopicTailOptions) {
    this.#options = options
    const { kafka, topic, gatherMs, log } = options
    this.#view = createClusterView({ kafka, topics: [topic], log })
    this.#fetcher = createFetcher({ view: this.#view, longestWaitMs: () => longestWaitMs, gatherMs, log })
    this.#running = this.#run()
  }

  setFull(isFull: boolean): void {
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    for (const { handle } of this.#readings.values()) {
      if (isFull) handle.pause()
      else handle.resume()
    }
  }

  get begun(): Promise<void> {
    return this.#begun.promise
  }

  get trouble(): string | undefined {
    return this.#trouble ?? this.#fetcher.troubled[0]?.trouble
  }

  get behindMs(): number {
    if (this.#readings.size === 0) return -1
    const nowMs = Date.now()
    let behindMs = 0
    for (const { handle, lastMs } of this.#readings.values()) {
      if (handle.end.atMs === 0) return -1
      const knownMs = nowMs - handle.end.atMs
      if (handle.position < handle.end.offset) behindMs = Math.max(behindMs, nowMs - lastMs)
      else if (knownMs > endKnownForMs) behindMs = Math.max(behindMs, knownMs)
    }
    return behindMs
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    // Closing the connections also ends fetches that a broker doesn't answer.
    await Promise.all([this.#fetcher.stop(), this.#view.close()])
    // `#run` may still be looking up the partitions' places, and may connect again for this. So the view is
    // closed once more when `#run` has ended. Otherwise an open connection would keep the process of a
    // command alive. `stop` doesn't wait for this, because a broker may not answer.
    void this.#running.then(() => this.#view.close())
  }

  /**
   * Begins to read all partitions, and later also partitions that are new. Gives up partitions that don't
   * exist any more. Resolves when the reader is stopped. Never rejects.
   */
  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#openMissing().catch((error: unknown) => {
        this.#trouble = error instanceof Error ? error.message : String(error)
      })
      const pauseMs = this.#trouble === undefined ? 10 * againMs : againMs
      await delay(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #openMissing(): Promise<void> {
    const { topic } = this.#options
    if (this.#view.partitionsOf(topic) === 0) await this.#view.connect()
    await this.#view.refresh()
    if (this.#stopping.signal.aborted) return
    const count = this.#view.partitionsOf(topic)
    if (count === 0) {
      this.#trouble = this.#view.troubleOf(topic, 0) ?? `${topic} does not exist: run sluice topics apply`
      return
    }
    this.#closeGone(count)
    const missing = Array.from({ length: count }, (_, partition) => partition).filter(
      (partition) => !this.#readings.has(partition),
    )
    const locations = await this.#locate(missing)
    if (this.#stopping.signal.aborted) return
    const later = locations.find((location) => location.kind === 'later')
    this.#trouble = later?.reason
    for (const [index, partition] of missing.entries()) {
      const location = locations[index]
      if (location !== undefined && location.kind !== 'later') this.#open(partition, location)
    }
    if (later === undefined) this.#begun.resolve()
  }

  /**
   * Gives up the partitions that the topic no longer has, because it was deleted and created again with
   * `count` partitions. A topic itself never loses a partition. But a broker may not know of a new one yet,
   * so a partition stays open while the topic has the same id.
   */
  #closeGone(count: number): void {
    const topicId = this.#view.topicIdOf(this.#options.topic) ?? ''
    for (const [partition, reading] of this.#readings) {
      if (partition < count || (topicId !== '' && reading.topicId === topicId)) continue
      reading.handle.close()
      this.#readings.delete(partition)
    }
  }

  #locate(partitions: readonly number[]): Promise<readonly Location[]> {
    const { topic, startOf } = this.#options
    return locate(
      this.#view,
      partitions.map((partition) => {
        const start = startOf(partition)
        if (typeof start === 'string') return { topic, partition, offset: -1 }
        const topicId = start.topicId === '' ? undefined : start.topicId
        return { topic, partition, offset: start.next, topicId }
      }),
    )
  }

  #open(partition: number, location: Exclude<Location, { kind: 'later' }>): void {
    const { topic, startOf, onStart } = this.#options
    const { log } = location
    const isOther = location.kind === 'truncated'
    const offset = startOf(partition) === 'end' ? log.end : offsetOf(location)
    const topicId = log.topicId ?? ''
    onStart(partition, offset, topicId, isOther)
    const reading: Omit<Reading, 'handle'> = { lastMs: Date.now(), topicId }
    const handle = this.#fetcher.open({
      topic,
      partition,
      offset,
      topicId: log.topicId,
      isPaused: this.#isFull,
      on: {
        batch: ({ records }) => {
          const last = records.at(-1)
          if (last === undefined) return
          reading.lastMs = last.timestampMs
          this.#options.onRecords(partition, records)
        },
        lost: () => undefined,
        truncated: ({ at }) => {
          reading.topicId = this.#view.topicIdOf(topic) ?? ''
          onStart(partition, at, reading.topicId, true)
          handle.seek(at)
        },
      },
    })
    this.#readings.set(partition, Object.assign(reading, { handle }))
  }
}

function offsetOf(location: Exclude<Location, { kind: 'later' }>): number {
  switch (location.kind) {
    case 'goOn':
      return location.offset
    case 'retentionWon':
      return location.to
    case 'truncated':
      return location.at
  }
}
