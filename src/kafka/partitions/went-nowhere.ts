import type { LeftOut } from '../wire/went-nowhere-part.ts'

/** Consecutive offsets: at least `start`, and lower than `end`. */
type OffsetRun = { readonly start: number; readonly end: number }

/**
 * The most runs that are kept. Twice as many take 200 KB. The metadata of a commit has room for fewer,
 * because a run takes two bits or more.
 */
const mostRuns = 6_144

/**
 * Notes which records of a partition went nowhere. Every offset counts as left out until `passOn` is called
 * for it. So records that were refused, that no destination took, or that were deleted before they were read
 * are left out, and whatever else may happen to a record. Only offsets below `since` aren't noted.
 */
export class LeftOutOffsets {
  #since: number
  /** The offset after the last one that is noted. */
  #top: number
  /**
   * The last offset that is left out, while it isn't in a run yet. -1: none. Most records are passed on as
   * soon as they are taken, so most never come into a run.
   */
  #newest = -1
  /** The runs of offsets that are left out, ascending. No two of them touch each other. */
  #starts: number[] = []
  #ends: number[] = []

  /**
   * @param position the committed offset
   * @param settledAbove the offsets above `position` that a former owner settled, ascending
   * @param inherited the notes of the former owner. `undefined`: nothing is known of what it settled
   */
  constructor(position: number, settledAbove: readonly number[] = [], inherited?: LeftOut) {
    const top = Math.max(position, (settledAbove.at(-1) ?? -1) + 1)
    this.#since = Math.max(0, inherited?.since ?? top)
    this.#top = this.#since
    if (inherited === undefined) return
    // The offsets between the settled ones weren't settled, so nothing of them counts as passed on.
    const unsettled = runsBetween(position, settledAbove)
    for (const { start, end } of joined([...runsOf(inherited), ...unsettled]))
      if (end > this.#since) this.#add(Math.max(start, this.#since), end)
    this.#top = Math.max(this.#top, top)
  }

  /** What is noted now. Read it before the next note. */
  get noted(): LeftOut {
    this.#keepNewest()
    return { since: this.#since, starts: this.#starts, ends: this.#ends }
  }

  /** Leaves out all offsets below `end` that aren't noted yet. */
  leaveOutTo(end: number): void {
    const top = this.#top
    if (end <= top) return
    this.#keepNewest()
    if (end === top + 1) this.#newest = top
    else this.#add(top, end)
    this.#top = end
  }

  /** Notes that a record was passed on. It was left out before. */
  passOn(offset: number): void {
    if (offset === this.#newest) {
      this.#newest = -1
      return
    }
    const index = this.#find(offset)
    const start = this.#starts[index] ?? Infinity
    const end = this.#ends[index] ?? -Infinity
    if (offset < start || offset >= end) return
    if (start === offset && end === offset + 1) {
      this.#starts.splice(index, 1)
      this.#ends.splice(index, 1)
    } else if (end === offset + 1) this.#ends[index] = offset
    else if (start === offset) this.#starts[index] = offset + 1
    else {
      this.#starts.splice(index + 1, 0, offset + 1)
      this.#ends.splice(index, 0, offset)
      this.#trim()
    }
  }

  #keepNewest(): void {
    if (this.#newest < 0) return
    const newest = this.#newest
    this.#newest = -1
    this.#add(newest, newest + 1)
  }

  #add(start: number, end: number): void {
    const last = this.#ends.length - 1
    if (last >= 0 && this.#ends[last] === start) {
      this.#ends[last] = end
      return
    }
    this.#starts.push(start)
    this.#ends.push(end)
    this.#trim()
  }

  /** Forgets the older half of the runs if there are too many. */
  #trim(): void {
    if (this.#starts.length < 2 * mostRuns) return
    this.#since = this.#ends[mostRuns - 1] ?? this.#since
    this.#starts = this.#starts.slice(mostRuns)
    this.#ends = this.#ends.slice(mostRuns)
  }

  /** Returns the index of the first run that ends after `offset`. */
  #find(offset: number): number {
    let [low, high] = [0, this.#ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#ends[middle] ?? Infinity) <= offset) low = middle + 1
      else high = middle
    }
    return low
  }
}

function runsOf({ starts, ends }: LeftOut): readonly OffsetRun[] {
  return starts.map((start, index) => ({ start, end: ends[index] ?? start }))
}

/** Returns the runs of offsets from `position` to the last settled offset that aren't settled. */
function runsBetween(position: number, settledAbove: readonly number[]): readonly OffsetRun[] {
  const runs: OffsetRun[] = []
  let start = position
  for (const settled of settledAbove) {
    if (settled > start) runs.push({ start, end: settled })
    start = settled + 1
  }
  return runs
}

/** Returns these runs in ascending order. Runs that overlap or touch each other become one. */
function joined(runs: readonly OffsetRun[]): readonly OffsetRun[] {
  const all: { start: number; end: number }[] = []
  for (const { start, end } of runs.toSorted((one, other) => one.start - other.start)) {
    const last = all.at(-1)
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end)
    else all.push({ start, end })
  }
  return all
}
