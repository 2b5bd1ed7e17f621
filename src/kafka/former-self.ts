import type { Partition } from './partition.ts'
import type { StoredCommit } from './stored-commit.ts'

export type FormerSelfOptions = {
  /**
   * The id of a static member. Absent if the member isn't static: the group gives the partitions of a killed
   * process to others when its session is over.
   */
  readonly instanceId: string | undefined
  /**
   * The time after the death of a process when none of its requests can be in flight any more, in
   * milliseconds.
   */
  readonly settleMs: number
  readonly log: { info(fields: object, message: string): void }
}

/**
 * Decides whether requests of the killed predecessor process may still be in flight. A static member that
 * comes back is given its partitions at once. An endpoint may still have requests of the killed process then.
 * If a newer value were sent meanwhile, an older one could overtake it. The time counts from the start of
 * this process, which is after the death of its predecessor.
 */
export class FormerSelf {
  readonly #options: FormerSelfOptions
  readonly #resting = new Set<Partition>()

  constructor(options: FormerSelfOptions) {
    this.#options = options
  }

  /** True while some partitions wait for the predecessor's requests. */
  get isResting(): boolean {
    return [...this.#resting].some(({ isWaiting, isLost }) => isWaiting && !isLost)
  }

  /**
   * Returns true if the predecessor, or an earlier owner, may have requests in flight for the partition. If
   * so, the partition counts as waiting for them. `stored`: a commit without the final mark.
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
