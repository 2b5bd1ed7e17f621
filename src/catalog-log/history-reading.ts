import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import type { Made, ObjectDifference } from './difference.ts'
import { GatheredChange, type HistoryChange, type PartRead, readPart } from './history.ts'
import type { ObjectName } from './names.ts'
import type { RecordSeals } from './record.ts'

/** A change, without the definitions of all its objects. */
export type ListedChange = Omit<HistoryChange, 'objects'> & {
  /** False if records of it were deleted, because they were too old. */
  readonly isWhole: boolean
  /** How many objects it has changed. */
  readonly count: number
  /** The first of them. */
  readonly made: readonly { readonly name: ObjectName; readonly what: Made }[]
  /** The object that was asked for, before and after. */
  readonly difference: ObjectDifference | undefined
}

export type HistoryPage = {
  /** Newest first. May be fewer than were asked for, although there are more. */
  readonly changes: readonly ListedChange[]
  /** The offset before which the next page begins. `undefined` after the last page. */
  readonly next: number | undefined
}

export type FoundChange =
  | { readonly ok: true; readonly change: HistoryChange }
  /** `cut`: it was deleted, because it was too old. `firstRevision`: the oldest change that is there. */
  | {
      readonly ok: false
      readonly kind: 'cut' | 'unknown'
      readonly firstRevision: number | undefined
    }

export type HistoryOptions = {
  readonly topic: string
  readonly seals: RecordSeals
  /** Called with a record that was left out. */
  readonly onRefused: (refused: {
    readonly offset: number
    readonly key: string
    readonly problem: string
  }) => void
}

type Range = { readonly start: number; readonly end: number }
type Part = Extract<PartRead, { ok: true }>['part']

/**
 * How many offsets are read at a time, from the end of the topic to its start: first few for each change that
 * is asked for, then twice as many each time.
 */
const windowOffsets = { ofChange: 4, least: 50, most: 2_000 } as const
/** The most offsets that are read for a page. */
const mostOffsets = 10_000
/** Limit on the objects that a listed change names. */
const mostNamed = 100
/** A range of so many offsets is read from its start, and not divided further. */
const fewOffsets = 200
/** Longer than a transaction stays open whose writer has died. */
const stallTimeoutMs = 25_000

/**
 * Reads the history of the catalog, and keeps nothing of it. Leaves out records that somebody without a key
 * wrote. A record that somebody wrote again is shown again: it says what was true at its revision.
 */
export class HistoryReading {
  readonly #reader: Pick<PartitionReader, 'ranges' | 'piece'>
  readonly #options: HistoryOptions

  constructor(reader: Pick<PartitionReader, 'ranges' | 'piece'>, options: HistoryOptions) {
    this.#reader = reader
    this.#options = options
  }

  /** Returns the latest changes before an offset. `key`: only those of this object. */
  async page({
    before,
    limit,
    key,
  }: {
    readonly before?: number | undefined
    readonly limit: number
    readonly key?: string | undefined
  }): Promise<HistoryPage> {
    const { start, end } = await this.#range()
    const last = Math.min(before ?? end, end)
    const lowest = Math.max(start, last - mostOffsets)
    /** The changes of which earlier records may be in the next window. */
    const open = new Map<number, GatheredChange>()
    const found: { readonly listed: ListedChange; readonly offset: number }[] = []
    let from = last
    let lowestDone: number | undefined
    let window = Math.max(windowOffsets.least, windowOffsets.ofChange * limit)
    while (from > lowest && found.length < limit) {
      const to = from
      window = Math.min(window, windowOffsets.most)
      from = Math.max(lowest, from - window)
      window *= 2
      for await (const part of this.#parts(from, to)) gather(open, part, (one) => one === key)
      const done = [...open.values()].filter(({ hasBegun }) => hasBegun || from === start)
      for (const change of done.toSorted((one, other) => other.offset - one.offset)) {
        const { offset } = change
        open.delete(change.revision)
        lowestDone = Math.min(lowestDone ?? offset, offset)
        if (key === undefined || change.has(key)) found.push({ listed: listedOf(change), offset })
      }
    }
    const page = found.slice(0, limit)
    const changes = page.map(({ listed }) => listed)
    if (found.length > page.length) return { changes, next: page.at(-1)?.offset }
    // All records of a change that has not begun are before those of the others.
    const unread = open.size > 0 ? (lowestDone ?? from) : from
    return { changes, next: from > start ? unread : undefined }
  }

  /** Returns the change with a revision. */
  async find(revision: number): Promise<FoundChange> {
    const range = await this.#range()
    const first = await this.#firstFrom(range.start, range.end)
    const firstRevision = first?.revision
    if (firstRevision === undefined || revision < firstRevision)
      return { ok: false, kind: 'cut', firstRevision }
    // If somebody wrote old records again, the revisions aren't in order.
    const change =
      (await this.#gathered(revision, { start: await this.#placeOf(revision, range), end: range.end })) ??
      (await this.#gathered(revision, range))
    if (change === undefined) return { ok: false, kind: 'unknown', firstRevision }
    if (!change.isWhole) return { ok: false, kind: 'cut', firstRevision }
    return { ok: true, change: change.change() }
  }

  /** Returns an offset at or shortly before the first record of a revision, by halving the range. */
  async #placeOf(revision: number, { start, end }: Range): Promise<number> {
    let [low, high] = [start, end]
    while (high - low > fewOffsets) {
      const middle = Math.floor((low + high) / 2)
      const part = await this.#firstFrom(middle, high)
      if (part === undefined || part.revision >= revision) high = middle
      else low = part.offset
    }
    return low
  }

  /** Reads a range up to the end of the change with a revision. */
  async #gathered(revision: number, { start, end }: Range): Promise<GatheredChange | undefined> {
    const found = new Map<number, GatheredChange>()
    for await (const part of this.#parts(start, end)) {
      if (part.revision === revision) gather(found, part, () => true)
      else if (part.revision > revision) break
      if (found.get(revision)?.isWhole === true) break
    }
    return found.get(revision)
  }

  async #firstFrom(start: number, end: number): Promise<Part | undefined> {
    for await (const part of this.#parts(start, end)) return part
    return undefined
  }

  async #range(): Promise<Range> {
    const { topic } = this.#options
    const { ranges } = await this.#reader.ranges({ topic, partitions: [0] })
    const range = ranges.get(0)
    if (range === undefined) throw new Error(`${topic} has no leader now`)
    return range
  }

  async *#parts(start: number, end: number): AsyncGenerator<Part, void> {
    const { topic, seals, onRefused } = this.#options
    for (let next = start; next < end;) {
      const piece = await this.#reader.piece({ topic, partition: 0, from: next, to: end, stallTimeoutMs })
      for (const record of piece.records) {
        const read = readPart(seals, record)
        if (read.ok) yield read.part
        else onRefused({ offset: record.offset, key: String(record.key), problem: read.problem })
      }
      next = piece.next
    }
  }
}

function gather(all: Map<number, GatheredChange>, part: Part, keeps: (key: string) => boolean): void {
  const known = all.get(part.revision)
  if (known === undefined) all.set(part.revision, new GatheredChange(part, keeps))
  else known.take(part)
}

function listedOf(change: GatheredChange): ListedChange {
  const { objects, ...about } = change.change()
  const { isWhole, count } = change
  return { ...about, isWhole, count, made: change.made(mostNamed), difference: objects[0] }
}
