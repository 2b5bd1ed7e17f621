import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { openPartwiseCluster, type PartwiseCluster } from './partwise-cluster.ts'
import { type Leader, TopicView } from './topic-view.ts'
import type { WireBroker } from '../wire/wire-request.ts'

/**
 * The leaders of partitions, as far as the brokers have reported them. An error of one partition or topic
 * doesn't affect the others. Asking the brokers never creates a topic.
 */
export type ClusterView = {
  /** Resolves when the brokers have reported all topics once. Rejects when no broker can be reached. */
  connect(): Promise<void>
  /**
   * Returns the partition's leader. Returns `undefined` while the partition has no leader, or isn't known. A
   * broker with old data may report a former leader. Such a report is ignored, because its leader epoch is
   * lower than the known one.
   */
  leaderOf(topic: string, partition: number): Leader | undefined
  /**
   * Returns the topic's id in 22 characters, as Kafka prints it. Returns `undefined` if the topic isn't
   * known, or if brokers give topics no ids (before Kafka 2.8). If a topic has another id than before, it was
   * deleted and created again.
   */
  topicIdOf(topic: string): string | undefined
  /** Returns the number of the topic's partitions. Returns 0 if the topic isn't known, or was deleted. */
  partitionsOf(topic: string): number
  /**
   * Returns what is wrong with a partition or its topic, and what to do. Returns `undefined` while nothing is
   * wrong.
   */
  troubleOf(topic: string, partition: number): string | undefined
  /**
   * Resolves with a broker to which a connection is open. Rejects when the broker can't be reached, or when
   * no broker has this id.
   */
  broker(nodeId: number): Promise<WireBroker>
  /**
   * Asks the brokers again. Calls that come together share one request. The pause between two requests is at
   * least 100 ms. It grows to 5 s while requests fail, and to 1 s while they bring nothing new. Resolves when
   * the request has ended, with or without success. Never rejects.
   */
  refresh(): Promise<void>
  /**
   * Calls `listener` after each answer that has changed something. Returns a function that removes the
   * listener.
   */
  onChange(listener: () => void): () => void
  /** Ends any request under way, and closes the connections. Never rejects. */
  close(): Promise<void>
}

export type ClusterViewOptions = {
  readonly kafka: Kafka
  readonly topics: readonly string[]
  /**
   * The number of partitions that each topic should have. If a topic has more partitions, a log line says so,
   * and nobody reads the surplus partitions.
   */
  readonly partitions?: number | undefined
  readonly log: Record<'warn' | 'error', (fields: object, message: string) => void>
  /** The interval at which the brokers are asked without a call of `refresh`, in milliseconds. */
  readonly refreshEveryMs?: number
}

const defaultRefreshEveryMs = 30_000
const minPauseMs = 100
/**
 * The longest pause after an answer that brings nothing new, in milliseconds. Such answers come, for example,
 * while a partition is offline.
 */
const maxIdlePauseMs = 1_000
const maxFailedPauseMs = 5_000
/** If no request was sent for this time, in milliseconds, the pauses between requests are short again. */
const restMs = 10_000

export function createClusterView(options: ClusterViewOptions): ClusterView {
  return new BrokersView(options)
}

class BrokersView implements ClusterView {
  readonly #options: ClusterViewOptions
  readonly #opened: PartwiseCluster
  readonly #topics: ReadonlyMap<string, TopicView>
  readonly #listeners = new Set<() => void>()
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  /** The refresh whose request isn't sent yet, if there is one. */
  #next: Promise<void> | undefined
  #last: Promise<void> = Promise.resolve()
  #pauseMs = minPauseMs
  /** The time when the last request was answered or failed. */
  #lastMs = -Infinity
  #hasFailed = false
  /** The topics whose surplus partitions were logged, each with the number of partitions in its log line. */
  readonly #grown = new Map<string, number>()

  constructor(options: ClusterViewOptions) {
    this.#options = options
    this.#opened = openPartwiseCluster(options.kafka)
    this.#topics = new Map(options.topics.map((topic) => [topic, new TopicView(topic)]))
  }

  async connect(): Promise<void> {
    const { cluster } = this.#opened
    await cluster.connect()
    await cluster.addMultipleTargetTopics([...this.#topics.keys()])
    this.#take()
    // While a topic is missing, callers call `connect` again and again. The timer of the previous call has to
    // be stopped.
    clearInterval(this.#timer)
    if (this.#closing.signal.aborted) {
      this.#opened.cut('the view was closed')
      return
    }
    const { refreshEveryMs = defaultRefreshEveryMs } = this.#options
    this.#timer = setInterval(() => void this.refresh(), refreshEveryMs)
    this.#timer.unref()
  }

  leaderOf(topic: string, partition: number): Leader | undefined {
    return this.#topics.get(topic)?.leaderOf(partition)
  }

  topicIdOf(topic: string): string | undefined {
    return this.#topics.get(topic)?.topicId
  }

  partitionsOf(topic: string): number {
    return this.#topics.get(topic)?.partitions ?? 0
  }

  troubleOf(topic: string, partition: number): string | undefined {
    return this.#topics.get(topic)?.troubleOf(partition)
  }

  broker(nodeId: number): Promise<WireBroker> {
    return this.#opened.findBroker(nodeId)
  }

  refresh(): Promise<void> {
    this.#next ??= this.#refreshAfter(this.#last)
    return this.#next
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#closing.abort()
    this.#listeners.clear()
    await this.#opened.close()
  }

  async #refreshAfter(before: Promise<void>): Promise<void> {
    await before
    const { signal } = this.#closing
    await delay(this.#waitMs, undefined, { signal }).catch(() => undefined)
    // If a caller asks for a refresh from here on, another request is sent for it. The answer to the request
    // below may be older than the change that this caller wants to see.
    if (this.#next !== undefined) this.#last = this.#next
    this.#next = undefined
    if (!signal.aborted) await this.#refreshNow()
  }

  get #waitMs(): number {
    const elapsedMs = performance.now() - this.#lastMs
    if (elapsedMs > restMs) this.#pauseMs = minPauseMs
    return Math.max(0, this.#pauseMs - elapsedMs)
  }

  async #refreshNow(): Promise<void> {
    try {
      await this.#opened.cluster.connect()
      await this.#opened.cluster.refreshMetadata()
      this.#hasFailed = false
      const hasChanged = this.#take()
      this.#pauseMs = hasChanged ? minPauseMs : Math.min(maxIdlePauseMs, grown(this.#pauseMs))
    } catch (error) {
      this.#failed(error)
    }
    this.#lastMs = performance.now()
  }

  #failed(error: unknown): void {
    this.#pauseMs = Math.min(maxFailedPauseMs, grown(this.#pauseMs))
    if (this.#hasFailed || this.#closing.signal.aborted) return
    this.#hasFailed = true
    this.#options.log.warn(
      { err: error },
      'no broker reports the leaders of partitions: using the last known ones, trying again',
    )
  }

  /** Stores what the brokers have reported. Returns true if something has changed. */
  #take(): boolean {
    let hasChanged = false
    for (const reported of this.#opened.metadata?.topicMetadata ?? []) {
      if (this.#topics.get(reported.topic)?.take(reported) === true) hasChanged = true
    }
    if (!hasChanged) return false
    this.#sayGrown()
    for (const listener of this.#listeners) listener()
    return true
  }

  #sayGrown(): void {
    const { partitions: expected = Infinity, log } = this.#options
    for (const [topic, { partitions }] of this.#topics) {
      if (partitions <= expected || this.#grown.get(topic) === partitions) continue
      this.#grown.set(topic, partitions)
      const message =
        'a topic has more partitions than topics.partitions: records in the partitions beyond are NOT read until topics.partitions and all other topics have as many'
      log.error({ topic, partitions, expected }, message)
    }
  }
}

function grown(pauseMs: number): number {
  return Math.max(minPauseMs, 1.5 * pauseMs)
}
