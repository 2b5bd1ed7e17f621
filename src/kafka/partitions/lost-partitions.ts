import type { Partition } from './partition.ts'
import type { StoredCommit } from '../wire/stored-commit.ts'

/** Commits of a lost partition end this long before the handover time is over, in milliseconds. */
const marginMs = 500

/**
 * The lost partitions that this member hasn't finished: their deliveries are in flight, or their final commit
 * isn't made yet.
 */
export class LostPartitions {
  readonly #partitions = new Set<Partition>()
  readonly #handoverMs: number

  constructor(handoverMs: number) {
    this.#handoverMs = handoverMs
  }

  get size(): number {
    return this.#partitions.size
  }

  get all(): readonly Partition[] {
    return [...this.#partitions]
  }

  has(topic: string, id: number): boolean {
    return this.all.some((partition) => partition.topic === topic && partition.id === id)
  }

  /**
   * Adds a lost partition. The partition is dropped once no request of this member is in flight for it, and
   * nothing of it remains to be committed.
   */
  add(partition: Partition): void {
    this.#partitions.add(partition)
  }

  forget(partition: Partition): void {
    this.#partitions.delete(partition)
  }

  /**
   * Returns the lost partitions that this member may still commit, because their next owners haven't started
   * them. Drops all other lost partitions.
   */
  async stillCommittable(
    readStored: (partitions: readonly Partition[]) => Promise<StoredCommit[]>,
  ): Promise<readonly Partition[]> {
    const lost = this.all
    if (lost.length === 0) return lost
    const stored = await readStored(lost)
    return lost.filter((partition, index) => {
      const isTooLate = performance.now() - partition.lostAtMs > this.#handoverMs - marginMs
      const isOver = isTooLate || partition.isOvertaken(stored[index])
      if (isOver) this.#partitions.delete(partition)
      return !isOver
    })
  }

  /** Drops the partitions that have nothing in flight, and need no further commit. Called after a commit. */
  dropFinished(): void {
    for (const partition of this.#partitions) {
      if (!partition.isNews(partition.standing(false)) && partition.isIdle) this.#partitions.delete(partition)
    }
  }
}
