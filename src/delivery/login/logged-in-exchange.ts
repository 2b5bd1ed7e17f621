import type { Outcome } from '../outcomes/outcome.ts'
import type { Exchange } from '../send/sender.ts'
import type { TokenLogin } from './token-login.ts'

/** Makes a request with further headers: name, value. */
type Post = (ownHeaders: readonly string[], exchange: Exchange) => void

/** The receiver of the result of a request with a token. */
export type LoggedInListener = Exchange & {
  /**
   * Returns what an outcome says about the request as a whole. Without this method, its status says it. An
   * answer to a batch may have a status for each message instead.
   */
  wholeOf?(outcome: Outcome): Outcome
}

const unauthorized = 401

/**
 * Makes a request with the token of a login. If its server refuses the token, the request is made once more,
 * with another token: it may have ended on its way, or have been revoked. Without a token, nothing is sent.
 */
export function postLoggedIn(login: TokenLogin, post: Post, exchange: LoggedInListener): void {
  new LoggedInExchange(login, post, exchange).start()
}

class LoggedInExchange implements Exchange {
  readonly #login: TokenLogin
  readonly #post: Post
  readonly #exchange: LoggedInListener
  #token = ''
  #isSecond = false
  /** The number of requests whose place isn't free yet. */
  #open = 0
  #isAnswered = false

  constructor(login: TokenLogin, post: Post, exchange: LoggedInListener) {
    this.#login = login
    this.#post = post
    this.#exchange = exchange
  }

  get userId(): Buffer | null {
    return this.#exchange.userId ?? null
  }

  get userIds(): Exchange['userIds'] {
    return this.#exchange.userIds
  }

  get own(): Exchange['own'] {
    return this.#exchange.own
  }

  get reads(): Exchange['reads'] {
    return this.#exchange.reads
  }

  start(): void {
    this.#sendWith(this.#login.token())
  }

  answered(outcome: Outcome, mayHaveArrived: boolean): void {
    const whole = this.#exchange.wholeOf?.(outcome) ?? outcome
    if (whole.kind === 'answer') {
      if (whole.status < 400) this.#login.accepted(this.#token)
      else if (whole.status === unauthorized && !this.#isSecond && this.#login.mayReplace(this.#token)) {
        this.#isSecond = true
        void this.#login.replacement(this.#token).then((token) => this.#sendWith(token))
        return
      }
    }
    this.#end(outcome, mayHaveArrived)
  }

  released(): void {
    this.#open--
    this.#releaseIfOver()
  }

  #sendWith(token: string | undefined): void {
    if (token === undefined) {
      this.#end({ kind: 'login', detail: this.#login.problem ?? 'there is no token yet' }, false)
      this.#releaseIfOver()
      return
    }
    this.#token = token
    this.#open++
    this.#post(['Authorization', `Bearer ${token}`], this)
  }

  #end(outcome: Outcome, mayHaveArrived: boolean): void {
    this.#isAnswered = true
    this.#exchange.answered(outcome, mayHaveArrived)
  }

  #releaseIfOver(): void {
    if (this.#isAnswered && this.#open === 0) this.#exchange.released()
  }
}
