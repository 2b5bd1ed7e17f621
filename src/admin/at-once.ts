import { type AdminAnswer, problem } from './problem.ts'

export type AtOnceOptions = {
  /** The limit on calls that run at the same time. */
  readonly most: number
  /**
   * The limit on those of one share, which are one token or several of one customer. It is lower than `most`,
   * so that one share can't keep out all others.
   */
  readonly mostOfToken: number
  /** What the calls do, such as `tests`, for the answer of a refused call. */
  readonly what: string
  /** How long a call waits for its turn at most, in milliseconds. */
  readonly waitMs?: number
}

type Waiting = { readonly share: string; readonly begin: () => void }

const defaultWaitMs = 5_000
/** The most calls that wait. */
const mostWaiting = 64

/**
 * Limits how many expensive calls run at the same time. A call whose share runs few waits for a moment if
 * others have taken all places: the next place is given to whoever waits and runs the fewest. Further calls
 * are refused with the problem `busy`.
 */
export class AtOnce {
  readonly #options: AtOnceOptions
  /** How many calls of each share run. */
  readonly #running = new Map<string, number>()
  /** Calls wait only while `most` calls run. */
  #waiting: Waiting[] = []
  #underWay = 0

  constructor(options: AtOnceOptions) {
    this.#options = options
  }

  /** Runs a call. `share`: names those that share a limit. */
  async run(share: string, call: () => Promise<AdminAnswer>): Promise<AdminAnswer> {
    const { most, mostOfToken, what } = this.#options
    const own = this.#of(share)
    const isOwn = own + this.#waiting.filter((one) => one.share === share).length >= mostOfToken
    if (isOwn || !(await this.#enter(share))) {
      const why = isOwn ? `${own} ${what} of this token` : `${most} ${what}`
      return problem('busy', `${why} are under way: try again when one of them is done.`)
    }
    try {
      return await call()
    } finally {
      this.#leave(share)
    }
  }

  /** Takes a place. Returns false if there is none in time. */
  #enter(share: string): boolean | Promise<boolean> {
    const { most, waitMs = defaultWaitMs } = this.#options
    if (this.#underWay < most) {
      this.#count(share, 1)
      return true
    }
    if (this.#waiting.length >= mostWaiting) return false
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiting: Waiting = {
      share,
      begin: () => {
        clearTimeout(timer)
        this.#count(share, 1)
        resolve(true)
      },
    }
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((one) => one !== waiting)
      resolve(false)
    }, waitMs)
    this.#waiting.push(waiting)
    return promise
  }

  #leave(share: string): void {
    this.#count(share, -1)
    const fewest = Math.min(...this.#waiting.map((one) => this.#of(one.share)))
    const next = this.#waiting.find((one) => this.#of(one.share) === fewest)
    if (next === undefined) return
    this.#waiting = this.#waiting.filter((one) => one !== next)
    next.begin()
  }

  #of(share: string): number {
    return this.#running.get(share) ?? 0
  }

  #count(share: string, change: number): void {
    const own = this.#of(share) + change
    this.#underWay += change
    if (own === 0) this.#running.delete(share)
    else this.#running.set(share, own)
  }
}
