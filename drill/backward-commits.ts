/** A partition of which the group has committed less than before. Times in epoch milliseconds: it was so between the two. */
export type BackwardCommit = {
  /** `topic/partition` */
  partition: string
  from: number
  /** -1: nothing any more. */
  to: number
  seenMs: number
  lostMs: number
}

/** Watches where a group stands: what it has committed of a partition must only grow. */
export class CommitWatch {
  readonly backward: BackwardCommit[] = []
  readonly #last = new Map<string, { offset: number; atMs: number }>()

  /** `committed`: by `topic/partition`, of those that were asked for; -1 where the group has nothing. */
  note(atMs: number, committed: ReadonlyMap<string, number>): void {
    for (const [partition, to] of committed) {
      const { offset: from = -1, atMs: seenMs = 0 } = this.#last.get(partition) ?? {}
      if (to < from) this.backward.push({ partition, from, to, seenMs, lostMs: atMs })
      this.#last.set(partition, { offset: to, atMs })
    }
  }
}
