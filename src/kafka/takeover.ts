import { setTimeout as delay } from 'node:timers/promises'
import type { Partition } from './partition.ts'
import { memoryOf, noCommit, type StoredCommit } from './stored-commit.ts'

/** How a member takes over the partitions that a join has given it. */
export type Takeover = {
  partitions: readonly Partition[]
  /** How long the owner before may need to finish what it has in flight. */
  handoverMs: number
  /** Where the group stands, in the order of `partitions`. */
  readStored: (partitions: readonly Partition[]) => Promise<StoredCommit[]>
  /** Units that another member may have something in flight of; `undefined` while the group doesn't say. */
  readBusyUnits: () => Promise<ReadonlySet<number> | undefined>
  /** This very member, or this process as it was before it was killed, may have something in flight of it. */
  isBusyHere: (partition: Partition, stored: StoredCommit) => boolean
  /** Those that still wait afterwards, and aren't cleared, are looked at again. */
  begin: (ready: readonly Ready[]) => Promise<void>
  /** There has been another join, or the member stops: what wasn't begun is not begun. */
  isOver: () => boolean
  onTrouble: (error: unknown) => void
}

export type Ready = { partition: Partition; stored: StoredCommit }

const lookEveryMs = 100
/** While nothing changes it looks less and less often: the group has one coordinator for all that wait. */
const lookLessOften = 1.5
const longestPauseMs = 1_000

/**
 * Begins each partition once its owner before is done with it: its commit has the final mark, or there is
 * none, or no living member has anything of it in flight, or the time for it is up.
 */
export async function takeOver(takeover: Takeover): Promise<void> {
  const { handoverMs, readBusyUnits, readStored, isBusyHere, begin, isOver, onTrouble } = takeover
  const deadlineMs = performance.now() + handoverMs
  let waiting = takeover.partitions
  let busyUnits: ReadonlySet<number> | undefined
  let pauseMs = lookEveryMs
  while (waiting.length > 0 && !isOver()) {
    try {
      busyUnits ??= await readBusyUnits()
      const stored = await readStored(waiting)
      if (isOver()) return
      // Whoever has begun with a partition has committed before: without a commit nobody has anything of it
      // in flight.
      const isBusy = (partition: Partition, commit: StoredCommit): boolean =>
        isBusyHere(partition, commit) || (commit.offset >= 0 && (busyUnits?.has(partition.id) ?? true))
      const isTimeUp = performance.now() >= deadlineMs
      const ready = waiting.flatMap((partition, index) => {
        const commit = stored[index] ?? noCommit
        const mayBegin = isTimeUp || !isBusy(partition, commit) || memoryOf(commit)?.isFinal === true
        return mayBegin ? [{ partition, stored: commit }] : []
      })
      if (ready.length > 0) await begin(ready)
      const left = waiting.filter(({ isWaiting, isCleared }) => isWaiting && !isCleared)
      pauseMs = left.length < waiting.length ? lookEveryMs : Math.min(pauseMs * lookLessOften, longestPauseMs)
      waiting = left
    } catch (error) {
      if (isOver()) return
      onTrouble(error)
      pauseMs = longestPauseMs
    }
    if (waiting.length > 0) await delay(pauseMs)
  }
}
