import type { Commits, News } from '../partitions/commits.ts'
import type { LostPartitions } from '../partitions/lost-partitions.ts'
import { now } from './last-heard.ts'
import type { Membership } from './membership.ts'
import { OneAtATime } from '../../async/one-at-a-time.ts'
import type { OwnedPartitions } from '../partitions/owned-partitions.ts'
import type { Partition } from '../partitions/partition.ts'

export type CommitterOptions = {
  readonly commits: Commits
  readonly membership: Pick<Membership, 'identity' | 'heard' | 'heardAgoMs' | 'refused'>
  readonly owned: OwnedPartitions
  readonly lostPartitions: LostPartitions
  readonly everyMs: number
  /** Returns true once the member starts no further record. */
  readonly isStopping: () => boolean
  /**
   * Called when everything that has settled is committed. Lost partitions that need no further commit are
   * dropped before this call.
   */
  readonly onCommitted: () => void
  /** Called when a commit was refused, even if for only some partitions, or got no answer. */
  readonly onFailed: () => void
  /** Called with the error of a commit that nobody waits for. The commit is tried again. */
  readonly onTrouble: (error: unknown) => void
}

/**
 * If a commit has failed, all partitions are committed once more after this time, in milliseconds. The reason
 * is that the failed commit may still be under way to a broker that hangs. If it arrives after a newer
 * commit, it undoes the newer commit.
 */
const commitAgainMs = 15_000

/** Commits what has settled in the partitions of a member. No other code commits offsets. */
export class Committer {
  readonly #options: CommitterOptions
  readonly #committing = new OneAtATime(() => this.#commitNews())
  #timer: NodeJS.Timeout | undefined
  #lastCommitMs = 0
  /** The time at which all partitions are committed once more, by `performance.now`. 0 if this isn't due. */
  #commitAgainAtMs = 0

  constructor(options: CommitterOptions) {
    this.#options = options
  }

  /** Commits every `everyMs` from now on. */
  start(): void {
    this.#timer = setInterval(() => this.soon(), this.#options.everyMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /**
   * The latest time, in epoch milliseconds, for which this is known: all records that had settled at the time
   * have been committed. 0 while no such time is known.
   */
  get lastCommitMs(): number {
    return this.#lastCommitMs
  }

  /**
   * Commits everything that has settled since the last commit. Throws if the coordinator refuses the commit
   * or can't be reached.
   */
  commit(): Promise<void> {
    return this.#committing.run()
  }

  /** Starts a commit and doesn't wait for its end. Reports an error to `onTrouble`. */
  soon(): void {
    this.commit().catch((error: unknown) => this.#options.onTrouble(error))
  }

  /** Commits only `news`. Returns the partitions whose commits were refused. */
  async send(news: readonly News[]): Promise<ReadonlySet<Partition>> {
    const { commits, membership, onFailed } = this.#options
    const { identity } = membership
    if (identity === undefined)
      throw new Error('the commit failed: the group does not know this member (any more)')
    const asked = now()
    try {
      const refused = await commits.write(news, identity)
      membership.heard(identity, asked)
      if (refused.size > 0) onFailed()
      return refused
    } catch (error) {
      onFailed()
      this.#commitAgainAtMs = performance.now() + commitAgainMs
      membership.refused(error, identity, asked)
      throw error
    }
  }

  async #commitNews(): Promise<void> {
    const { commits, membership, owned, lostPartitions, isStopping, onCommitted } = this.#options
    const lost = await lostPartitions.stillCommittable((partitions) => commits.read(partitions))
    const isAgain = this.#commitAgainAtMs > 0 && performance.now() >= this.#commitAgainAtMs
    if (isAgain) this.#commitAgainAtMs = 0
    // From here until the commit is sent there must be no `await`, because the commit has to show the
    // partitions as they are when it is sent.
    const news = [...owned.begun, ...lost]
      .map((partition) => ({ partition, standing: partition.standing(isStopping()) }))
      .filter(({ partition, standing }) => isAgain || partition.isNews(standing))
    const shownAtMs = Date.now()
    const refused = news.length > 0 ? (await this.send(news)).size : 0
    // If there was nothing new to commit, all records are committed that had settled when the group last
    // answered this member.
    const committedAtMs = news.length > 0 ? shownAtMs : Date.now() - membership.heardAgoMs
    // If a partition's commit was refused, some settled records aren't committed.
    if (refused === 0) this.#lastCommitMs = Math.max(this.#lastCommitMs, committedAtMs)
    // If the clock was set back, the time of an earlier commit lies in the future.
    this.#lastCommitMs = Math.min(Date.now(), this.#lastCommitMs)
    lostPartitions.dropFinished()
    onCommitted()
  }
}
