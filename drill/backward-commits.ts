/**
 * A partition whose committed offset has gone back. `seenMs` is the last time when the group still had
 * `from`. `lostMs` is the time when the lower offset was seen. Both are in epoch milliseconds.
 */
export type BackwardCommit = {
  /** `topic/partition` */
  partition: string
  from: number
  /** The lower offset, or -1 if the group no longer has a committed offset. */
  to: number
  seenMs: number
  lostMs: number
}

/**
 * Records each committed offset of a group that goes back. The committed offset of a partition must only
 * grow.
 */
export class CommitWatch {
  readonly backward: BackwardCommit[] = []
  readonly #last = new Map<string, { offset: number; atMs: number }>()

  /**
   * Compares the committed offsets with those of the last call. The keys of `committed` are
   * `topic/partition`. An offset of -1 means that the group has committed nothing for the partition.
   */
  note(atMs: number, committed: ReadonlyMap<string, number>): void {
    for (const [partition, to] of committed) {
      const { offset: from = -1, atMs: seenMs = 0 } = this.#last.get(partition) ?? {}
      if (to < from) this.backward.push({ partition, from, to, seenMs, lostMs: atMs })
      this.#last.set(partition, { offset: to, atMs })
    }
  }
}
