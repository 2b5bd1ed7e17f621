import type { Partition } from '../partitions/partition.ts'
import type { StoredCommit } from '../wire/stored-commit.ts'

export type PredecessorOptions = {
  /**
   * The id of a static member. `undefined` if the member isn't static. In that case, the group gives the
   * partitions of a killed process to other members when the session of that process is over.
   */
  readonly instanceId: string | undefined
  /** The time for which requests of a process may still be in flight after its death, in milliseconds. */
  readonly settleMs: number
  readonly log: { info(fields: object, message: string): void }
}

/**
 * Decides whether requests of the killed predecessor process may still be in flight. A static member that
 * comes back is given its partitions at once. At this time, an endpoint may still be working on requests of
 * the killed process. If this member sent a newer value now, the endpoint could process the older value last.
 * `settleMs` counts from the start of this process, which is later than the death of its predecessor.
 */
export class Predecessor {
  readonly #options: PredecessorOptions
  readonly #waiting = new Set<Partition>()

  constructor(options: PredecessorOptions) {
    this.#options = options
  }

  /** True while some partitions wait for the end of the predecessor's requests. */
  get isAwaited(): boolean {
    return [...this.#waiting].some(({ isWaiting, isLost }) => isWaiting && !isLost)
  }

  /**
   * Returns true if the predecessor, or an earlier owner, may have requests in flight for the partition. If
   * so, the partition counts as waiting for these requests. Call this only with a commit that lacks the final
   * mark.
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
