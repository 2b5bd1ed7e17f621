import { type AdminAnswer, problem } from './problem.ts'

export type AtOnceOptions = {
  /** The limit on calls that run at the same time. */
  readonly most: number
  /**
   * The limit on those of one token. It is lower than `most`, so that one token can't keep out all others.
   */
  readonly mostOfToken: number
  /** What the calls do, such as `tests`, for the answer of a refused call. */
  readonly what: string
}

/**
 * Limits how many expensive calls run at the same time. Further calls are refused with the problem `busy`.
 */
export class AtOnce {
  readonly #options: AtOnceOptions
  readonly #byToken = new Map<string, number>()
  #underWay = 0

  constructor(options: AtOnceOptions) {
    this.#options = options
  }

  /** Runs a call. `token`: the name of its token. */
  async run(token: string, call: () => Promise<AdminAnswer>): Promise<AdminAnswer> {
    const { most, mostOfToken, what } = this.#options
    const own = this.#byToken.get(token) ?? 0
    if (own >= mostOfToken || this.#underWay >= most) {
      const why = own >= mostOfToken ? `${own} ${what} of this token` : `${most} ${what}`
      return problem('busy', `${why} are under way: try again when one of them is done.`)
    }
    this.#count(token, 1)
    try {
      return await call()
    } finally {
      this.#count(token, -1)
    }
  }

  #count(token: string, change: number): void {
    const own = (this.#byToken.get(token) ?? 0) + change
    this.#underWay += change
    if (own === 0) this.#byToken.delete(token)
    else this.#byToken.set(token, own)
  }
}
