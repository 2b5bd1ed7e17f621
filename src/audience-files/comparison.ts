import { losesMost } from '../audience/lost-members.ts'
import { type Oddity, oddityOf } from './odd-ids.ts'

/**
 * The users of a sync, compared with the known members of its audience. `staying` are the known members whom
 * the sync names.
 */
export type Compared = { readonly known: number; readonly entering: number; readonly staying: number }

/**
 * Adds up the comparisons of partitions. If some partitions weren't compared, the numbers are estimates.
 * These are good, because a hash of the user's id chooses the partition.
 */
export class Comparison {
  readonly #partitions: number
  readonly #odd = new Map<Oddity, number>()
  #compared = 0
  #known = 0
  #entering = 0
  #staying = 0

  constructor(partitions: number) {
    this.#partitions = partitions
  }

  /** The number of partitions that were compared. */
  get compared(): number {
    return this.#compared
  }

  get isEstimate(): boolean {
    return this.#compared < this.#partitions
  }

  get known(): number {
    return this.#ofAll(this.#known)
  }

  get entering(): number {
    return this.#ofAll(this.#entering)
  }

  get staying(): number {
    return this.#ofAll(this.#staying)
  }

  get leaving(): number {
    return this.#ofAll(this.#known - this.#staying)
  }

  get isImplausible(): boolean {
    return losesMost(this)
  }

  add({ known, entering, staying }: Compared): void {
    this.#compared++
    this.#known += known
    this.#entering += entering
    this.#staying += staying
  }

  /** Notes the id of a known member. */
  note(userId: string): void {
    const oddity = oddityOf(userId)
    if (oddity !== undefined) this.#odd.set(oddity, (this.#odd.get(oddity) ?? 0) + 1)
  }

  /** Returns true if at least half of the known members have ids of this kind. Then it isn't odd. */
  isUsual(oddity: Oddity): boolean {
    const count = this.#odd.get(oddity) ?? 0
    return count > 0 && count >= this.#known / 2
  }

  #ofAll(count: number): number {
    return Math.round((count * this.#partitions) / Math.max(1, this.#compared))
  }
}
