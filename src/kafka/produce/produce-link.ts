import { type Cluster, type Kafka, type PartitionMetadata, Partitioners } from 'kafkajs'
import { clockAheadMs, type OnClockSkew } from './clock-skew.ts'
import { errorCodes } from '../wire/error-codes.ts'
import { type Metadata, metadataRequest } from '../wire/metadata-request.ts'
import { partitionName } from '../wire/partition-name.ts'
import { openPartwiseCluster, type PartwiseCluster } from '../cluster/partwise-cluster.ts'
import { isOpen } from './obstacle.ts'
import {
  outcomeOf,
  type PartitionAnswer,
  type ProduceOutcome,
  unwritten,
  withoutLeader,
} from './produce-outcome.ts'
import { type ProduceAnswer, produceRequest, type ProducedTopic } from '../wire/produce-request.ts'
import { ask, readsFromMs, ThrottledError, type WireBroker, type WireRequest } from '../wire/wire-request.ts'
import { answerWithin, whenLate, within } from '../../async/within.ts'
import { messageOf } from '../wire/errors.ts'
import type { PartitionRecords } from '../../message/records.ts'

export type LinkTimeouts = {
  /**
   * How long a broker may wait until the in-sync replicas have the records, in milliseconds. If a replica
   * doesn't have the records by then, the broker answers with an error.
   */
  readonly replicasTimeoutMs: number
  /**
   * How long `send` waits for the answers of the brokers, in milliseconds. The time begins when the broker
   * reads the connection: a throttle that the broker has announced doesn't count.
   */
  readonly sendTimeoutMs: number
  /**
   * The longest throttle for which `send` waits, in milliseconds. Records that a longer throttle keeps from
   * being sent are never sent. Default: there is no limit.
   */
  readonly mostThrottleMs?: number
}

/** What the caller of `send` learns of items that wait. */
export type SendListener<T> = {
  readonly slow?: OnSlow<T>
  /**
   * Called when the broker has announced a throttle that is longer than `mostThrottleMs`. If `isSent` is
   * true, the broker writes the items when the throttle is over. Otherwise they are never sent, and `settle`
   * is called next.
   */
  readonly throttled?: (items: readonly T[], throttleMs: number, isSent: boolean) => void
}

type OnSlow<T> = {
  /** How long an item waits before `call` is called with it, in milliseconds. A throttle doesn't count. */
  readonly afterMs: number
  /** The same as `afterMs`, but a throttle counts too. */
  readonly afterThrottledMs: number
  /** `isThrottled` is true if the broker has announced that it doesn't read the items now. */
  readonly call: (items: readonly T[], isThrottled: boolean) => void
}

/**
 * Builds the request for some records. By default, `ProduceLink` builds requests that the broker answers only
 * when all in-sync replicas have the records.
 */
export type MakeRequest = (
  topicData: readonly ProducedTopic[],
  replicasTimeoutMs: number,
) => WireRequest<ProduceAnswer>

export type LinkOptions = {
  readonly requestOf?: MakeRequest
  readonly onClockSkew?: OnClockSkew | undefined
}

type Settle<T> = (item: T, outcome: ProduceOutcome) => void

/**
 * Connections to the brokers for writing records. The write to one partition may succeed while the write to
 * another partition fails. Connections that seem dead are replaced.
 */
export class ProduceLink {
  readonly #kafka: Kafka
  readonly #timeouts: LinkTimeouts
  readonly #requestOf: MakeRequest
  readonly #onClockSkew: OnClockSkew
  readonly #place = Partitioners.DefaultPartitioner()
  #opened: PartwiseCluster
  /** The topics that were added to the present client. */
  #topics = new Set<string>()
  #isClosed = false

  constructor(
    kafka: Kafka,
    timeouts: LinkTimeouts,
    { requestOf = produceRequest, onClockSkew = () => undefined }: LinkOptions = {},
  ) {
    this.#onClockSkew = onClockSkew
    this.#kafka = kafka
    this.#timeouts = timeouts
    this.#requestOf = requestOf
    this.#opened = openPartwiseCluster(kafka)
  }

  /** Connects. Rejects when no broker can be reached. */
  connect(): Promise<void> {
    return this.#opened.cluster.connect()
  }

  /** See `OpenCluster.readsFromMs`. */
  get readsFromMs(): number {
    return this.#opened.readsFromMs
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#opened.close()
  }

  /**
   * Returns the partition in which Java's clients place a record with this key. Returns `undefined` while the
   * topic has no partitions. Rejects when no broker answers.
   */
  async placeOf(topic: string, key: Buffer | null): Promise<number | undefined> {
    const opened = this.#opened
    const { cluster } = opened
    await this.#closedAfter(opened, this.#prepare(cluster, [topic]))
    const partitionMetadata: PartitionMetadata[] = cluster.findTopicPartitionMetadata(topic)
    if (partitionMetadata.length > 0)
      return this.#place({ topic, partitionMetadata, message: { key, value: null } })
    this.#refresh(this.#opened)
    return undefined
  }

  /**
   * The leaders of a topic's partitions, by partition, as a broker has reported them last. Leaves out
   * partitions without a leader. Empty before the first `send` to the topic.
   */
  leadersOf(topic: string): ReadonlyMap<number, number> {
    const known = this.#opened.metadata?.topicMetadata.find((one) => one.topic === topic)
    return new Map(
      known?.partitionMetadata.flatMap(({ partitionId, leader }) =>
        leader < 0 ? [] : [[partitionId, leader] as const],
      ),
    )
  }

  /**
   * Sends each item once. A batch has at most one item for each partition. Calls `settle` exactly once for
   * each item, as soon as its outcome is known, and within `sendTimeoutMs`. Nothing is tried again. Records
   * that weren't sent by then are never sent. Never rejects.
   */
  async send<T extends PartitionRecords>(
    batch: readonly T[],
    settle: (item: T, outcome: ProduceOutcome) => void,
    listener: SendListener<T> = {},
  ): Promise<void> {
    const open = new Set(batch)
    const settleOnce: Settle<T> = (item, outcome) => {
      if (open.delete(item)) settle(item, outcome)
    }
    const throttled: SendListener<T>['throttled'] = (items, throttleMs, isSent) => {
      const left = items.filter((item) => open.has(item))
      if (left.length > 0) listener.throttled?.(left, throttleMs, isSent)
    }
    const opened = this.#opened
    const untilMs = performance.now() + this.#timeouts.sendTimeoutMs
    const { slow } = listener
    const prepared = slow && whenSlow(slow, batch, () => opened.readsFromMs)
    try {
      if (this.#isClosed) throw new Error(closedReason)
      const topics = batch.map(({ topic }) => topic)
      await this.#inTime(({ cluster }) => this.#prepare(cluster, topics))
    } catch (error) {
      for (const item of batch) settle(item, unwritten(messageOf(error), { isSent: false }))
      return
    } finally {
      prepared?.()
    }
    await this.#sendAll(opened, batch, { settle: settleOnce, untilMs, listener: { ...listener, throttled } })
  }

  /**
   * Returns the partitions of these topics that have a leader and at least `minInsync` in-sync replicas. Asks
   * all known brokers, and takes the first answer. Rejects when no broker answers within `timeoutMs`.
   */
  async openPartitions(
    topics: readonly string[],
    { minInsync, timeoutMs }: { minInsync: number; timeoutMs: number },
  ): Promise<readonly { readonly topic: string; readonly partition: number }[]> {
    const opened = this.#opened
    const answers = (opened.metadata?.brokers ?? []).map(async ({ nodeId }) => {
      const asked = opened
        .findBroker(nodeId)
        .then((broker) => ask(broker, metadataRequest(topics), { overEither: true }))
      return answerWithin(timeoutMs, asked, `no answer within ${timeoutMs} ms`)
    })
    const { topicMetadata }: Metadata = await Promise.any(answers)
    return topicMetadata.flatMap(({ topic, partitionMetadata }) =>
      partitionMetadata
        .filter((one) => isOpen(one, minInsync))
        .map(({ partitionId }) => ({ topic, partition: partitionId })),
    )
  }

  /** Runs `work`, and replaces the connections if `work` fails or takes too long. */
  async #inTime(work: (opened: PartwiseCluster) => Promise<void>): Promise<void> {
    const opened = this.#opened
    const { sendTimeoutMs } = this.#timeouts
    const done = this.#closedAfter(opened, work(opened))
    try {
      if (await within(sendTimeoutMs, done, () => opened.readsFromMs)) return
    } catch (error) {
      this.#reopen(opened, done)
      throw error
    }
    this.#reopen(opened, done)
    throw new Error(`no answer within ${sendTimeoutMs} ms`)
  }

  async #prepare(cluster: Cluster, topics: readonly string[]): Promise<void> {
    // During the `await` below, `#reopen` may replace the client and `#topics`. The new client doesn't know
    // the topics of this client.
    const known = this.#topics
    await cluster.connect()
    const missing = topics.filter((topic) => !known.has(topic))
    if (missing.length > 0) {
      await cluster.addMultipleTargetTopics(missing)
      for (const topic of missing) known.add(topic)
    }
    await cluster.refreshMetadataIfNecessary()
  }

  async #sendAll<T extends PartitionRecords>(
    opened: PartwiseCluster,
    batch: readonly T[],
    terms: SendTerms<T>,
  ): Promise<void> {
    const byLeader = Map.groupBy(batch, (item) => leaderOf(opened.cluster, item))
    const answers = [...byLeader].map(async ([leader, items]) => {
      if (leader !== undefined) return this.#sendTo(opened, leader, items, terms)
      for (const item of items) terms.settle(item, withoutLeader(item))
      this.#refresh(opened)
    })
    await Promise.all(answers)
  }

  async #sendTo<T extends PartitionRecords>(
    opened: PartwiseCluster,
    nodeId: number,
    items: readonly T[],
    { settle, untilMs, listener: { slow, throttled } }: SendTerms<T>,
  ): Promise<void> {
    const { replicasTimeoutMs, sendTimeoutMs, mostThrottleMs } = this.#timeouts
    let broker: WireBroker | undefined
    let isSent = false
    const readsFrom = (): number => (broker === undefined ? -Infinity : readsFromMs(broker))
    const answered = slow && whenSlow(slow, items, readsFrom)
    try {
      const late = `no answer within ${sendTimeoutMs} ms`
      const found = this.#closedAfter(opened, opened.findBroker(nodeId))
      broker = await answerWithin(untilMs - performance.now(), found, late)
      isSent = true
      const asked = ask(broker, this.#requestOf(topicDataOf(items), replicasTimeoutMs), {
        mostMs: Math.max(0, untilMs - performance.now()),
        // The connection isn't closed, because it may still bring answers to other requests. The client's own
        // timeout closes it.
        leavesOpen: true,
        mostThrottleMs,
        onStuck: (throttleMs) => throttled?.(items, throttleMs, true),
      })
      const sentMs = Date.now()
      const { topics } = await this.#closedAfter(opened, asked)
      this.#compareClocks(nodeId, topics, sentMs)
      const answers = new Map<string, PartitionAnswer>(
        topics.flatMap(({ topicName, partitions }) =>
          partitions.map((answer) => [`${topicName}/${answer.partition}`, answer] as const),
        ),
      )
      const outcomes = items.map((item) => outcomeOf(item, answers.get(partitionName(item))))
      if (outcomes.some(({ isWritten }) => !isWritten)) this.#refresh(opened)
      for (const [index, item] of items.entries())
        settle(item, outcomes[index] ?? unwritten('no outcome', { isSent }))
    } catch (error) {
      if (error instanceof ThrottledError) {
        isSent = false
        throttled?.(items, error.throttleMs, false)
      } else this.#refresh(opened)
      for (const item of items) settle(item, unwritten(messageOf(error), { isSent }))
    } finally {
      answered?.()
    }
  }

  #compareClocks(nodeId: number, topics: ProduceAnswer['topics'], sentMs: number): void {
    const answers = topics.flatMap(({ partitions }) => partitions)
    const appended = answers.find(
      ({ errorCode, appendedMs }) => errorCode === errorCodes.NONE && appendedMs >= 0,
    )
    if (appended !== undefined)
      this.#onClockSkew(nodeId, clockAheadMs(appended.appendedMs, sentMs, Date.now()))
  }

  /**
   * Reads again which brokers lead the partitions, because the leaders may have changed. `send` doesn't wait
   * for the result, because its caller sends failed records again only after a pause.
   */
  #refresh(opened: PartwiseCluster): void {
    if (opened !== this.#opened || this.#isClosed) return
    const refresh = (): Promise<void> => opened.cluster.connect().then(() => opened.cluster.refreshMetadata())
    // The second try goes to another broker, in case the first broker hangs.
    const refreshed = this.#closedAfter(opened, refresh().catch(refresh))
    refreshed.catch(() => this.#reopen(opened, refreshed))
  }

  /**
   * Returns the result of `work`. If the link was closed meanwhile, closes the client once more, and rejects.
   * kafkajs may have connected again for `work`, and such a connection would keep the process alive.
   */
  async #closedAfter<T>(opened: PartwiseCluster, work: Promise<T>): Promise<T> {
    try {
      const result = await work
      if (!this.#isClosed) return result
    } catch (error) {
      if (!this.#isClosed) throw error
    }
    void opened.close()
    throw new Error(closedReason)
  }

  /**
   * Replaces the client and its connections by new ones. `work` may still be under way over the dead
   * connections, because kafkajs retries for a while and connects again for each retry. So the dead client is
   * closed once more when `work` has ended.
   */
  #reopen(dead: PartwiseCluster, work: Promise<unknown>): void {
    if (dead === this.#opened && !this.#isClosed) {
      this.#opened = openPartwiseCluster(this.#kafka)
      this.#topics = new Set()
    }
    void dead.close()
    void work.catch(() => undefined).then(() => dead.close())
  }
}

const closedReason = 'the connections were closed'

type SendTerms<T> = {
  readonly settle: Settle<T>
  /** The time until which a leader has to be reachable, by `performance.now`. */
  readonly untilMs: number
  readonly listener: SendListener<T>
}

/** Calls `call` when these items have waited for long. Returns a function that ends this. */
function whenSlow<T>(
  { afterMs, afterThrottledMs, call }: OnSlow<T>,
  items: readonly T[],
  readsFrom: () => number,
): () => void {
  const latestMs = performance.now() + afterThrottledMs - afterMs
  return whenLate(
    afterMs,
    () => call(items, readsFrom() > performance.now()),
    () => Math.min(readsFrom(), latestMs),
  )
}

function leaderOf(cluster: Cluster, { topic, partition }: PartitionRecords): number | undefined {
  const found = cluster.findTopicPartitionMetadata(topic).find(({ partitionId }) => partitionId === partition)
  return found === undefined || found.leader < 0 ? undefined : found.leader
}

function topicDataOf(items: readonly PartitionRecords[]): ProducedTopic[] {
  const byTopic = Map.groupBy(items, ({ topic }) => topic)
  return [...byTopic].map(([topic, ofTopic]) => ({
    topic,
    partitions: ofTopic.map(({ partition, records }) => ({ partition, messages: records })),
  }))
}
