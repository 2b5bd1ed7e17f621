import type { Kafka } from 'kafkajs'
import {
  type LogOptions,
  LogReader,
  type LogRange,
  type Piece,
  type Take,
  untilAborted,
} from './log-reader.ts'
import { openPartwiseCluster, type PartwiseCluster } from './partwise-cluster.ts'
import type { FetchedRecord, RecordHeaders } from './record-batch.ts'

/** Key and value are slices of a whole fetch: copy what is kept. */
export type KeyedRecord = {
  readonly offset: number
  readonly key: Buffer
  /** `null` removes what the key had. */
  readonly value: Buffer | null
  /** Epoch milliseconds. */
  readonly timestampMs: number
}

/** A record as it is in the log, to be copied; all of it slices of a whole fetch. */
export type WholeRecord = {
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: RecordHeaders
  /** Epoch milliseconds. */
  readonly timestampMs: number
  /** Why its content can't be read. It then stands for all of its batch that are not before it. */
  readonly unreadable?: string
}

export type ReadOptions = {
  readonly topic: string
  readonly partition: number
  /** Offset of the first record that is wanted; where the log begins later, it is read from there. */
  readonly from: number
  /** Ends the reading with its reason as the error. */
  readonly signal?: AbortSignal
  /** So long without any progress of Kafka's, in milliseconds, and the reading fails. Default: a minute. */
  readonly stallTimeoutMs?: number
  /** Told of records that are passed over since they can't be read, in words. */
  readonly onUnreadable?: (detail: string) => void
}

type Where = Pick<ReadOptions, 'topic' | 'partition' | 'signal' | 'stallTimeoutMs'>

/** Reads partitions on its own, beside any consumer group. */
export type PartitionReader = {
  range(where: Where): Promise<LogRange>
  /**
   * The records from `from` to the end that the partition has at the call, in batches, ascending, none empty;
   * those without a key left out. The next fetch is under way while a batch is worked on, and no more than
   * that. A few partitions are read at a time, others wait for their turn. Throws when Kafka gives nothing
   * for too long.
   */
  read(options: ReadOptions): AsyncGenerator<readonly KeyedRecord[], void>
  /** The same with headers, and with the records that have no key. */
  readWhole(options: ReadOptions): AsyncGenerator<readonly WholeRecord[], void>
  /** One fetch of the log: what it brings from `from` on, before `to`. Those without a key too. */
  piece(where: PieceOptions): Promise<LogPiece>
  /** Ends what is being read with an error. */
  stop(): Promise<void>
}

export type PieceOptions = Where & {
  readonly from: number
  /** No further than the log's end. */
  readonly to: number
}

/**
 * Ascending; `next` is where the next piece begins, at most `to`. Keys, values and headers are slices of a
 * whole fetch.
 */
export type LogPiece = Piece<WholeRecord>

/** What one fetch may bring of a partition. */
const defaultFetchBytes = 1024 ** 2
/** Each holds two fetches in memory. */
const readsAtATime = 4
const defaultStallTimeoutMs = 60_000
function keyed({ offset, key, value, timestampMs }: FetchedRecord): KeyedRecord | undefined {
  return key === null ? undefined : { offset, key, value, timestampMs }
}

function whole(record: FetchedRecord): WholeRecord {
  return record
}

/** So many at a time; others wait. */
class Turns {
  readonly #atATime: number
  readonly #queue: (() => void)[] = []
  #taken = 0

  constructor(atATime: number) {
    this.#atATime = atATime
  }

  async take(signal: AbortSignal): Promise<void> {
    this.#taken++
    if (this.#taken <= this.#atATime) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#queue.push(resolve)
    try {
      await untilAborted(promise, signal)
    } catch (error) {
      const index = this.#queue.indexOf(resolve)
      if (index >= 0) this.#queue.splice(index, 1)
      else this.#queue.shift()?.()
      this.#taken--
      throw error
    }
  }

  end(): void {
    this.#taken--
    this.#queue.shift()?.()
  }
}

/** Connections to the brokers, one each, for all that is read at the same time. */
class Session {
  readonly opened: PartwiseCluster
  users: number
  #turn = Promise.resolve()

  constructor(kafka: Kafka, users: number) {
    this.opened = openPartwiseCluster(kafka)
    this.users = users
  }

  /**
   * One after the other: of two that connect, or learn of a topic, at once kafkajs would forget the brokers
   * of the first, and never close their connections.
   */
  readonly inTurn: LogOptions['inTurn'] = (work) => {
    this.#turn = this.#turn.catch(() => undefined).then(() => work(this.opened.cluster))
    return this.#turn
  }
}

export type ReaderOptions = {
  /**
   * So many partitions are read at the same time, each with two fetches in memory; others wait for their
   * turn.
   */
  readonly atATime?: number
  /** What one fetch may bring of a partition, but for a batch that is larger. */
  readonly fetchBytes?: number
  /** Whether its connections stay open between two readings, until it is stopped. */
  readonly keepsOpen?: boolean
}

/**
 * The brokers' own `fetch`, of a client that joins nothing: there is no group to wait for, to be rebalanced,
 * or to delete, and the answer to each fetch can be told apart from no answer.
 */
export function createPartitionReader(
  kafka: Kafka,
  { atATime = readsAtATime, fetchBytes = defaultFetchBytes, keepsOpen = false }: ReaderOptions = {},
): PartitionReader {
  const stopping = new AbortController()
  const turns = new Turns(atATime)
  let session: Session | undefined

  /** One connection a broker for all that is read at the same time. */
  function open(): Session {
    session ??= new Session(kafka, keepsOpen ? 1 : 0)
    session.users++
    return session
  }

  /** Lets `work` read a partition, over connections that are open meanwhile. */
  async function reading<T>(
    { topic, partition, signal, stallTimeoutMs = defaultStallTimeoutMs }: Where,
    work: (log: LogReader) => Promise<T>,
  ): Promise<T> {
    const used = open()
    const { inTurn, opened } = used
    try {
      return await work(
        new LogReader(opened, {
          inTurn,
          topic,
          partition,
          stallTimeoutMs,
          fetchBytes,
          signal: signalOf(signal),
        }),
      )
    } finally {
      await close(used)
    }
  }

  async function close(used: Session): Promise<void> {
    used.users--
    if (used.users > 0) return
    if (session === used) session = undefined
    await used.opened.close()
  }

  function signalOf(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? stopping.signal : AbortSignal.any([signal, stopping.signal])
  }

  async function* readAs<T>(
    { topic, partition, from, signal, stallTimeoutMs = defaultStallTimeoutMs, onUnreadable }: ReadOptions,
    take: Take<T>,
  ): AsyncGenerator<readonly T[], void> {
    const done = new AbortController()
    const until = AbortSignal.any([signalOf(signal), done.signal])
    await turns.take(until)
    const used = open()
    try {
      const log = new LogReader(used.opened, {
        inTurn: used.inTurn,
        topic,
        partition,
        stallTimeoutMs,
        fetchBytes,
        signal: until,
        onUnreadable,
      })
      yield* log.read(from, take)
    } finally {
      done.abort(new Error('the reading is over'))
      turns.end()
      await close(used)
    }
  }

  return {
    range: (where) => reading(where, (log) => log.range()),
    read: (options) => readAs(options, keyed),
    readWhole: (options) => readAs(options, whole),
    piece: ({ from, to, ...where }) => reading(where, (log) => log.piece(from, to, whole)),
    async stop() {
      stopping.abort(new Error('the reader is stopped'))
      await session?.opened.close()
    },
  }
}
