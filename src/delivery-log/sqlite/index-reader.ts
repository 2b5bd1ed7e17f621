import { existsSync } from 'node:fs'
import {
  BadCursorError,
  type LogFilter,
  type LogPage,
  type LogStatus,
  maxTextOfAnswer,
  type MinuteCount,
  type MinutePercentiles,
  textOf,
} from '../log-query.ts'
import { type Grouping, groupOf, type Groups, GroupSums } from '../groups.ts'
import type { LogRecord } from '../log-record.ts'
import { kindOf, outcomeOf, verdictOf } from '../block-reader.ts'
import { slotPath, slotsIn } from './log-files.ts'
import { msOfBucket, slotMs, slotOf } from './row.ts'
import { type Found, type IdRange, SlotReader } from './slot-reader.ts'

/** The shortest interval between two listings of the folder's files, in milliseconds. */
const lookEveryMs = 500
/**
 * Limit on the slots, which are files of one hour each, that are open. Each of them takes up to three open
 * files, and a cache.
 */
const maxOpenSlots = 200

/**
 * A query that is answered in steps. Each step reads the file of one slot, which is one hour. Between two
 * steps, the thread can do steps of other queries, or abandon the query.
 */
export type Steps<T> = Generator<undefined, T, undefined>

/** Reads the files of an index, while another thread or process may be writing them. */
export class IndexReader {
  readonly #folder: string
  /** The open slots. The slot that was asked last is the last one. */
  readonly #readers = new Map<number, SlotReader>()
  /** The slots that were asked since the last call of `tend`. */
  readonly #asked = new Set<number>()
  #slots: readonly number[] = []
  #lookedAtMs = -Infinity

  constructor(folder: string) {
    this.#folder = folder
  }

  *find(messageId: string): Steps<LogRecord[]> {
    const { records } = yield* this.#newest({ messageId, fromMs: 0, toMs: Infinity }, undefined, maxFound)
    return records.map(({ record }) => record).toReversed()
  }

  *search(
    filter: LogFilter,
    { limit, cursor }: { limit: number; cursor?: string | undefined },
  ): Steps<LogPage> {
    const place = cursor === undefined ? undefined : placeOf(cursor)
    const { records, next } = yield* this.#newest(filter, place, limit)
    return { records: records.map(({ record }) => record), ...(next !== undefined && { cursor: next }) }
  }

  *counts(filter: LogFilter): Steps<MinuteCount[]> {
    const sums = new Map<string, { -readonly [Name in keyof MinuteCount]: MinuteCount[Name] }>()
    const how = { withDuration: false, minutes: 1 }
    yield* this.#countEach(filter, how, (reader, { minute, shape, count }) => {
      const { kind, verdict, reason } = reader.shape(shape)
      const minuteMs = reader.slot * slotMs + minute * 60_000
      const key = `${minuteMs},${kind},${verdict},${reason}`
      const sum = sums.get(key)
      if (sum === undefined)
        sums.set(key, { minuteMs, kind: kindOf(kind), verdict: verdictOf(verdict), reason, count })
      else sum.count += count
    })
    return [...sums.values()].toSorted((a, b) => a.minuteMs - b.minuteMs)
  }

  *percentiles(filter: LogFilter): Steps<MinutePercentiles[]> {
    const byMinute = new Map<number, Map<number, number>>()
    const how = { withDuration: true, minutes: 1 }
    yield* this.#countEach({ ...filter, kinds: ['attempted'] }, how, (reader, { minute, bucket, count }) => {
      const minuteMs = reader.slot * slotMs + minute * 60_000
      const buckets = byMinute.get(minuteMs) ?? new Map<number, number>()
      byMinute.set(minuteMs, buckets)
      buckets.set(bucket, (buckets.get(bucket) ?? 0) + count)
    })
    return [...byMinute]
      .toSorted(([a], [b]) => a - b)
      .map(([minuteMs, buckets]) => ({ minuteMs, ...percentilesOf(buckets) }))
  }

  *groups(filter: LogFilter, grouping: Grouping): Steps<Groups> {
    const sums = new GroupSums(filter, grouping)
    // The minutes of a step are counted together, as far as they are in one slot.
    const how = { withDuration: false, minutes: Math.min(60, grouping.stepMs / 60_000) }
    yield* this.#countEach(filter, how, (reader, { minute, shape, count }) => {
      const { destination, status, reason, ...indexes } = reader.shape(shape)
      const kind = kindOf(indexes.kind)
      const outcome = outcomeOf(indexes.outcome)
      const key = groupOf({ kind, destination, status, outcome, reason }, grouping.by)
      if (key === undefined) return
      const atMs = reader.slot * slotMs + minute * 60_000
      sums.add(key, { atMs, kind, isDelivered: verdictOf(indexes.verdict) === 'delivered', count })
    })
    return sums.result()
  }

  *status(): Steps<Omit<LogStatus, 'behindMs'>> {
    const slots = this.#look()
    const timeAt = (at: readonly number[], which: 'min' | 'max'): number => {
      for (const slot of at) {
        const timeMs = this.#with(slot, (reader) => reader.timeOf(which)) ?? 0
        if (timeMs > 0) return timeMs
      }
      return 0
    }
    let rows = 0
    for (const slot of slots) {
      rows += this.#with(slot, (reader) => reader.rows) ?? 0
      yield
    }
    return { oldestMs: timeAt(slots, 'min'), newestMs: timeAt(slots.toReversed(), 'max'), rows }
  }

  /**
   * Closes the slots that weren't asked since the last call. Call this method now and then. Otherwise a file
   * that the writer has removed would take room on the disk until the next query, which may come months
   * later.
   */
  tend(): void {
    for (const slot of this.#readers.keys()) if (!this.#asked.has(slot)) this.#close(slot)
    this.#asked.clear()
  }

  close(): void {
    for (const slot of this.#readers.keys()) this.#close(slot)
  }

  /**
   * Returns the records that match a filter, newest first. If `place` is given, begins with the first record
   * that is older than `place`.
   */
  *#newest(
    filter: LogFilter,
    place: SlotPlace | undefined,
    limit: number,
  ): Steps<{ records: Found[]; next: string | undefined }> {
    const records: Found[] = []
    let text = 0
    for (const slot of this.#look().toReversed()) {
      if (place !== undefined && slot > place.slot) continue
      if (!isWithin(slot, filter)) continue
      let beforeId = place?.slot === slot ? place.id : Infinity
      for (let isMore = true; isMore;) {
        const most = Math.min(pieceRecords, limit - records.length)
        const found = this.#with(slot, (reader) => findBefore(reader, filter, beforeId, most)) ?? []
        records.push(...found)
        for (const { record } of found) text += textOf(record)
        beforeId = found.at(-1)?.id ?? beforeId
        if (records.length >= limit || text > maxTextOfAnswer)
          return { records, next: cursorOf(slot, beforeId) }
        isMore = found.length === most
        yield
      }
    }
    return { records, next: undefined }
  }

  *#countEach(
    filter: LogFilter,
    { withDuration, minutes }: { readonly withDuration: boolean; readonly minutes: number },
    take: (reader: SlotReader, counted: ReturnType<SlotReader['count']>[number]) => void,
  ): Steps<void> {
    for (const slot of this.#look()) {
      if (!isWithin(slot, filter)) continue
      this.#with(slot, (reader) => {
        const range: IdRange = reader.rangeOf(filter)
        for (const counted of reader.count(filter, range, withDuration, minutes)) take(reader, counted)
      })
      yield
    }
  }

  /**
   * Calls `ask` with the reader of a slot, which is the file of one hour. Returns `undefined` if this file
   * was removed or isn't created yet.
   */
  #with<T>(slot: number, ask: (reader: SlotReader) => T): T | undefined {
    try {
      return ask(this.#open(slot))
    } catch (error) {
      if (!isUnmade(error) && existsSync(slotPath(this.#folder, slot))) throw error
      this.#close(slot)
      return undefined
    }
  }

  #open(slot: number): SlotReader {
    const reader = this.#readers.get(slot) ?? new SlotReader(slot, slotPath(this.#folder, slot))
    this.#readers.delete(slot)
    this.#readers.set(slot, reader)
    this.#asked.add(slot)
    for (const oldest of this.#readers.keys()) {
      if (this.#readers.size <= maxOpenSlots) break
      this.#close(oldest)
    }
    return reader
  }

  #close(slot: number): void {
    this.#readers.get(slot)?.close()
    this.#readers.delete(slot)
  }

  #look(): readonly number[] {
    const nowMs = performance.now()
    if (nowMs - this.#lookedAtMs < lookEveryMs) return this.#slots
    this.#lookedAtMs = nowMs
    this.#slots = slotsIn(this.#folder)
    for (const slot of this.#readers.keys()) if (!this.#slots.includes(slot)) this.#close(slot)
    return this.#slots
  }
}

/** Answers a query without a pause between its steps, for callers that have nothing else to do. */
export function answerNow<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Returns true if a slot, which is the file of one hour, may have records of a time range. */
function isWithin(slot: number, { fromMs, toMs }: Pick<LogFilter, 'fromMs' | 'toMs'>): boolean {
  return slot >= slotOf(fromMs) && slot * slotMs < toMs
}

/** Limit on the records that are returned for one message. */
const maxFound = 10_000
/** The number of records after which the text of an answer is looked at, and other queries get their turn. */
const pieceRecords = 500

/** Returns the newest records of a slot with lower ids than `beforeId`. */
function findBefore(reader: SlotReader, filter: LogFilter, beforeId: number, most: number): Found[] {
  const range = reader.rangeOf(filter)
  const before = Math.min(beforeId, range.before)
  return before > range.from ? reader.find(filter, { ...range, before }, most) : []
}

/** The place of the last row of a page. */
type SlotPlace = { readonly slot: number; readonly id: number }

function cursorOf(slot: number, id: number): string {
  return Buffer.from(`${slot}.${id}`).toString('base64url')
}

function placeOf(cursor: string): SlotPlace {
  const match = /^(\d{1,9})\.(\d{1,16})$/.exec(Buffer.from(cursor, 'base64url').toString())
  if (match === null) throw new BadCursorError('the cursor is of no page of this log')
  return { slot: Number(match[1]), id: Number(match[2]) }
}

function percentilesOf(buckets: ReadonlyMap<number, number>): Omit<MinutePercentiles, 'minuteMs'> {
  const sorted = [...buckets].toSorted(([a], [b]) => a - b)
  const count = sorted.reduce((sum, [, one]) => sum + one, 0)
  const at = (share: number): number => {
    let seen = 0
    for (const [bucket, one] of sorted) {
      seen += one
      if (seen >= share * count) return Math.round(msOfBucket(bucket) * 100) / 100
    }
    return 0
  }
  return { count, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) }
}

/** Returns true if an error means that the tables of a file haven't been created yet. */
function isUnmade(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('no such table')
}
