import { type Rate, TokenBucket } from '../../async/token-bucket.ts'
import type { Token } from '../../http/client-credentials.ts'
import type { TokenResult } from './token-request.ts'
import type { TokenUrgency } from './token-turns.ts'
import { within } from '../../async/within.ts'

/**
 * What a login can do for a request now. `ready`: it has a token. `asking`: its first token is under way.
 * `failing`: it has none, and its last request for one has failed.
 */
export type LoginState = 'ready' | 'asking' | 'failing'

/**
 * What came of a request for a token. `problem`: why it brought none. `isKept`: the former token stays in
 * use.
 */
export type AskedToken = { readonly problem: string | undefined; readonly isKept: boolean }

export type TokenLoginOptions = {
  /** Requests a token when it is this login's turn. Never rejects. */
  readonly ask: (urgency: TokenUrgency) => Promise<TokenResult>
  /** Called with the result of each request for a token. */
  readonly onAsked: (asked: AskedToken) => void
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

/**
 * The longest time that deliveries wait in memory for a token, in milliseconds: a little more than a request
 * takes. A login that has to wait longer for its turn counts as one that fails.
 */
const mostAskingMs = 6_000
/** A new token is asked for when this part of the lifetime is left, but at most this many milliseconds. */
const renewedShare = 0.2
const mostRenewedMs = 5 * 60_000
/**
 * A token isn't used in the last part of its lifetime, so that it doesn't end on its way: this part of it,
 * but at most this many milliseconds.
 */
const sparedShare = 0.1
const mostSparedMs = 5_000
/**
 * The pause after the first failure, in milliseconds. It doubles with each further one, up to the longest.
 */
const firstPauseMs = 1_000
const longestPauseMs = 60_000
/** The longest pause that a token endpoint can ask for, in milliseconds. */
const longestAskedMs = 5 * 60_000
/**
 * A token that has never been accepted is replaced only if the one before it is at least this old, in
 * milliseconds. Otherwise each message to an endpoint that refuses every token would cost a token.
 */
const leastReplacedMs = 10_000
/**
 * If an endpoint has accepted a token before, so many further ones are replaced sooner: they may have ended
 * before a request with them arrived.
 */
const mostUnproven = 2
/**
 * How often tokens are replaced that were accepted before. An endpoint may refuse some requests whatever
 * their token, and accept others.
 */
const replacedRate: Rate = { perSecond: 1, burst: 10 }
/**
 * The shortest lifetime of a token that is used, in milliseconds. With shorter ones, tokens would be asked
 * for without a pause.
 */
const leastLifeMs = 1_000

const endedEarly =
  'the tokens have ended when they arrive: let the token endpoint answer sooner, or give a longer expires_in'
const endsTooSoon = 'the tokens end within a second: let the token endpoint give a longer expires_in'

type Failure = { readonly problem: string; readonly sinceMs: number; readonly tries: number; nextMs: number }

/**
 * The token of one hook, shared by all its requests. It is renewed before it ends, by one request at a time.
 * While no token can be had, its deliveries wait. Nothing runs while nobody asks for the token.
 */
export class TokenLogin {
  readonly #options: TokenLoginOptions
  #token: Token | undefined
  #gotMs = 0
  /** True once a request with the present token was accepted. */
  #isProven = false
  #replacedMs = -Infinity
  readonly #replacements: TokenBucket
  /** How many tokens that were never accepted may still be replaced without a wait. */
  #unprovenLeft = 0
  #failure: Failure | undefined
  #asking: Promise<void> | undefined
  #askingSinceMs = 0
  #hasHadToken = false

  constructor(options: TokenLoginOptions) {
    this.#options = options
    this.#replacements = new TokenBucket(replacedRate, options.now())
  }

  /** Returns the token for a request that is made now. `undefined`: there is none. */
  token(): string | undefined {
    const nowMs = this.#options.now()
    const token = this.#token
    if (token === undefined || !this.#isUsable(nowMs)) {
      this.#askIfDue(nowMs)
      return undefined
    }
    if (nowMs >= token.endsMs - partOf(token, this.#gotMs, renewedShare, mostRenewedMs)) this.#askIfDue(nowMs)
    return token.value
  }

  /** Asks for a token if there is none, and it is time to. */
  state(): LoginState {
    if (this.token() !== undefined) return 'ready'
    if (this.#failure !== undefined) return 'failing'
    return this.#options.now() - this.#askingSinceMs < mostAskingMs ? 'asking' : 'failing'
  }

  /** Why there is no token. `undefined`: there is one, or the first one is under way. */
  get problem(): string | undefined {
    return this.#failure?.problem
  }

  /** For how long there has been no token, in milliseconds, because requests for one fail. */
  get failingForMs(): number {
    return this.#failure === undefined ? 0 : Math.max(0, this.#options.now() - this.#failure.sinceMs)
  }

  /** Waits for a token for some seconds, if one is asked for. Returns `undefined` if there is none. */
  async wait(): Promise<string | undefined> {
    const token = this.token()
    if (token !== undefined) return token
    if (this.#asking !== undefined) await within(mostAskingMs, this.#asking)
    return this.token()
  }

  /** Notes that a server has accepted a token. */
  accepted(value: string): void {
    if (value !== this.#token?.value) return
    this.#isProven = true
    this.#unprovenLeft = mostUnproven
  }

  /**
   * Returns true if a request whose token was refused should be made again: there is another token by now, or
   * one may be asked for.
   */
  mayReplace(refused: string): boolean {
    if (this.#token?.value !== refused) return true
    const nowMs = this.#options.now()
    if (this.#isReplacedTooSoon(nowMs) && this.#unprovenLeft === 0) return false
    return this.#replacements.take(nowMs, 0) === 0
  }

  /** Returns a token in place of one that a server has refused. `undefined`: there is none. */
  async replacement(refused: string): Promise<string | undefined> {
    if (this.#token?.value === refused) {
      const nowMs = this.#options.now()
      if (this.#isReplacedTooSoon(nowMs)) this.#unprovenLeft = Math.max(0, this.#unprovenLeft - 1)
      this.#token = undefined
      this.#replacedMs = nowMs
      this.#replacements.take(nowMs)
    }
    const token = await this.wait()
    return token === refused ? undefined : token
  }

  #isReplacedTooSoon(nowMs: number): boolean {
    return !this.#isProven && nowMs - this.#replacedMs < leastReplacedMs
  }

  #isUsable(nowMs: number): boolean {
    const token = this.#token
    return token !== undefined && nowMs < usedUntilMs(token, this.#gotMs)
  }

  #askIfDue(nowMs: number): void {
    if (this.#asking !== undefined || nowMs < (this.#failure?.nextMs ?? 0)) return
    this.#askingSinceMs = nowMs
    this.#asking = this.#ask().finally(() => {
      this.#asking = undefined
    })
  }

  async #ask(): Promise<void> {
    const result = await this.#options.ask(this.#urgency)
    if (!result.ok) {
      this.#failed(result.problem, result.afterMs)
      return
    }
    const { askedMs } = result
    const fault = this.#faultOf(result.token, askedMs)
    if (fault === undefined) this.#take(result.token, askedMs)
    else this.#failed(fault, 0)
  }

  get #urgency(): TokenUrgency {
    if (this.#failure !== undefined) return 'again'
    return this.#hasHadToken ? 'renewal' : 'first'
  }

  /** Returns why a new token can't be used. Without a pause, such tokens would be asked for endlessly. */
  #faultOf(token: Token, askedMs: number): string | undefined {
    if (token.endsMs - askedMs < leastLifeMs) return endsTooSoon
    return this.#options.now() >= usedUntilMs(token, askedMs) ? endedEarly : undefined
  }

  #take(token: Token, askedMs: number): void {
    this.#token = token
    this.#gotMs = askedMs
    this.#isProven = false
    this.#hasHadToken = true
    this.#failure = undefined
    this.#options.onAsked({ problem: undefined, isKept: false })
  }

  #failed(problem: string, afterMs: number): void {
    const nowMs = this.#options.now()
    const { tries, sinceMs } = this.#failure ?? { tries: 0, sinceMs: this.#token?.endsMs ?? nowMs }
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** tries) * (0.8 + 0.4 * Math.random())
    const nextMs = nowMs + Math.max(pauseMs, Math.min(afterMs, longestAskedMs))
    this.#failure = { problem, sinceMs, tries: tries + 1, nextMs }
    this.#options.onAsked({ problem, isKept: this.#isUsable(nowMs) })
  }
}

/** Returns a part of the lifetime of a token, in milliseconds, but at most `mostMs`. */
function partOf({ endsMs }: Token, gotMs: number, share: number, mostMs: number): number {
  return Math.min(mostMs, (endsMs - gotMs) * share)
}

/** Returns the time until which a token is used, in epoch milliseconds. */
function usedUntilMs(token: Token, gotMs: number): number {
  return token.endsMs - partOf(token, gotMs, sparedShare, mostSparedMs)
}
