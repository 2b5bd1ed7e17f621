import type { Token } from '../../http/client-credentials.ts'
import { TokenRefusedError } from './token-endpoint.ts'

export type TokensOptions = {
  /** Requests a new token. Rejects if there is no new token. */
  readonly ask: () => Promise<Token>
  /** Called when no new token could be obtained. The old token then stays in use. */
  readonly onKept: (reason: string) => void
  readonly now: () => number
}

/**
 * A new token is requested when only this share of the old token's lifetime remains. It may be requested
 * earlier, because of `renewedBeforeMs`.
 */
const renewedBeforeShare = 0.2
/**
 * A new token is requested at least this time before the old token ends, in milliseconds. A connection logs
 * in again 10 s before its token ends. If a token ended within these 10 s, each request would log in again. A
 * broker refuses a connection that logs in twice within a second.
 */
const renewedBeforeMs = 15_000
/**
 * A token is used only if it stays valid for at least this time, in milliseconds. Otherwise the token could
 * end before it reaches the broker.
 */
const sparedMs = 2_000
/** The longest wait that a token endpoint can ask for, in milliseconds. */
const longestAskedMs = 5 * 60_000

/**
 * The token that all connections of a process share. The token is renewed when a connection asks for it and
 * the end of the token is near. If a new token can't be obtained, the old token stays in use until its end.
 * No timer is needed, because each connection logs in again before the broker would close the connection.
 */
export class Tokens {
  readonly #options: TokensOptions
  #token: Token | undefined
  #renewMs = 0
  #asking: Promise<Token> | undefined
  /** The last refusal with which the endpoint has asked for a wait. */
  #refused: { readonly error: TokenRefusedError; readonly untilMs: number } | undefined

  constructor(options: TokensOptions) {
    this.#options = options
  }

  /** Returns a token that is still valid. Rejects if there is no such token. */
  async current(): Promise<string> {
    const nowMs = this.#options.now()
    const token = this.#token
    if (token !== undefined && nowMs < this.#renewMs) return token.value
    try {
      if (this.#refused !== undefined && nowMs < this.#refused.untilMs) throw this.#refused.error
      return (await (this.#asking ??= this.#renew())).value
    } catch (error) {
      if (token === undefined || token.endsMs - sparedMs <= nowMs) throw error
      this.#options.onKept(error instanceof Error ? error.message : String(error))
      return token.value
    }
  }

  async #renew(): Promise<Token> {
    const askedMs = this.#options.now()
    try {
      const token = await this.#options.ask()
      this.#token = token
      const spare = Math.max(renewedBeforeMs, (token.endsMs - askedMs) * renewedBeforeShare)
      this.#renewMs = token.endsMs - spare
      return token
    } catch (error) {
      if (error instanceof TokenRefusedError)
        this.#refused = { error, untilMs: askedMs + Math.min(error.afterMs, longestAskedMs) }
      throw error
    } finally {
      this.#asking = undefined
    }
  }
}
