import { setTimeout as delay } from 'node:timers/promises'
import type { Partition } from '../partitions/partition.ts'
import { memoryOf, noCommit, type StoredCommit } from '../wire/stored-commit.ts'

/** The parameters for taking over the partitions that a join has given to a member. */
export type Takeover = {
  partitions: readonly Partition[]
  /**
   * The time that the previous owner may need to finish its requests in flight, in milliseconds. It is
   * `delivery.timeout` plus 3 s, which is 8 s by default.
   */
  handoverMs: number
  /** Reads the group's commits, in the order of `partitions`. */
  readStored: (partitions: readonly Partition[]) => Promise<StoredCommit[]>
  /**
   * Reads the units for which another member may have requests in flight. Resolves with `undefined` while the
   * group doesn't report them.
   */
  readBusyUnits: () => Promise<ReadonlySet<number> | undefined>
  /**
   * Returns true if this member, or the killed process that it replaces, may still have requests in flight
   * for the partition.
   */
  isBusyHere: (partition: Partition, stored: StoredCommit) => boolean
  /**
   * Begins partitions. If partitions still wait for their previous owner afterwards, they are looked at
   * again.
   */
  begin: (ready: readonly Ready[]) => Promise<void>
  /** Returns true after another join, or when the member stops. From then on, no further partition begins. */
  isOver: () => boolean
  onTrouble: (error: unknown) => void
}

export type Ready = { partition: Partition; stored: StoredCommit }

const lookEveryMs = 100
/**
 * The factor by which the pause between two looks grows while nothing changes. It limits the load, because
 * all members that wait ask the same coordinator.
 */
const lookLessOften = 1.5
const longestPauseMs = 1_000

/**
 * Begins each partition once its previous owner has finished with it. The previous owner counts as finished
 * in each of these cases:
 *
 * - The last commit has the final mark.
 * - There is no commit.
 * - No living member has requests in flight for the partition.
 * - `handoverMs` has passed.
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
      // A member commits before it begins a partition. So if the partition has no commit, nobody has requests
      // in flight for it.
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
