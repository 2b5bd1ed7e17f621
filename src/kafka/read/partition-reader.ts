import type { Kafka } from 'kafkajs'
import {
  type FollowedLog,
  type LogOptions,
  LogReader,
  type LogRange,
  type Piece,
  type Take,
} from './log-reader.ts'
import { askRanges, type TopicRanges } from './all-ranges.ts'
import { AtATime } from '../../async/at-a-time.ts'
import { untilAborted } from '../../async/until-aborted.ts'
import { openPartwiseCluster, type PartwiseCluster } from '../cluster/partwise-cluster.ts'
import type { KeyedRecord, WholeRecord } from '../../message/records.ts'
import type { FetchedRecord } from '../wire/record-batch.ts'
import { OtherLogError } from '../wire/errors.ts'
import { withAdmin } from '../cluster/with-admin.ts'

export type ReadOptions = {
  readonly topic: string
  readonly partition: number
  /**
   * The offset of the first record to read. If the log begins at a higher offset, the reading begins at the
   * start of the log.
   */
  readonly from: number
  /** The signal that ends the reading. The reason of the signal becomes the error of the reading. */
  readonly signal?: AbortSignal
  /** How long a reading may make no progress before it fails, in milliseconds. Default: a minute. */
  readonly stallTimeoutMs?: number
  /**
   * Called with a description when records of a batch can't be read, once for each batch. `read` skips these
   * records.
   */
  readonly onUnreadable?: (detail: string) => void
}

type Where = Pick<ReadOptions, 'topic' | 'partition' | 'signal' | 'stallTimeoutMs'>

/** Up to where a log was read before. See `PartitionReader.hasDiverged`. */
type Read = Where & { readonly offset: number; readonly leaderEpoch: number }

/** A reader of partitions. The reader isn't in any consumer group. */
export type PartitionReader = {
  range(where: Where): Promise<LogRange>
  /**
   * Asks once for the topic's id and the ranges of several partitions, with one request to each leader.
   * Rejects if no broker tells of the topic.
   */
  ranges(of: { readonly topic: string; readonly partitions: readonly number[] }): Promise<TopicRanges>
  /** Asks the brokers for the topic's present id. `undefined` if the brokers give topics no ids. */
  topicId(where: Where): Promise<string | undefined>
  /**
   * Returns true if the log has lost records below `offset`, and may have other records at their offsets.
   * `offset` is the offset up to which the log was read before. `leaderEpoch` is the epoch of the leader that
   * appended the record before `offset`. It may also be a later epoch that was known at that reading. If the
   * brokers are too old to report this, returns false.
   */
  hasDiverged(where: Read): Promise<boolean>
  /**
   * Returns the first offset at which the log may have other records than those that were read before, or
   * `undefined` if `hasDiverged` is false. Returns 0 if this offset isn't known.
   */
  divergesAt(where: Read): Promise<number | undefined>
  /**
   * Reads the records that have a key, from the offset `from` to the present end of the partition. Yields the
   * records in batches, in the order of their offsets. No batch is empty. While the caller works on a batch,
   * at most one further fetch is under way. A few partitions are read at the same time, and further calls
   * wait for their turn. Throws when Kafka delivers nothing for `stallTimeoutMs`.
   */
  read(options: ReadOptions): AsyncGenerator<readonly KeyedRecord[], void>
  /**
   * Returns a function for reading a log again and again, each time from where the last reading ended. The
   * function reads like `read`. If the log was replaced by another log, or has lost records that were read,
   * the function calls `onOther` with an `OtherLogError`, and throws this error.
   */
  follow(
    options: Omit<ReadOptions, 'from'>,
    onOther?: (error: OtherLogError) => void,
  ): (from: number) => AsyncGenerator<readonly KeyedRecord[], void>
  /** Reads like `read`, but also yields headers, and also yields the records that have no key. */
  readWhole(options: ReadOptions): AsyncGenerator<readonly WholeRecord[], void>
  /**
   * Fetches once from the log. Returns the records of the answer whose offsets are at least `from` (see
   * `hasWholeBatch`) and less than `to`. Records without a key are returned too.
   */
  piece(where: PieceOptions): Promise<LogPiece>
  /** Ends all readings with an error. */
  stop(): Promise<void>
}

export type PieceOptions = Where & {
  readonly from: number
  /**
   * The offset at which the reading ends. Records at this offset or at higher offsets aren't returned. This
   * offset must not be higher than the end of the log.
   */
  readonly to: number
  /**
   * True: returns the records before `from` too that come with it, because they are in the same batch. A
   * broker sends whole batches.
   */
  readonly hasWholeBatch?: boolean
  /** The number of bytes that the fetch may bring. Default: those of the reader. */
  readonly maxBytes?: number
}

/**
 * Consecutive records of a log, in the order of their offsets. `next` is the offset at which the reading
 * continues, at most `to`. Keys, values and headers are slices of the answer to a fetch.
 */
export type LogPiece = Piece<WholeRecord>

/** The number of bytes that one fetch may bring for a partition. */
const defaultFetchBytes = 1024 ** 2
/**
 * The number of partitions that are read at the same time by default. Each of these partitions takes the
 * memory of the answers to two fetches.
 */
const readsAtATime = 4
const defaultStallTimeoutMs = 60_000
function keyed({ offset, key, value, timestampMs, leaderEpoch }: FetchedRecord): KeyedRecord | undefined {
  return key === null ? undefined : { offset, key, value, timestampMs, leaderEpoch }
}

function whole(record: FetchedRecord): WholeRecord {
  return record
}

/**
 * The connections to the brokers, one to each broker. All readings that are under way share these
 * connections.
 */
class Session {
  readonly opened: PartwiseCluster
  users: number
  #turn = Promise.resolve()

  constructor(kafka: Kafka, users: number) {
    this.opened = openPartwiseCluster(kafka)
    this.users = users
  }

  /**
   * Runs the given functions one after another. Two of these functions must not connect or add a topic at the
   * same time. Otherwise kafkajs forgets the brokers that the first function has found, and never closes the
   * connections to these brokers.
   */
  readonly inTurn: LogOptions['inTurn'] = (work) => {
    this.#turn = this.#turn.catch(() => undefined).then(() => work(this.opened.cluster))
    return this.#turn
  }
}

/**
 * Opens and closes the connections that all readings share. Opens them when a reading begins while no other
 * reading is under way. If `keepsOpen` isn't set, closes them when the last reading under way ends.
 */
class Sessions {
  readonly #kafka: Kafka
  readonly #keepsOpen: boolean
  #present: Session | undefined

  constructor(kafka: Kafka, keepsOpen: boolean) {
    this.#kafka = kafka
    this.#keepsOpen = keepsOpen
  }

  /** Lends the session to a reading. The reading gives the session back by `release`. */
  take(): Session {
    this.#present ??= new Session(this.#kafka, this.#keepsOpen ? 1 : 0)
    this.#present.users++
    return this.#present
  }

  async release(session: Session): Promise<void> {
    session.users--
    if (session.users > 0) return
    if (this.#present === session) this.#present = undefined
    await session.opened.close()
  }

  /** Lends the session to a piece of work. */
  async lendTo<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const session = this.take()
    try {
      return await work(session)
    } finally {
      await this.release(session)
    }
  }

  async close(): Promise<void> {
    await this.#present?.opened.close()
  }
}

/** What is done with a log. */
type Work<T> = (log: LogReader) => Promise<T>

export type ReaderOptions = {
  /**
   * The number of partitions that are read at the same time. Each of these partitions takes the memory of the
   * answers to two fetches. Further partitions wait for their turn.
   */
  readonly atATime?: number
  /**
   * The number of bytes that one fetch may bring for a partition. If the first batch alone is larger, it is
   * fetched nevertheless.
   */
  readonly fetchBytes?: number
  /** True if the connections stay open between two readings, until the reader is stopped. */
  readonly keepsOpen?: boolean
}

/**
 * Creates a reader that sends `fetch` requests to the brokers without a consumer group. So there is no group
 * to wait for, to rebalance or to delete. The reader can also distinguish an empty answer from a missing
 * answer.
 */
export function createPartitionReader(
  kafka: Kafka,
  { atATime = readsAtATime, fetchBytes = defaultFetchBytes, keepsOpen = false }: ReaderOptions = {},
): PartitionReader {
  const stopping = new AbortController()
  const turns = new AtATime(atATime)
  const sessions = new Sessions(kafka, keepsOpen)

  /** Lets `work` read a partition, and keeps the connections open meanwhile. */
  function reading<T>(where: Where & Pick<PieceOptions, 'maxBytes'>, work: Work<T>): Promise<T> {
    const { maxBytes = fetchBytes, signal } = where
    return sessions.lendTo((session) =>
      work(logOf(session, where, { fetchBytes: maxBytes, signal: signalOf(signal) })),
    )
  }

  function divergesAt({ offset, leaderEpoch, ...where }: Read): Promise<number | undefined> {
    return reading(where, (log) => log.divergesAt(offset, leaderEpoch))
  }

  function signalOf(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? stopping.signal : AbortSignal.any([signal, stopping.signal])
  }

  async function* readAs<T>(
    options: ReadOptions,
    take: Take<T>,
    followed?: FollowedLog,
  ): AsyncGenerator<readonly T[], void> {
    const done = new AbortController()
    const until = AbortSignal.any([signalOf(options.signal), done.signal])
    await turns.take(until)
    const session = sessions.take()
    try {
      yield* logOf(session, options, { fetchBytes, signal: until }).read(options.from, take, followed)
    } finally {
      done.abort(new Error('the reading is over'))
      turns.end()
      await sessions.release(session)
    }
  }

  return {
    follow: (options, onOther) => follow((from, log) => readAs({ ...options, from }, keyed, log), onOther),
    range: (where) => reading(where, (log) => log.range()),
    ranges: (of) =>
      sessions.lendTo(({ opened, inTurn }) => untilAborted(askRanges(opened, inTurn, of), stopping.signal)),
    topicId: (where) => reading(where, (log) => log.topicId()),
    hasDiverged: async (read) => (await divergesAt(read)) !== undefined,
    divergesAt,
    read: (options) => readAs(options, keyed),
    readWhole: (options) => readAs(options, whole),
    piece: ({ from, to, hasWholeBatch = false, ...where }) =>
      reading(where, (log) => log.piece(from, to, whole, hasWholeBatch ? 0 : from)),
    async stop() {
      stopping.abort(new Error('the reader is stopped'))
      await sessions.close()
    },
  }
}

/**
 * Returns a function that uses `read` to continue a reading. The function calls `onOther` if the log was
 * replaced by another log.
 */
function follow<T>(
  read: (from: number, log: FollowedLog) => AsyncGenerator<T, void>,
  onOther: ((error: OtherLogError) => void) | undefined,
): (from: number) => AsyncGenerator<T, void> {
  const log: FollowedLog = { topicId: undefined }
  return async function* readOn(from) {
    try {
      yield* read(from, log)
    } catch (error) {
      if (error instanceof OtherLogError) onOther?.(error)
      throw error
    }
  }
}

function logOf(
  { opened, inTurn }: Session,
  {
    topic,
    partition,
    stallTimeoutMs = defaultStallTimeoutMs,
    onUnreadable,
  }: Where & Pick<ReadOptions, 'onUnreadable'>,
  { fetchBytes, signal }: Pick<LogOptions, 'fetchBytes' | 'signal'>,
): LogReader {
  return new LogReader(opened, {
    inTurn,
    topic,
    partition,
    stallTimeoutMs,
    fetchBytes,
    signal,
    onUnreadable,
  })
}

/**
 * Returns a range of offsets for each partition of a topic, by partition number. A range covers the records
 * that were appended at `fromMs` or later, and before `toMs`. Both are times in epoch milliseconds. Without
 * `fromMs`, a range begins at the start of the log. Without `toMs`, a range ends at the end of the log. If
 * producers set the times of a topic's records, the times may not be in order. In this case, a range begins
 * at the first record with a time of `fromMs` or later. It ends before the first record with a time of `toMs`
 * or later.
 */
export function offsetRanges(
  kafka: Kafka,
  topic: string,
  { fromMs, toMs }: { readonly fromMs?: number | undefined; readonly toMs?: number | undefined },
): Promise<readonly LogRange[]> {
  return withAdmin(kafka, async (admin) => {
    const logs = await admin.fetchTopicOffsets(topic)
    const at = async (timeMs: number | undefined): Promise<ReadonlyMap<number, number>> => {
      if (timeMs === undefined) return new Map()
      // No record is older than 1970. Times before 1970 must not be sent to Kafka, which gives some of them
      // another meaning, and refuses the rest.
      const found = await admin.fetchTopicOffsetsByTimestamp(topic, Math.max(0, timeMs))
      return new Map(found.map(({ partition, offset }) => [partition, Number(offset)]))
    }
    const [starts, ends] = [await at(fromMs), await at(toMs)]
    const ranges: LogRange[] = []
    for (const { partition, low, high } of logs) {
      const start = Math.max(Number(low), starts.get(partition) ?? 0)
      const end = Math.min(Number(high), ends.get(partition) ?? Infinity)
      ranges[partition] = { start: Math.min(start, end), end }
    }
    return ranges
  })
}
