import { Worker } from 'node:worker_threads'
import type { Indexing, IndexingEvents } from '../indexing.ts'
import {
  type Asking,
  BadCursorError,
  type LogQuery,
  type LogStatus,
  QueryFaultError,
  QueryTooLongError,
} from '../log-query.ts'
import {
  indexThreadUrl,
  type IndexThreadData,
  type ReadOrder,
  type ReadReport,
  type WriteOrder,
  type WriteReport,
} from './index-thread.ts'

export type IndexingOptions = IndexingEvents & {
  readonly folder: string
  readonly keptMs: number
  /** Called when the thread has ended because of an error. From then on, nothing is indexed. */
  readonly onFailed: (error: Error) => void
}

/** Starts a thread that writes an index, so that the calling thread never waits for a disk. */
export async function startIndexing(options: IndexingOptions): Promise<Indexing> {
  const { folder, keptMs, onIndexed, onTaken, onFailed } = options
  const data: IndexThreadData = { indexThread: 'write', folder, keptMs }
  const thread = new Worker(indexThreadUrl, { workerData: data })
  const opened = Promise.withResolvers<Indexing['positions']>()
  const stopped = Promise.withResolvers<void>()
  const state = { heldBytes: 0, isStopping: false }
  thread.on('message', (report: WriteReport) => {
    switch (report.report) {
      case 'opened':
        return opened.resolve(new Map(report.positions))
      case 'taken':
        state.heldBytes -= report.bytes
        return onTaken()
      case 'indexed':
        return onIndexed(report)
      case 'stopped':
        return stopped.resolve()
    }
  })
  let hasOpened = false
  thread.on('error', (error: Error) => {
    opened.reject(error)
    if (hasOpened && !state.isStopping) onFailed(error)
    stopped.resolve()
  })
  const positions = await opened.promise
  hasOpened = true
  const tell = (order: WriteOrder, moved: ArrayBuffer[] = []): void => thread.postMessage(order, moved)
  return {
    positions,
    trouble: undefined,
    add(blocks) {
      const total = blocks.reduce((sum, { value }) => sum + value.length, 0)
      const bytes = new Uint8Array(total)
      let at = 0
      for (const { value } of blocks) {
        bytes.set(value, at)
        at += value.length
      }
      state.heldBytes += total
      const places = blocks.map(({ value, ...place }) => ({ ...place, length: value.length }))
      tell({ order: 'add', bytes, blocks: places }, [bytes.buffer])
    },
    restart: (partition, next, topicId, isOther) =>
      tell({ order: 'restart', partition, next, topicId, isOther }),
    get heldBytes() {
      return state.heldBytes
    },
    async stop() {
      state.isStopping = true
      tell({ order: 'stop' })
      await stopped.promise
      await thread.terminate()
    },
  }
}

export type IndexQueryOptions = {
  readonly folder: string
  /** Returns how far the index is behind its topic, in milliseconds. Returns -1 if this isn't known. */
  readonly behindMs: () => number
  /** The heap limit of the thread, in MiB. A query that needs more memory is rejected. */
  readonly mostHeapMb?: number
  /** The time limit of a query, in milliseconds. A query that takes longer is rejected. */
  readonly mostMs?: number
}

const defaultHeapMb = 256
const defaultMostMs = 10_000

/**
 * Creates queries of an index. A separate thread answers them. If the thread ends, its unanswered queries are
 * rejected, and the next query starts another thread.
 */
export function openIndexQuery({
  folder,
  behindMs,
  mostHeapMb = defaultHeapMb,
  mostMs = defaultMostMs,
}: IndexQueryOptions): LogQuery {
  let reader: ReadingThread | undefined
  let isClosed = false
  function ask<T>(order: Unnumbered<ReadOrder>, asking?: Asking): Promise<T> {
    if (isClosed) return Promise.reject(new Error('the index of the delivery log is closed'))
    reader ??= new ReadingThread({
      folder,
      mostHeapMb,
      mostMs,
      onEnded(ended) {
        if (reader === ended) reader = undefined
      },
    })
    return reader.ask(order, asking)
  }
  return {
    find: (messageId, asking) => ask({ ask: 'find', messageId }, asking),
    search: (filter, page, asking) => ask({ ask: 'search', filter, page }, asking),
    counts: (filter, asking) => ask({ ask: 'counts', filter }, asking),
    percentiles: (filter, asking) => ask({ ask: 'percentiles', filter }, asking),
    groups: (filter, grouping, asking) => ask({ ask: 'groups', filter, grouping }, asking),
    status: async () => ({
      ...(await ask<Omit<LogStatus, 'behindMs'>>({ ask: 'status' })),
      behindMs: behindMs(),
    }),
    async close() {
      isClosed = true
      await reader?.stop()
    },
  }
}

type Unnumbered<O> = O extends unknown ? Omit<O, 'id'> : never

type ReadingThreadOptions = {
  readonly folder: string
  readonly mostHeapMb: number
  readonly mostMs: number
  /** Called when the thread answers no more queries. It may be called twice. */
  readonly onEnded: (thread: ReadingThread) => void
}

/** A thread that answers queries, with its unanswered queries. */
class ReadingThread {
  readonly #options: ReadingThreadOptions
  readonly #thread: Worker
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0

  constructor(options: ReadingThreadOptions) {
    this.#options = options
    const workerData: IndexThreadData = { indexThread: 'read', folder: options.folder, keptMs: 0 }
    const resourceLimits = { maxOldGenerationSizeMb: options.mostHeapMb }
    this.#thread = new Worker(indexThreadUrl, { workerData, resourceLimits })
    this.#thread.unref()
    this.#thread.on('message', (report: ReadReport) => this.#answered(report))
    this.#thread.on('error', (error: Error) => this.#end(this.#inWords(error)))
    this.#thread.on('exit', (code) =>
      this.#end(new Error(`the thread that reads the index of the delivery log has ended with ${code}`)),
    )
  }

  /**
   * Sends a query to the thread and resolves with the answer. Rejects if the answer takes too long or if
   * `signal` is aborted. The thread then abandons the query.
   */
  async ask<T>(order: Unnumbered<ReadOrder>, { signal }: Asking = {}): Promise<T> {
    signal?.throwIfAborted()
    const asked = Promise.withResolvers<unknown>()
    const id = ++this.#lastId
    const giveUp = (error: unknown): void => {
      this.#tell({ id, ask: 'nothing' })
      this.#forget(id)
      asked.reject(error)
    }
    const timer = setTimeout(() => giveUp(tooLong(this.#options.mostMs)), this.#options.mostMs)
    const onGone = (): void => giveUp(signal?.reason)
    signal?.addEventListener('abort', onGone, { once: true })
    this.#tell({ id, ...order })
    this.#waiting.set(id, asked)
    this.#thread.ref()
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer to the query with this id
      return (await asked.promise) as T
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onGone)
    }
  }

  /** Ends the thread. Its unanswered queries are rejected. */
  async stop(): Promise<void> {
    await this.#thread.terminate()
  }

  #tell(order: ReadOrder): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    this.#thread.postMessage(order)
  }

  #forget(id: number): void {
    this.#waiting.delete(id)
    if (this.#waiting.size === 0) this.#thread.unref()
  }

  #answered(report: ReadReport): void {
    const asked = this.#waiting.get(report.id)
    this.#forget(report.id)
    if ('answer' in report) asked?.resolve(report.answer)
    else asked?.reject(errorOf(report))
  }

  #end(error: Error): void {
    this.#options.onEnded(this)
    for (const asked of this.#waiting.values()) asked.reject(error)
    this.#waiting.clear()
  }

  #inWords(error: Error): Error {
    if (!('code' in error) || error.code !== 'ERR_WORKER_OUT_OF_MEMORY') return error
    const most = this.#options.mostHeapMb
    return new Error(
      `a question to the delivery log needs more than ${most} MiB of memory: ask for less time, or for one destination`,
      { cause: error },
    )
  }
}

function tooLong(mostMs: number): QueryTooLongError {
  return new QueryTooLongError(
    `a question to the delivery log takes longer than ${mostMs / 1_000} s: ask for less time, or for one destination`,
  )
}

function errorOf({ error, why }: Extract<ReadReport, { error: string }>): Error {
  switch (why) {
    case 'bad_cursor':
      return new BadCursorError(error)
    case 'own_fault':
      return new QueryFaultError(error)
    case 'unavailable':
      return new Error(error)
  }
}
