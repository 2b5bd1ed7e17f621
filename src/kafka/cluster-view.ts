import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { openPartwiseCluster, type PartwiseCluster } from './partwise-cluster.ts'
import { type Leader, TopicView } from './topic-view.ts'
import type { WireBroker } from './wire.ts'

/**
 * Who leads what, as far as the brokers have reported. Errors belong to their partition or topic. No topic is
 * ever made by looking.
 */
export type ClusterView = {
  /** Resolves when the brokers have told about all topics once; rejects when none can be reached. */
  connect(): Promise<void>
  /**
   * `undefined` while the partition has none, or is not known. An older leader never takes the place of a
   * later one.
   */
  leaderOf(topic: string, partition: number): Leader | undefined
  /**
   * The id in 22 characters, as Kafka prints it; `undefined` where brokers have none (before Kafka 2.8), or
   * the topic is not known. Another id under the same name: it was deleted and made again.
   */
  topicIdOf(topic: string): string | undefined
  /** How many partitions the topic has; 0 while it isn't known, or gone. */
  partitionsOf(topic: string): number
  /** What is wrong with a partition or its topic, with what to do; `undefined` while nothing is. */
  troubleOf(topic: string, partition: number): string | undefined
  /** Connected. Rejects when it can't be reached, or there is none of this id. */
  broker(nodeId: number): Promise<WireBroker>
  /**
   * Has the brokers asked again. Calls that come together are one request; they are at least 100 ms apart,
   * and up to seconds while they fail or bring nothing new. Resolves when it is done. Never rejects.
   */
  refresh(): Promise<void>
  /** Told after each answer that has changed something; gives back what ends it. */
  onChange(listener: () => void): () => void
  /** Ends what is under way, and closes the connections. Never rejects. */
  close(): Promise<void>
}

export type ClusterViewOptions = {
  readonly kafka: Kafka
  readonly topics: readonly string[]
  /** How many partitions each topic should have; further ones are reported, and read by nobody. */
  readonly partitions?: number | undefined
  readonly log: Record<'warn' | 'error', (fields: object, message: string) => void>
  /** How often the brokers are asked without a reason, in milliseconds. */
  readonly refreshEveryMs?: number
}

const defaultRefreshEveryMs = 30_000
const minPauseMs = 100
/** Between answers that bring nothing new, as while a partition is offline. */
const maxIdlePauseMs = 1_000
const maxFailedPauseMs = 5_000
/** Nobody has asked for so long: what kept them asking is over. */
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
  /** Not sent yet. */
  #next: Promise<void> | undefined
  #last: Promise<void> = Promise.resolve()
  #pauseMs = minPauseMs
  /** When the last answer came, or didn't. */
  #lastMs = -Infinity
  #hasFailed = false
  /** Topics with more partitions than they should have, and how many: said. */
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
    // Whoever asks from here on wants to know what is only then.
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
      'no broker answers which broker leads which partition: going on with the last known leaders, and asking again',
    )
  }

  /** Gives whether something has changed. */
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
        'a topic has more partitions than topics.partitions: what producers write to those beyond is NOT read, until the setting and all other topics have as many'
      log.error({ topic, partitions, expected }, message)
    }
  }
}

function grown(pauseMs: number): number {
  return Math.max(minPauseMs, 1.5 * pauseMs)
}
