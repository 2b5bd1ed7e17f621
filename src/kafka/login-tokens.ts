/** A bearer token, and its end in epoch milliseconds. */
export type Token = { readonly value: string; readonly endsMs: number }

export type TokensOptions = {
  /** Requests a new token. Rejects if it can't get one. */
  readonly ask: () => Promise<Token>
  /** Called when no new token could be obtained, so that the old token stays in use. */
  readonly onKept: (reason: string) => void
  readonly now: () => number
}

/**
 * The remaining share of a token's lifetime at which a new token is requested. See also `renewedBeforeMs`.
 */
const renewedBeforeShare = 0.2
/**
 * The time before a token's end at which a new one is requested at the latest, in milliseconds. A connection
 * logs in again 10 s before its token ends, and a broker refuses a connection that does so twice within a
 * second. With less time than this, each request would log in again.
 */
const renewedBeforeMs = 15_000
/**
 * The remaining time below which a token isn't used any more, because it may have ended when it reaches the
 * broker.
 */
const sparedMs = 2_000

/**
 * The token that all connections of a process share. The token is renewed when a connection asks for it and
 * its end is near. If a new token can't be obtained, the old token stays in use until its end. Connections
 * log in again by themselves before their broker ends them, so no timer is needed.
 */
export class Tokens {
  readonly #options: TokensOptions
  #token: Token | undefined
  #renewMs = 0
  #asking: Promise<Token> | undefined

  constructor(options: TokensOptions) {
    this.#options = options
  }

  /** Returns a token. Rejects if there is none. */
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
