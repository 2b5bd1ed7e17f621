/** A bearer token, and when it ends, epoch milliseconds. */
export type Token = { readonly value: string; readonly endsMs: number }

export type TokensOptions = {
  /** Gets a new one. Rejects where it can't. */
  readonly ask: () => Promise<Token>
  /** Told when a new token could not be had while the old one is good for a while. */
  readonly onKept: (reason: string) => void
  readonly now: () => number
}

/** What is left of a token's life when a new one is asked for: a share, and no less than this. */
const renewedBeforeShare = 0.2
/**
 * A connection logs in again 10 s before its token ends, and a broker refuses one that does so twice within a
 * second: with less left than this, each request would.
 */
const renewedBeforeMs = 15_000
/** A token that ends sooner may be refused when it arrives. */
const sparedMs = 2_000

/**
 * The token of a process, for all of its connections. It is renewed when a connection wants one and its end
 * is near; as long as it has not ended it stays in use where a new one can't be had. Connections log in again
 * by themselves before their broker ends them, so nothing has to run beside.
 */
export class Tokens {
  readonly #options: TokensOptions
  #token: Token | undefined
  #renewMs = 0
  #asking: Promise<Token> | undefined

  constructor(options: TokensOptions) {
    this.#options = options
  }

  /** Rejects where there is none. */
  async current(): Promise<string> {
    const nowMs = this.#options.now()
    const token = this.#token
    if (token !== undefined && nowMs < this.#renewMs) return token.value
    try {
      return (await (this.#asking ??= this.#renew())).value
    } catch (error) {
      if (token === undefined || token.endsMs - sparedMs <= nowMs) throw error
      this.#options.onKept(error instanceof Error ? error.message : String(error))
      return token.value
    }
  }

  async #renew(): Promise<Token> {
    try {
      const askedMs = this.#options.now()
      const token = await this.#options.ask()
      this.#token = token
      const spare = Math.max(renewedBeforeMs, (token.endsMs - askedMs) * renewedBeforeShare)
      this.#renewMs = token.endsMs - spare
      return token
    } finally {
      this.#asking = undefined
    }
  }
}
