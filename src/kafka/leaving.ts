import type { Partition } from './partition.ts'
import type { StoredCommit } from './stored-commit.ts'

/** So long before the next owner waits no more for it, a lost partition is committed for the last time. */
const marginMs = 500

/** Lost partitions, until what they had in flight is done with and the final commit is made. */
export class Leaving {
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

  /** Nothing of it may be out any more that was begun here. */
  add(partition: Partition): void {
    this.#partitions.add(partition)
  }

  forget(partition: Partition): void {
    this.#partitions.delete(partition)
  }

  /** Those that are still ours to commit: their next owner has not begun. The others are let go. */
  async stillOurs(
    readStored: (partitions: readonly Partition[]) => Promise<StoredCommit[]>,
  ): Promise<readonly Partition[]> {
    const leaving = this.all
    if (leaving.length === 0) return leaving
    const stored = await readStored(leaving)
    return leaving.filter((partition, index) => {
      const isTooLate = Date.now() - partition.lostAtMs > this.#handoverMs - marginMs
      const isOver = isTooLate || partition.isOvertaken(stored[index])
      if (isOver) this.#partitions.delete(partition)
      return !isOver
    })
  }

  /** After a commit: those with nothing out, and nothing that the group doesn't know, have left. */
  letGo(): void {
    for (const partition of this.#partitions) {
      if (!partition.isNews(partition.standing(false)) && partition.isIdle) this.#partitions.delete(partition)
    }
  }
}
