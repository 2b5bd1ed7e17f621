/**
 * The counts of one URL: how many records it got in the present second, and how many successes came after its
 * last record.
 */
export class Successes<D> {
  readonly hook: string
  /** The counts of the next URL of the same destination. */
  next: Successes<D> | undefined
  second = 0
  written = 0
  /** Says which successes get a record at present. If it is 10, every tenth success gets one. */
  every = 1
  /** The number of successes since the last record. None of them has a record. */
  unlogged = 0
  /** The delivery of the last success without a record. The fields below describe that success. */
  last: D | undefined
  lastStatus = 0
  lastDurationMs = 0
  lastAtMs = 0

  constructor(hook: string) {
    this.hook = hook
  }
}

/**
 * The factor by which `every` grows each time that `perSecond` records have been written within one second.
 */
const thinning = 10
/** The interval in seconds at which `#forget` is called. */
const forgetEverySeconds = 60

/**
 * Decides which successes get a record. In each second, each of the first `perSecond` successes of a URL gets
 * a record. After that, every tenth success gets a record, and after another `perSecond` records, every
 * hundredth success, and so on.
 *
 * The weight of a record counts its own success and the successes without a record before it. When a second
 * is over, `leftover` reports the successes that came after the last record. So every success is counted.
 */
export class SuccessSampler<D extends { readonly destinationId: string }> {
  readonly #perSecond: number
  readonly #byDestination = new Map<string, Successes<D>>()
  /** The URLs with successes since their last record. */
  #open: Successes<D>[] = []
  #forgotAtSecond = 0

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** Counts a success. Returns the weight of its record, or 0 if it gets no record. */
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

  /**
   * For each URL, reports the successes since its last record, unless they are of the present second. If the
   * clock was set back, they may be of a later second.
   */
  leftover(atMs: number, tell: (of: Successes<D>, last: D) => void): void {
    const second = Math.floor(atMs / 1_000)
    if (Math.abs(second - this.#forgotAtSecond) >= forgetEverySeconds) this.#forget(second)
    if (this.#open.length === 0) return
    const still: Successes<D>[] = []
    for (const of of this.#open) {
      if (of.last === undefined) continue
      if (of.second === second) still.push(of)
      else {
        tell(of, of.last)
        of.unlogged = 0
        of.last = undefined
      }
    }
    this.#open = still
  }

  /** The number of URLs with counts. */
  get size(): number {
    let size = 0
    for (const first of this.#byDestination.values()) size += urlsOf(first).length
    return size
  }

  /**
   * Forgets the URLs that have neither a success in the present second nor a success that must still be
   * reported, because the catalog may not have them any more. If such a URL has a success later, it begins
   * with new counts, as each URL does in a new second.
   */
  #forget(second: number): void {
    this.#forgotAtSecond = second
    for (const [destination, first] of this.#byDestination) {
      const kept = urlsOf(first).filter((one) => one.second === second || one.unlogged > 0)
      for (const [index, one] of kept.entries()) one.next = kept[index + 1]
      if (kept[0] === undefined) this.#byDestination.delete(destination)
      else this.#byDestination.set(destination, kept[0])
    }
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

/** Returns the counts of all URLs of a destination, beginning with `first`. */
function urlsOf<D>(first: Successes<D>): Successes<D>[] {
  const urls: Successes<D>[] = []
  for (let one: Successes<D> | undefined = first; one !== undefined; one = one.next) urls.push(one)
  return urls
}
