import { parentPort, workerData } from 'node:worker_threads'
import { BadCursorError, isQueryFault, type LogFilter } from '../log-query.ts'
import type { Grouping } from '../groups.ts'
import { IndexReader, type Steps } from './index-reader.ts'
import { IndexWriter } from './index-writer.ts'

/**
 * The URL of this module. With this URL, the module can be started as a thread. The URL ends in .ts when the
 * sources are run, and in .js after a build.
 */
export const indexThreadUrl = new URL(import.meta.url)

/** The options of a thread. One thread writes the index. Other threads read the index. */
export type IndexThreadData = {
  readonly indexThread: 'write' | 'read'
  readonly folder: string
  readonly keptMs: number
}

/** An order to the thread that writes. In `bytes`, the values of all blocks come one after the other. */
export type WriteOrder =
  | {
      readonly order: 'add'
      readonly bytes: Uint8Array
      readonly blocks: readonly { partition: number; offset: number; timestampMs: number; length: number }[]
    }
  | {
      readonly order: 'restart'
      readonly partition: number
      readonly next: number
      readonly topicId: string
      readonly isOther: boolean
    }
  | { readonly order: 'stop' }

export type WriteReport =
  | {
      readonly report: 'opened'
      readonly positions: readonly (readonly [
        partition: number,
        position: { next: number; topicId: string },
      ])[]
    }
  /** Reports that the thread has processed `bytes` bytes of block values. */
  | { readonly report: 'taken'; readonly bytes: number }
  | {
      readonly report: 'indexed'
      readonly rows: number
      readonly unreadable: number
      readonly expired: number
    }
  | { readonly report: 'stopped' }

export type ReadOrder = { readonly id: number } & (
  | { readonly ask: 'find'; readonly messageId: string }
  | {
      readonly ask: 'search'
      readonly filter: LogFilter
      readonly page: { limit: number; cursor?: string | undefined }
    }
  | { readonly ask: 'counts' | 'percentiles'; readonly filter: LogFilter }
  | { readonly ask: 'groups'; readonly filter: LogFilter; readonly grouping: Grouping }
  | { readonly ask: 'status' }
  /** Abandons the query with this id, because the caller doesn't wait for its answer any more. */
  | { readonly ask: 'nothing' }
)

export type ReadReport = { readonly id: number } & (
  | { readonly answer: unknown }
  | { readonly error: string; readonly why: 'bad_cursor' | 'own_fault' | 'unavailable' }
)

/**
 * The interval at which waiting rows are committed, in milliseconds. If `commitRows` rows wait, they are
 * committed at once.
 */
const commitEveryMs = 500
const commitRows = 20_000
const tendEveryMs = 30_000
/**
 * Limit on the queries that are answered in turns. Each of these queries keeps in memory the records that it
 * has found so far.
 */
const questionsAtOnce = 8

/**
 * The following code runs only if this module was started as a thread. In other cases, the module is imported
 * for its URL.
 */
if (isThreadData(workerData)) {
  if (workerData.indexThread === 'write') runWriter(workerData)
  else runReader(workerData)
}

function report(message: WriteReport | ReadReport): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(message)
}

function runWriter({ folder, keptMs }: IndexThreadData): void {
  const writer = new IndexWriter({ folder, keptMs, now: Date.now })
  function commit(): void {
    if (writer.hasUncommitted) report({ report: 'indexed', ...writer.commit() })
  }
  writer.tend()
  const timers = [setInterval(commit, commitEveryMs), setInterval(() => writer.tend(), tendEveryMs)]
  report({ report: 'opened', positions: writer.positions })
  parentPort?.on('message', (order: WriteOrder) => {
    switch (order.order) {
      case 'add': {
        const bytes = Buffer.from(order.bytes.buffer, order.bytes.byteOffset, order.bytes.length)
        let at = 0
        for (const { length, ...block } of order.blocks) {
          writer.add({ ...block, value: bytes.subarray(at, at + length) })
          at += length
          if (writer.pending >= commitRows) commit()
        }
        report({ report: 'taken', bytes: at })
        return
      }
      case 'restart':
        writer.restart(order.partition, order.next, order.topicId, order.isOther)
        return
      case 'stop':
        for (const timer of timers) clearInterval(timer)
        commit()
        writer.close()
        report({ report: 'stopped' })
        parentPort?.close()
    }
  })
}

function runReader({ folder }: IndexThreadData): void {
  const reader = new IndexReader(folder)
  setInterval(() => reader.tend(), tendEveryMs)
  const questions: { readonly id: number; readonly steps: Steps<unknown> }[] = []
  let isAnswering = false
  /** Does one step of the next query. Between two steps, the thread receives orders. */
  function takeTurn(): void {
    const question = questions.shift()
    isAnswering = question !== undefined
    if (question === undefined) return
    const { id, steps } = question
    try {
      const { done, value } = steps.next()
      if (done === true) report({ id, answer: value })
      else questions.splice(questionsAtOnce - 1, 0, question)
    } catch (error) {
      report({ id, error: error instanceof Error ? error.message : String(error), why: whyOf(error) })
    }
    setImmediate(takeTurn)
  }
  parentPort?.on('message', (order: ReadOrder) => {
    if (order.ask === 'nothing') {
      const at = questions.findIndex(({ id }) => id === order.id)
      if (at >= 0) questions.splice(at, 1)
      return
    }
    questions.push({ id: order.id, steps: stepsOf(reader, order) })
    if (!isAnswering) setImmediate(takeTurn)
    isAnswering = true
  })
}

function whyOf(error: unknown): 'bad_cursor' | 'own_fault' | 'unavailable' {
  if (error instanceof BadCursorError) return 'bad_cursor'
  return isQueryFault(error) ? 'own_fault' : 'unavailable'
}

function stepsOf(reader: IndexReader, order: Exclude<ReadOrder, { ask: 'nothing' }>): Steps<unknown> {
  switch (order.ask) {
    case 'find':
      return reader.find(order.messageId)
    case 'search':
      return reader.search(order.filter, order.page)
    case 'counts':
      return reader.counts(order.filter)
    case 'percentiles':
      return reader.percentiles(order.filter)
    case 'groups':
      return reader.groups(order.filter, order.grouping)
    case 'status':
      return reader.status()
  }
}

function isThreadData(value: unknown): value is IndexThreadData {
  return typeof value === 'object' && value !== null && 'indexThread' in value
}
