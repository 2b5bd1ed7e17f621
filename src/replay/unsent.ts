import type { LeftOutReason, SourceRecord } from './chosen.ts'
import type { JobProgress, UnsentRange } from './job.ts'

/**
 * Limit on the ranges that a replay keeps. They are a part of each note of its progress, which is written up
 * to four times a second.
 */
const mostRanges = 100

/**
 * The reasons that the record itself has. Every later replay leaves the record out for the same reason, so
 * nothing has to be remembered about it.
 */
const lasting: ReadonlySet<string> = new Set<LeftOutReason>(['value_omitted', 'not_replayable'])

/** Returns true if a later replay may send a record that was left out for this reason. */
function mayBeSentLater(why: string): boolean {
  return !lasting.has(why)
}

/**
 * Returns true if the progress of a replay says which selected records were not sent. Workers of earlier
 * versions have only noted how many.
 */
export function knowsUnsent(progress: Pick<JobProgress, 'unsent' | 'done'> | undefined): boolean {
  return progress?.unsent !== undefined || !Object.keys(progress?.done.leftOut ?? {}).some(mayBeSentLater)
}

type Range = { start: number; end: number }

/**
 * The records that a replay has selected, but not sent. A later replay sends them if it can, so they must be
 * known beside those that were sent. Records that were left out one after the other take one range. If there
 * are too many ranges, two neighbours become one. The records between them then count as not sent, and a
 * later replay repeats them: a record is rather sent twice than never.
 */
export class Unsent {
  readonly #ranges = new Map<number, Range[]>()
  /** The partitions whose last selected record was left out. */
  readonly #open = new Set<number>()
  #count = 0

  constructor(ranges: readonly UnsentRange[] = []) {
    for (const [partition, start, end] of ranges) this.#of(partition).push({ start, end })
    this.#count = ranges.length
  }

  get ranges(): readonly UnsentRange[] {
    return [...this.#ranges].flatMap(([partition, ranges]) =>
      ranges.map(({ start, end }) => [partition, start, end] as const),
    )
  }

  /** Called for each record that was left out, in the order of the offsets of a partition. */
  leftOut({ partition, offset }: Pick<SourceRecord, 'partition' | 'offset'>, why: LeftOutReason): void {
    if (!mayBeSentLater(why)) return
    const last = this.#open.has(partition) ? this.#of(partition).at(-1) : undefined
    if (last !== undefined) last.end = offset + 1
    else this.#add(partition, offset)
    this.#open.add(partition)
  }

  /** Called for each record that is to be sent, in the order of the offsets of a partition. */
  sent({ partition }: Pick<SourceRecord, 'partition'>): void {
    this.#open.delete(partition)
  }

  /**
   * Called for a record that was to be sent, and that Kafka has refused. Later records may be known already.
   */
  refused({ partition, offset }: Pick<SourceRecord, 'partition' | 'offset'>): void {
    this.#add(partition, offset)
  }

  #add(partition: number, offset: number): void {
    const ranges = this.#of(partition)
    ranges.push({ start: offset, end: offset + 1 })
    ranges.sort((one, other) => one.start - other.start)
    if (++this.#count > mostRanges) this.#joinNearest()
  }

  #joinNearest(): void {
    let nearest: { ranges: Range[]; index: number; gap: number } | undefined
    for (const ranges of this.#ranges.values()) {
      for (const [index, { end }] of ranges.entries()) {
        const gap = (ranges[index + 1]?.start ?? Infinity) - end
        if (gap < (nearest?.gap ?? Infinity)) nearest = { ranges, index, gap }
      }
    }
    if (nearest === undefined) return
    const { ranges, index } = nearest
    const [one, other] = ranges.slice(index, index + 2)
    if (one === undefined || other === undefined) return
    ranges.splice(index, 2, { start: one.start, end: Math.max(one.end, other.end) })
    this.#count--
  }

  #of(partition: number): Range[] {
    const known = this.#ranges.get(partition)
    if (known !== undefined) return known
    const ranges: Range[] = []
    this.#ranges.set(partition, ranges)
    return ranges
  }
}
