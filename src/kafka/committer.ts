import type { Commits, News } from './commits.ts'
import type { Leaving } from './leaving.ts'
import type { Membership } from './membership.ts'
import { OneAtATime } from './one-at-a-time.ts'
import type { OwnedPartitions } from './owned-partitions.ts'
import type { Partition } from './partition.ts'

export type CommitterOptions = {
  readonly commits: Commits
  readonly membership: Pick<Membership, 'identity' | 'heard' | 'heardAtMs' | 'refused'>
  readonly owned: OwnedPartitions
  readonly leaving: Leaving
  readonly everyMs: number
  /** Nothing more is begun. */
  readonly isQuiet: () => boolean
  /** All news are committed; what was lost and has nothing more to say has left. */
  readonly onCommitted: () => void
  /** A commit was refused, or never came. */
  readonly onFailed: () => void
  /** Why a commit failed that nobody waits for. It is tried again. */
  readonly onTrouble: (error: unknown) => void
}

/**
 * A commit that was given up may still be under way to a broker that hangs, and come after a newer one: so
 * long afterwards all is said again.
 */
const commitAgainMs = 15_000

/** Tells the group where a member's partitions stand. Offsets are committed here alone. */
export class Committer {
  readonly #options: CommitterOptions
  readonly #committing = new OneAtATime(() => this.#commitNews())
  #timer: NodeJS.Timeout | undefined
  #lastCommitMs = 0
  /** When all is committed once more, in epoch milliseconds; 0 where nobody doubts what the group has. */
  #commitAgainAtMs = 0

  constructor(options: CommitterOptions) {
    this.#options = options
  }

  /** Commits from time to time. */
  start(): void {
    this.#timer = setInterval(() => this.soon(), this.#options.everyMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Epoch milliseconds of when all news were last known to be committed; 0 before the first time. */
  get lastCommitMs(): number {
    return this.#lastCommitMs
  }

  /** Commits what the group doesn't know. Throws when the broker refuses or can't be reached. */
  commit(): Promise<void> {
    return this.#committing.run()
  }

  /** Does the same for who doesn't wait for it. */
  soon(): void {
    this.commit().catch((error: unknown) => this.#options.onTrouble(error))
  }

  /** Commits just these. Gives those whose commits were refused. */
  async send(news: readonly News[]): Promise<ReadonlySet<Partition>> {
    const { commits, membership, onFailed } = this.#options
    const { identity } = membership
    if (identity === undefined)
      throw new Error('the commit failed: the group does not know this member (any more)')
    try {
      const refused = await commits.write(news, identity)
      membership.heard(identity)
      return refused
    } catch (error) {
      onFailed()
      this.#commitAgainAtMs = Date.now() + commitAgainMs
      membership.refused(error, identity)
      throw error
    }
  }

  async #commitNews(): Promise<void> {
    const { commits, membership, owned, leaving, isQuiet, onCommitted } = this.#options
    const left = await leaving.stillOurs((partitions) => commits.read(partitions))
    const isAgain = this.#commitAgainAtMs > 0 && Date.now() >= this.#commitAgainAtMs
    if (isAgain) this.#commitAgainAtMs = 0
    // From here to the sending nothing may wait: what is sent is what is.
    const news = [...owned.begun, ...left]
      .map((partition) => ({ partition, standing: partition.standing(isQuiet()) }))
      .filter(({ partition, standing }) => isAgain || partition.isNews(standing))
    if (news.length > 0) await this.send(news)
    // With nothing to commit all is committed, as long as this member is known to the group.
    this.#lastCommitMs = Math.max(this.#lastCommitMs, membership.heardAtMs)
    leaving.letGo()
    onCommitted()
  }
}
