import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Kafka } from 'kafkajs'
import { errorCodes, protocolError } from './error-codes.ts'
import { type FetchedPartition, fetchRequest, readCommitted } from './fetch-message.ts'
import { withoutSession } from './fetch-session.ts'
import { openPartwiseCluster, type PartwiseCluster } from './partwise-cluster.ts'
import { type FetchedRecord, readRecordSet, type RecordHeaders, type RecordSet } from './record-batch.ts'
import { withoutAborted } from './transactions.ts'
import { ask as askBroker } from './wire.ts'

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

/** The offsets of a partition's log: from `start` to before `end`. Some of them may have no record. */
export type LogRange = { readonly start: number; readonly end: number }

/** Reads partitions on its own, beside any consumer group. */
export type PartitionReader = {
  range(where: Pick<ReadOptions, 'topic' | 'partition' | 'signal' | 'stallTimeoutMs'>): Promise<LogRange>
  /**
   * The records from `from` to the end that the partition has at the call, in batches, ascending, none empty; those without
   * a key left out. The next fetch is under way while a batch is worked on, and no more than that. A few partitions are
   * read at a time, others wait for their turn. Throws when Kafka gives nothing for too long.
   */
  read(options: ReadOptions): AsyncGenerator<readonly KeyedRecord[], void>
  /** The same with headers, and with the records that have no key. */
  readWhole(options: ReadOptions): AsyncGenerator<readonly WholeRecord[], void>
  /** Ends what is being read with an error. */
  stop(): Promise<void>
}

/** What one fetch may bring of a partition. */
const defaultFetchBytes = 1024 ** 2
/** How long a broker keeps a fetch for which there is nothing. */
const fetchWaitMs = 200
/** Each holds two fetches in memory. */
const readsAtATime = 4
const defaultStallTimeoutMs = 60_000
const minBackoffMs = 100
const maxBackoffMs = 2_000
/**
 * A leader that says so often that nothing is behind an offset, though the log goes on, has lost it to compaction. A new leader
 * says so as well for a moment.
 */
const emptyAnswers = 3

/** A damaged batch is fetched so often again before it is passed over: the bytes may have been damaged on their way. */
const damagedAnswers = 3

/** A piece of the log: its records, and where the next piece begins. */
type Piece<T> = { readonly records: T[]; readonly next: number }

/** What is made of a record; `undefined`: it is left out. */
type Take<T> = (record: FetchedRecord) => T | undefined

function keyed({ offset, key, value, timestampMs }: FetchedRecord): KeyedRecord | undefined {
  return key === null ? undefined : { offset, key, value, timestampMs }
}

type Session = { readonly opened: PartwiseCluster; users: number }

export type ReaderOptions = {
  /** So many partitions are read at the same time, each with two fetches in memory; others wait for their turn. */
  readonly atATime?: number
  /** What one fetch may bring of a partition, but for a batch that is larger. */
  readonly fetchBytes?: number
}

/**
 * The brokers' own `fetch`, of a client that joins nothing: there is no group to wait for, to be rebalanced, or to delete, and
 * the answer to each fetch can be told apart from no answer.
 */
export function createPartitionReader(
  kafka: Kafka,
  { atATime = readsAtATime, fetchBytes = defaultFetchBytes }: ReaderOptions = {},
): PartitionReader {
  const stopping = new AbortController()
  const queue: (() => void)[] = []
  let reading = 0
  let session: Session | undefined

  /** One connection a broker for all that is read at the same time. */
  function open(): Session {
    session ??= { opened: openPartwiseCluster(kafka), users: 0 }
    session.users++
    return session
  }

  async function close(used: Session): Promise<void> {
    used.users--
    if (used.users > 0) return
    if (session === used) session = undefined
    await used.opened.close()
  }

  async function turn(signal: AbortSignal): Promise<void> {
    reading++
    if (reading <= atATime) return
    const { promise, resolve } = Promise.withResolvers<void>()
    queue.push(resolve)
    try {
      await untilAborted(promise, signal)
    } catch (error) {
      const index = queue.indexOf(resolve)
      if (index >= 0) queue.splice(index, 1)
      else queue.shift()?.()
      reading--
      throw error
    }
  }

  function endTurn(): void {
    reading--
    queue.shift()?.()
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
    await turn(until)
    const used = open()
    try {
      const log = new LogReader(used.opened, {
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
      endTurn()
      await close(used)
    }
  }

  return {
    async range({ topic, partition, signal, stallTimeoutMs = defaultStallTimeoutMs }) {
      const used = open()
      try {
        return await new LogReader(used.opened, {
          topic,
          partition,
          stallTimeoutMs,
          fetchBytes,
          signal: signalOf(signal),
        }).range()
      } finally {
        await close(used)
      }
    },
    read: (options) => readAs(options, keyed),
    readWhole: (options) => readAs(options, (record): WholeRecord => record),
    async stop() {
      stopping.abort(new Error('the reader is stopped'))
      await session?.opened.close()
    },
  }
}

type LogOptions = {
  readonly topic: string
  readonly partition: number
  readonly signal: AbortSignal
  readonly stallTimeoutMs: number
  readonly fetchBytes: number
  readonly onUnreadable?: ReadOptions['onUnreadable']
}

/** One reading of one partition. */
class LogReader {
  readonly #brokers: PartwiseCluster
  readonly #options: LogOptions

  constructor(brokers: PartwiseCluster, options: LogOptions) {
    this.#brokers = brokers
    this.#options = options
  }

  range(): Promise<LogRange> {
    return this.#patiently(() => this.#askRange())
  }

  async *read<T>(from: number, take: Take<T>): AsyncGenerator<readonly T[], void> {
    const { start, end } = await this.range()
    let position = Math.max(from, start)
    if (position >= end) return
    let coming = this.#piece(position, end, take)
    while (position < end) {
      const { records, next } = await coming
      position = next
      if (position < end) {
        coming = this.#piece(position, end, take)
        // Whoever stops reading here doesn't wait for it.
        coming.catch(() => undefined)
      }
      if (records.length > 0) yield records
      this.#options.signal.throwIfAborted()
    }
  }

  async #askRange(): Promise<LogRange> {
    const { topic, partition } = this.#options
    const { cluster } = this.#brokers
    const at = async (fromBeginning: boolean): Promise<number> => {
      const asked = [{ topic, partitions: [{ partition }], fromBeginning }]
      const [found] = await cluster.fetchTopicsOffset(asked)
      return Number(found?.partitions[0]?.offset)
    }
    await cluster.connect()
    await cluster.addTargetTopic(topic)
    this.#leader()
    const [start, end] = [await at(true), await at(false)]
    if (Number.isNaN(start + end)) throw new kafkajs.KafkaJSError(`${topic}/${partition} has no leader`)
    return { start, end }
  }

  /** Throws what the brokers say instead. */
  #leader(): number {
    const { topic, partition } = this.#options
    const told = this.#brokers.metadata?.topicMetadata.find((one) => one.topic === topic)
    if (told !== undefined && told.topicErrorCode !== errorCodes.NONE)
      throw protocolError(told.topicErrorCode)
    const leader = told?.partitionMetadata.find(({ partitionId }) => partitionId === partition)?.leader ?? -1
    if (leader < 0) throw new kafkajs.KafkaJSError(`${topic}/${partition} has no leader`)
    return leader
  }

  /** The records at `position` and behind it, before `end`, as far as one fetch goes. */
  async #piece<T>(position: number, end: number, take: Take<T>): Promise<Piece<T>> {
    const { stallTimeoutMs, signal } = this.#options
    const deadlineMs = performance.now() + stallTimeoutMs
    for (let [empty, damaged] = [0, 0]; empty < emptyAnswers;) {
      const answer = await this.#patiently(() => this.#fetch(position))
      if (answer === 'gone') return { records: [], next: (await this.range()).start }
      if (answer !== 'later' && answer.recordSet.length > 0) {
        const passDamaged = ++damaged > damagedAnswers
        const read = await readRecordSet(answer.recordSet, { passDamaged, end: answer.highWatermark })
        if (read.nextOffset > position) return this.#pieceOf(read, answer, { position, end, take })
      } else if (answer !== 'later' && readableEnd(answer) >= end) {
        empty++
        continue
      }
      // A new leader doesn't know yet how far its replicas are, our quota is used up, or a batch is damaged.
      empty = 0
      if (performance.now() > deadlineMs) throw new Error(this.#nothingCame(position))
      await delay(minBackoffMs, undefined, { signal })
    }
    return { records: [], next: end }
  }

  #nothingCame(position: number): string {
    const { topic, partition, stallTimeoutMs } = this.#options
    return `nothing came of ${topic}/${partition} from offset ${position} within ${stallTimeoutMs} ms`
  }

  /** `gone`: the log begins behind this offset now. `later`: the broker says nothing of the partition, to slow us down. */
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
    // Where it lies behind the log's end, that is a leader that has lost records, or that doesn't know of them yet.
    throw protocolError(code)
  }

  #pieceOf<T>(
    { records: all, nextOffset: next }: RecordSet,
    { abortedTransactions }: FetchedPartition,
    { position, end, take }: { position: number; end: number; take: Take<T> },
  ): Piece<T> {
    const records: T[] = []
    for (const record of withoutAborted(all, abortedTransactions, position)) {
      if (record.offset >= end) break
      if (record.unreadable !== undefined) this.#options.onUnreadable?.(record.unreadable)
      const taken = take(record)
      if (taken !== undefined) records.push(taken)
    }
    return { records, next }
  }

  /** Tries until it is answered, or for as long as nothing may happen. What isn't Kafka's fault is thrown at once. */
  async #patiently<T>(ask: () => Promise<T>): Promise<T> {
    const { signal, stallTimeoutMs } = this.#options
    const deadlineMs = performance.now() + stallTimeoutMs
    for (let backoffMs = minBackoffMs; ; backoffMs = Math.min(2 * backoffMs, maxBackoffMs)) {
      try {
        return await this.#inTime(ask(), deadlineMs)
      } catch (error) {
        const isOver = signal.aborted || performance.now() + backoffMs > deadlineMs
        if (isOver || !(error instanceof kafkajs.KafkaJSError)) throw error
      }
      await delay(backoffMs, undefined, { signal })
      await this.#inTime(this.#refresh(), deadlineMs)
    }
  }

  async #inTime<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
    const { topic, partition, signal, stallTimeoutMs } = this.#options
    const stalled = new AbortController()
    const timer = setTimeout(() => {
      stalled.abort(new Error(`Kafka did not answer about ${topic}/${partition} within ${stallTimeoutMs} ms`))
    }, deadlineMs - performance.now())
    try {
      return await untilAborted(work, AbortSignal.any([signal, stalled.signal]))
    } finally {
      clearTimeout(timer)
    }
  }

  async #refresh(): Promise<void> {
    try {
      await this.#brokers.cluster.connect()
      await this.#brokers.cluster.refreshMetadata()
    } catch {
      // The next try says what is wrong.
    }
  }
}

/** As far as records can be read: to the end, or to the first transaction that is still open. */
function readableEnd({ highWatermark, lastStableOffset }: FetchedPartition): number {
  return lastStableOffset < 0 ? highWatermark : lastStableOffset
}

/** Waits no longer than until `signal` fires; `work` then goes on unobserved. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  work.catch(() => undefined)
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

const wholeFetch = {
  maxWaitMs: fetchWaitMs,
  minBytes: 1,
  isolationLevel: readCommitted,
  ...withoutSession,
}
