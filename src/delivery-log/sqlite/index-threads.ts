import { Worker } from 'node:worker_threads'
import type { Indexing, IndexingEvents } from '../indexing.ts'
import { BadCursorError, type LogQuery, type LogStatus } from '../log-query.ts'
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
  /** The thread has ended, and nothing is indexed any more. */
  readonly onFailed: (error: Error) => void
}

/** Writes an index in a thread of its own, so that nothing here waits for a disk. */
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
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
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

/**
 * Asks an index in a thread of its own. `behindMs` tells how far the index is.
 */
export function openIndexQuery({ folder, behindMs }: { folder: string; behindMs: () => number }): LogQuery {
  const data: IndexThreadData = { indexThread: 'read', folder, keptMs: 0 }
  const thread = new Worker(indexThreadUrl, { workerData: data })
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let lastId = 0
  thread.unref()
  thread.on('message', (report: ReadReport) => {
    const asked = waiting.get(report.id)
    waiting.delete(report.id)
    if (waiting.size === 0) thread.unref()
    if ('answer' in report) asked?.resolve(report.answer)
    else asked?.reject(report.isBadCursor ? new BadCursorError(report.error) : new Error(report.error))
  })
  thread.on('error', (error: Error) => {
    for (const asked of waiting.values()) asked.reject(error)
    waiting.clear()
  })
  type Unnumbered<O> = O extends unknown ? Omit<O, 'id'> : never
  async function ask<T>(order: Unnumbered<ReadOrder>): Promise<T> {
    const asked = Promise.withResolvers<unknown>()
    const id = ++lastId
    waiting.set(id, asked)
    thread.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
    thread.postMessage({ id, ...order })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer to the question of this id
    return (await asked.promise) as T
  }
  return {
    find: (messageId) => ask({ ask: 'find', messageId }),
    search: (filter, page) => ask({ ask: 'search', filter, page }),
    counts: (filter) => ask({ ask: 'counts', filter }),
    percentiles: (filter) => ask({ ask: 'percentiles', filter }),
    status: async () => ({
      ...(await ask<Omit<LogStatus, 'behindMs'>>({ ask: 'status' })),
      behindMs: behindMs(),
    }),
    async close() {
      await thread.terminate()
    },
  }
}
