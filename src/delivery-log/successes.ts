/**
 * The counts of one URL's successes in the present second, and of its successes for which no record stands
 * yet.
 */
export class Successes<D> {
  readonly hook: string
  /** The counts of the next URL of the same destination. */
  next: Successes<D> | undefined
  second = 0
  written = 0
  /** How rare records are now: one of every `every` successes gets a record. */
  every = 1
  /** The number of successes since the last record. None of them has a record of its own. */
  unlogged = 0
  /** The delivery of the last success without a record. The fields below describe its attempt. */
  last: D | undefined
  lastStatus = 0
  lastDurationMs = 0
  lastAtMs = 0

  constructor(hook: string) {
    this.hook = hook
  }
}

/**
 * The factor by which records become rarer each time that `perSecond` records have been written within a
 * second.
 */
const thinning = 10

/**
 * Decides which successes get a record. In each second, each of the first `perSecond` successes of a URL gets
 * a record. Then every tenth success gets a record. After another `perSecond` records, every hundredth
 * success gets a record, and so on. A record also stands for the successes without a record that came before
 * it, so all successes are counted. When a second is over, `leftover` reports its last successes if no record
 * stands for them.
 */
export class SuccessSampler<D extends { readonly destinationId: string }> {
  readonly #perSecond: number
  readonly #byDestination = new Map<string, Successes<D>>()
  /** The URLs with successes for which no record stands yet. */
  #open: Successes<D>[] = []

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /**
   * Returns the number of successes for which the record of this success stands. Returns 0 if this success
   * gets no record.
   */
  weightOf(delivery: D, hook: string, status: number, durationMs: number, atMs: number): number {
    const of = this.#of(delivery.destinationId, hook)
    const second = Math.floor(atMs / 1_000)
    if (of.second !== second) {
      of.second = second
      of.written = 0
      of.every = 1
    }
    if (of.unlogged + 1 < of.every) {
      if (of.unlogged === 0) this.#open.push(of)
      of.unlogged++
      of.last = delivery
      of.lastStatus = status
      of.lastDurationMs = durationMs
      of.lastAtMs = atMs
      return 0
    }
    const weight = of.unlogged + 1
    of.unlogged = 0
    of.last = undefined
    of.written++
    if (of.written % this.#perSecond === 0) of.every *= thinning
    return weight
  }

  /** Reports the successes of past seconds for which no record stands. */
  leftover(atMs: number, tell: (of: Successes<D>, last: D) => void): void {
    if (this.#open.length === 0) return
    const second = Math.floor(atMs / 1_000)
    const still: Successes<D>[] = []
    for (const of of this.#open) {
      if (of.last === undefined) continue
      if (of.second >= second) still.push(of)
      else {
        tell(of, of.last)
        of.unlogged = 0
        of.last = undefined
      }
    }
    this.#open = still
  }

  #of(destination: string, hook: string): Successes<D> {
    const first = this.#byDestination.get(destination)
    for (let one = first; one !== undefined; one = one.next) if (one.hook === hook) return one
    const made = new Successes<D>(hook)
    made.next = first
    this.#byDestination.set(destination, made)
    return made
  }
}
