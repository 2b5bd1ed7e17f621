import type { Partition } from './partition.ts'
import type { StoredCommit } from './stored-commit.ts'

export type PredecessorOptions = {
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
export class Predecessor {
  readonly #options: PredecessorOptions
  readonly #waiting = new Set<Partition>()

  constructor(options: PredecessorOptions) {
    this.#options = options
  }

  /** True while some partitions wait for the predecessor's requests. */
  get isAwaited(): boolean {
    return [...this.#waiting].some(({ isWaiting, isLost }) => isWaiting && !isLost)
  }

  /**
   * Returns true if the predecessor, or an earlier owner, may have requests in flight for the partition. If
   * so, the partition counts as waiting for them. `stored`: a commit without the final mark.
   */
  mayHaveInFlight(partition: Partition, { offset }: StoredCommit): boolean {
    const { instanceId, settleMs, log } = this.#options
    if (instanceId === undefined || offset < 0 || process.uptime() * 1000 >= settleMs) return false
    if (this.#waiting.size === 0) log.info({ instanceId }, waiting)
    this.#waiting.add(partition)
    return true
  }
}

const waiting =
  'requests of the killed process that this one replaces may still be in flight: partitions wait until they are over'
