import type { Chosen, SourceRecord } from './chosen.ts'
import type { OffsetRange } from './job.ts'
import { type Group, Groups } from './groups.ts'
import { nextPartition, passed, type Pieces } from './pieces.ts'
import { type Tally, TallyBuilder } from './replay-tally.ts'

/** The number of partitions that are read at the same time. */
const atATime = 4

export type Counted = {
  readonly tally: Tally
  readonly groups: readonly Group[]
  readonly isComplete: boolean
}

/**
 * Counts the records that a replay would send. At the time `untilMs` on the clock of `performance.now()`, the
 * count ends even if it isn't complete. The result says whether the count is complete. Resolves with `lost`
 * if the topic lost records, or was created again, before they were counted. Rejects if the topic can't be
 * read.
 */
export async function count({
  ranges,
  pieces,
  choose,
  untilMs = Infinity,
  onProgress = () => undefined,
}: {
  ranges: readonly OffsetRange[]
  pieces: Pieces
  choose: (record: SourceRecord) => Chosen
  untilMs?: number
  onProgress?: (passed: number, tally: Tally) => void
}): Promise<Counted | 'lost'> {
  const offsets = ranges.map(({ start }) => start)
  const both = new Both()
  let last = -1
  let ended: 'late' | 'lost' | undefined

  async function read(): Promise<void> {
    for (;;) {
      const partition = nextPartition(ranges, offsets, last)
      if (partition === undefined) return
      if (performance.now() > untilMs) ended ??= 'late'
      if (ended !== undefined) return
      last = partition
      await readPartition(partition)
    }
  }

  /**
   * Reads a partition to the end of its range. First marks the partition as done in `offsets`, so that no
   * second reader starts on the partition.
   */
  async function readPartition(partition: number): Promise<void> {
    const from = offsets[partition] ?? 0
    const to = ranges[partition]?.end ?? 0
    offsets[partition] = to
    for (let at = from; at < to;) {
      const piece = await before(untilMs, pieces.piece({ partition, from: at, to }))
      if (piece === undefined || typeof piece === 'string') {
        ended = piece === undefined ? 'late' : 'lost'
        return
      }
      const { records, next } = piece
      for (const record of records) both.add(record, choose(record))
      at = next
      offsetsSeen[partition] = at
      onProgress(passed(ranges, offsetsSeen).passed, both.sum.tally)
      if (performance.now() > untilMs) {
        if (at < to) ended ??= 'late'
        return
      }
    }
  }

  const offsetsSeen = [...offsets]
  await Promise.all(Array.from({ length: atATime }, read))
  return ended === 'lost' ? 'lost' : { ...both.result, isComplete: ended === undefined }
}

/** The count as a whole, and by groups. */
class Both {
  readonly sum = new TallyBuilder()
  readonly #groups = new Groups()

  add(record: SourceRecord, chosen: Chosen): void {
    this.sum.add(chosen)
    this.#groups.add(record, chosen)
  }

  get result(): Pick<Counted, 'tally' | 'groups'> {
    return { tally: this.sum.tally, groups: this.#groups.list }
  }
}

/**
 * Resolves with the result of `work`. Resolves with `undefined` if `work` hasn't ended at the time `untilMs`
 * on the clock of `performance.now()`. Without this limit, a read would take as long as a schema registry is
 * unavailable.
 */
async function before<T>(untilMs: number, work: Promise<T>): Promise<T | undefined> {
  if (untilMs === Infinity) return work
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), Math.max(0, untilMs - performance.now()))
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
    // A later error of `work` is ignored, because nobody waits for it.
    work.catch(() => undefined)
  }
}
