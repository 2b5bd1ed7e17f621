import { untilAborted } from '../../async/until-aborted.ts'
import { setTimeout as delay } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import { errorCodes, protocolError } from '../wire/error-codes.ts'
import { type FetchedPartition, fetchRequest } from '../wire/fetch-message.ts'
import { fetchBackoff, type FetchedRecords, readFetched } from '../fetch/fetched-records.ts'
import { withoutSession } from '../fetch/fetch-session.ts'
import type { PartwiseCluster } from '../cluster/partwise-cluster.ts'
import type { TopicMetadata } from '../wire/metadata-request.ts'
import { type EpochAnswer, epochEndRequest } from '../wire/offset-requests.ts'
import { judgePlace } from '../fetch/positions.ts'
import type { FetchedRecord } from '../wire/record-batch.ts'
import { throttlePatienceMs, tooSmallForFetch } from '../wire/throttle.ts'
import { ask as askBroker, BrokerTooOldError } from '../wire/wire-request.ts'
import { whenLate } from '../../async/within.ts'
import { OtherLogError, SilentKafkaError } from '../wire/errors.ts'

/**
 * A range of offsets in a partition's log. Each offset in the range is at least `start` and lower than `end`.
 * Some of these offsets may have no record.
 */
export type LogRange = { readonly start: number; readonly end: number }

/**
 * What a follower knows of the log that it reads again and again. `topicId`: the id of the log's topic at the
 * last reading. `undefined` if no broker has reported an id.
 */
export type FollowedLog = { topicId: string | undefined }

/** Consecutive records of a log. `next` is the offset at which the reading continues. */
export type Piece<T> = { readonly records: T[]; readonly next: number }

/** Converts a record, or returns `undefined` to leave it out. */
export type Take<T> = (record: FetchedRecord) => T | undefined

/**
 * A new leader may report a lower end for a moment. So the end may be lower than the offset up to which the
 * log was read. If this lasts for more than this time, in milliseconds, the reading fails.
 */
const shortForMs = 5_000
/** How long a broker holds back the answer to a fetch that finds no records, in milliseconds. */
const fetchWaitMs = 200
/**
 * After this number of consecutive answers without records, the reader assumes that compaction has removed
 * the rest of the requested range. An answer counts only if the log reaches to the end of the range. One
 * answer isn't enough, because a new leader answers without records for a moment.
 */
const emptyAnswers = 3

export type LogOptions = {
  readonly inTurn: (work: (cluster: PartwiseCluster['cluster']) => Promise<void>) => Promise<void>
  readonly topic: string
  readonly partition: number
  readonly signal: AbortSignal
  readonly stallTimeoutMs: number
  readonly fetchBytes: number
  /**
   * Called with a description for each group of records that is skipped because the records can't be read.
   */
  readonly onUnreadable?: ((detail: string) => void) | undefined
}

/** A reader of one partition. A new reader is made for each reading. */
export class LogReader {
  readonly #brokers: PartwiseCluster
  readonly #options: LogOptions

  constructor(brokers: PartwiseCluster, options: LogOptions) {
    this.#brokers = brokers
    this.#options = options
  }

  range(): Promise<LogRange> {
    return this.#patiently(() => this.#askRange())
  }

  /** See `PartitionReader.topicId`. */
  topicId(): Promise<string | undefined> {
    return this.#patiently(async () => {
      await this.#connect()
      await this.#options.inTurn((cluster) => cluster.refreshMetadata())
      this.#leader()
      return this.#reported()?.topicId
    })
  }

  /** See `PartitionReader.divergesAt`. */
  async divergesAt(offset: number, leaderEpoch: number): Promise<number | undefined> {
    const { topic, partition } = this.#options
    const place = { topic, partition, offset, leaderEpoch }
    try {
      const epochEnd = await this.#patiently(() => this.#askEpochEnd(leaderEpoch))
      const log = { start: 0, end: Infinity, topicId: undefined, epochEnd }
      const judged = judgePlace(place, log)
      return judged.kind === 'truncated' ? judged.at : undefined
    } catch (error) {
      if (error instanceof BrokerTooOldError) return undefined
      throw error
    }
  }

  /**
   * Reads from the offset `from` to the present end of the log. With `followed`, throws an `OtherLogError` if
   * `from` is an offset in another log than the present one.
   */
  async *read<T>(from: number, take: Take<T>, followed?: FollowedLog): AsyncGenerator<readonly T[], void> {
    const { start, end } = followed === undefined ? await this.range() : await this.#same(from, followed)
    let position = Math.max(from, start)
    if (position >= end) return
    let coming = this.#piece(position, end, take)
    while (position < end) {
      const { records, next } = await coming
      position = next
      if (position < end) {
        coming = this.#piece(position, end, take)
        // If the caller stops reading here, nobody waits for this piece. In that case, a rejection must not
        // be reported as unhandled.
        coming.catch(() => undefined)
      }
      if (records.length > 0) yield records
      this.#options.signal.throwIfAborted()
    }
  }

  /**
   * Fetches once. Returns the records of the answer whose offsets are at least `from` and lower than `to`.
   * With `keptFrom`, also those from this offset on that come before `from` in the same batch.
   */
  async piece<T>(from: number, to: number, take: Take<T>, keptFrom = from): Promise<Piece<T>> {
    await this.#patiently(() => this.#connect())
    const { records, next } = await this.#piece(from, to, take, keptFrom)
    return { records, next: Math.min(next, to) }
  }

  /**
   * Returns the range of the log. Throws an `OtherLogError` if `from` is an offset of another log than the
   * present one.
   */
  async #same(from: number, followed: FollowedLog): Promise<LogRange> {
    const { topic, partition, signal } = this.#options
    const deadlineMs = performance.now() + shortForMs
    for (;;) {
      const range = await this.range()
      const topicId = this.#reported()?.topicId
      if (from > 0 && topicId !== undefined && followed.topicId !== undefined && topicId !== followed.topicId)
        throw new OtherLogError(`${topic} was deleted and created again, so what was read of it is outdated`)
      if (from <= range.end) {
        followed.topicId = topicId
        return range
      }
      if (performance.now() > deadlineMs)
        throw new OtherLogError(
          `${topic}/${partition} ends at offset ${range.end}, but was read up to ${from}: it was created again, or has lost records`,
        )
      await delay(fetchBackoff.minMs, undefined, { signal })
    }
  }

  async #connect(): Promise<void> {
    const { inTurn, topic } = this.#options
    await inTurn(async (cluster) => {
      await cluster.connect()
      await cluster.addTargetTopic(topic)
    })
    this.#leader()
  }

  async #askRange(): Promise<LogRange> {
    const { topic, partition } = this.#options
    const { cluster } = this.#brokers
    const at = async (fromBeginning: boolean): Promise<number> => {
      const asked = [{ topic, partitions: [{ partition }], fromBeginning }]
      const [found] = await cluster.fetchTopicsOffset(asked)
      return Number(found?.partitions[0]?.offset)
    }
    await this.#connect()
    const [start, end] = [await at(true), await at(false)]
    if (Number.isNaN(start + end)) throw new kafkajs.KafkaJSError(`${topic}/${partition} has no leader`)
    return { start, end }
  }

  async #askEpochEnd(leaderEpoch: number): Promise<EpochAnswer> {
    const { topic, partition } = this.#options
    await this.#connect()
    const broker = await this.#brokers.findBroker(this.#leader())
    const question = { topic, partition, currentLeaderEpoch: -1, leaderEpoch }
    const [answer] = await askBroker(broker, epochEndRequest([question]))
    if (answer === undefined) throw new kafkajs.KafkaJSError(`no epoch of ${topic}/${partition} was told`)
    if (answer.errorCode !== errorCodes.NONE) throw protocolError(answer.errorCode)
    return answer
  }

  /** Returns the partition's leader. Throws if the brokers report an error for the partition. */
  #leader(): number {
    const { topic, partition } = this.#options
    const reported = this.#reported()
    if (reported !== undefined && reported.topicErrorCode !== errorCodes.NONE)
      throw protocolError(reported.topicErrorCode)
    const leader =
      reported?.partitionMetadata.find(({ partitionId }) => partitionId === partition)?.leader ?? -1
    if (leader < 0) throw new kafkajs.KafkaJSError(`${topic}/${partition} has no leader`)
    return leader
  }

  #reported(): TopicMetadata | undefined {
    const { topic } = this.#options
    return this.#brokers.metadata?.topicMetadata.find((one) => one.topic === topic)
  }

  /**
   * Returns those records of one fetch from `position` whose offsets are at least `keptFrom` and lower than
   * `end`.
   */
  async #piece<T>(position: number, end: number, take: Take<T>, keptFrom = position): Promise<Piece<T>> {
    const { signal } = this.#options
    const startedMs = performance.now()
    for (let [empty, damaged] = [0, 0]; empty < emptyAnswers;) {
      const answer = await this.#patiently(() => this.#fetch(position))
      if (answer === 'gone') return { records: [], next: (await this.range()).start }
      if (answer !== 'later' && answer.recordSet.length > 0) {
        const read = await readFetched(answer, position, damaged++, keptFrom)
        if (!read.isDamaged) return this.#pieceOf(read, { end, take })
      } else if (answer !== 'later' && readableEnd(answer) >= end) {
        empty++
        continue
      }
      // The answer has no records for one of these reasons: a new leader doesn't know yet how far its
      // replicas are, this client's quota is used up, or a batch is damaged.
      empty = 0
      if (performance.now() > this.#deadlineMs(startedMs))
        throw new SilentKafkaError(this.#nothingCame(position) + this.#quotaAdvice(startedMs))
      await delay(fetchBackoff.minMs, undefined, { signal })
    }
    return { records: [], next: end }
  }

  #quotaAdvice(startedMs: number): string {
    return this.#brokers.readsFromMs > startedMs ? `: ${tooSmallForFetch}` : ''
  }

  #nothingCame(position: number): string {
    const { topic, partition, stallTimeoutMs } = this.#options
    return `nothing came of ${topic}/${partition} from offset ${position} within ${stallTimeoutMs} ms`
  }

  /**
   * Fetches from `position`. Returns `gone` if the log now begins after this offset. Returns `later` if the
   * broker left the partition out of its answer in order to slow this client down.
   */
  async #fetch(position: number): Promise<FetchedPartition | 'gone' | 'later'> {
    const { topic, partition, fetchBytes } = this.#options
    await this.#brokers.cluster.refreshMetadataIfNecessary()
    const broker = await this.#brokers.findBroker(this.#leader())
    const { errorCode, responses } = await askBroker(
      broker,
      fetchRequest({
        ...wholeFetch,
        maxBytes: fetchBytes,
        maxBytesPerPartition: fetchBytes,
        positions: [{ topic, partition, offset: position, leaderEpoch: -1 }],
      }),
    )
    const answer = responses[0]?.partitions[0]
    const code = answer?.errorCode ?? errorCode
    if (code === errorCodes.NONE) return answer ?? 'later'
    if (code === errorCodes.OFFSET_OUT_OF_RANGE && (await this.#askRange()).start > position) return 'gone'
    // If the offset is out of range here, it lies after the log's end. Either the leader has lost records, or
    // it doesn't know of all records yet.
    throw protocolError(code)
  }

  #pieceOf<T>(
    { records: all, nextOffset: next }: FetchedRecords,
    { end, take }: { end: number; take: Take<T> },
  ): Piece<T> {
    const records: T[] = []
    for (const record of all) {
      if (record.offset >= end) break
      if (record.unreadable !== undefined) this.#options.onUnreadable?.(record.unreadable)
      const taken = take(record)
      if (taken !== undefined) records.push(taken)
    }
    return { records, next }
  }

  /**
   * Repeats a request until it succeeds. Throws the last error once `stallTimeoutMs` is over, or at once if
   * the error isn't from Kafka.
   */
  async #patiently<T>(ask: () => Promise<T>): Promise<T> {
    const { signal } = this.#options
    const startedMs = performance.now()
    const { minMs, maxMs } = fetchBackoff
    for (let backoffMs = minMs; ; backoffMs = Math.min(2 * backoffMs, maxMs)) {
      try {
        return await this.#inTime(ask(), startedMs)
      } catch (error) {
        const isOver = signal.aborted || performance.now() + backoffMs > this.#deadlineMs(startedMs)
        if (isOver || !(error instanceof kafkajs.KafkaJSError)) throw error
      }
      await delay(backoffMs, undefined, { signal })
      await this.#inTime(this.#refresh(), startedMs)
    }
  }

  /**
   * Returns when a reading that began at `startedMs` counts as stalled. A throttle that a broker has
   * announced doesn't count, up to `throttlePatienceMs`.
   */
  #deadlineMs(startedMs: number): number {
    return this.#readsFromMs(startedMs) + this.#options.stallTimeoutMs
  }

  #readsFromMs(startedMs: number): number {
    return Math.min(Math.max(startedMs, this.#brokers.readsFromMs), startedMs + throttlePatienceMs)
  }

  async #inTime<T>(work: Promise<T>, startedMs: number): Promise<T> {
    const { topic, partition, signal, stallTimeoutMs } = this.#options
    const stalled = new AbortController()
    const answered = whenLate(
      this.#deadlineMs(startedMs) - performance.now(),
      () => {
        const late = `Kafka did not answer about ${topic}/${partition} within ${stallTimeoutMs} ms`
        stalled.abort(new SilentKafkaError(late + this.#quotaAdvice(startedMs)))
      },
      () => this.#readsFromMs(startedMs),
    )
    try {
      return await untilAborted(work, AbortSignal.any([signal, stalled.signal]))
    } finally {
      answered()
    }
  }

  async #refresh(): Promise<void> {
    try {
      await this.#options.inTurn(async (cluster) => {
        await cluster.connect()
        await cluster.refreshMetadata()
      })
    } catch {
      // The next try reports the error.
    }
  }
}

/**
 * Returns the end of the readable records: the end of the log, or the start of the first transaction that is
 * still open.
 */
function readableEnd({ highWatermark, lastStableOffset }: FetchedPartition): number {
  return lastStableOffset < 0 ? highWatermark : lastStableOffset
}

const wholeFetch = {
  maxWaitMs: fetchWaitMs,
  minBytes: 1,
  ...withoutSession,
}
