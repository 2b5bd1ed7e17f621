import type { Partition } from './partition.ts'
import type { StoredCommit } from './stored-commit.ts'

export type FormerSelfOptions = {
  /** Absent where the member isn't static: its partitions are given away when its session is over. */
  readonly instanceId: string | undefined
  /** So long after a process has died nothing is under way any more of what it had begun. */
  readonly settleMs: number
  readonly log: { info(fields: object, message: string): void }
}

/**
 * What this member was before its process was killed. A static member that comes back is given its partitions
 * at once, when requests of before may still be at an endpoint: a newer value that is sent meanwhile could be
 * overtaken by an older one. Counted from the start of this process, which is after the death of the other.
 */
export class FormerSelf {
  readonly #options: FormerSelfOptions
  readonly #resting = new Set<Partition>()

  constructor(options: FormerSelfOptions) {
    this.#options = options
  }

  /** Some partitions wait for it. */
  get isResting(): boolean {
    return [...this.#resting].some(({ isWaiting, isLost }) => isWaiting && !isLost)
  }

  /**
   * It, or somebody before it, may have something in flight. `stored`: without the mark that its owner had
   * finished.
   */
  mayHaveOut(partition: Partition, { offset }: StoredCommit): boolean {
    const { instanceId, settleMs, log } = this.#options
    if (instanceId === undefined || offset < 0 || process.uptime() * 1000 >= settleMs) return false
    if (this.#resting.size === 0) log.info({ instanceId }, resting)
    this.#resting.add(partition)
    return true
  }
}

const resting =
  'requests of this worker from before it was killed may still be in flight: its partitions wait until they are over'
