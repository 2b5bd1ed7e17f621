import type { OAuthLogin } from '../../catalog/features/hook-login.ts'
import type { HookTls } from '../../catalog/features/hook-tls.ts'
import type { HookOwner } from '../send/hook-pool.ts'
import type { Sender } from '../send/sender.ts'
import { type AskedToken, TokenLogin } from './token-login.ts'
import { TokenRequests } from './token-request.ts'
import { TokenTurns } from './token-turns.ts'

/** A hook whose requests need a token. */
export type LoggedInHook = {
  readonly id: string
  readonly origin: string
  readonly tls?: HookTls | undefined
}

export type LoginsOptions = {
  readonly sender: Pick<Sender, 'post'>
  /** Called with the result of each request for a token. */
  readonly onAsked?: (destinationId: string, hookId: string, asked: AskedToken) => void
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

/**
 * The logins of a process. A hook keeps its token when the catalog changes something else of its destination.
 */
export class Logins {
  readonly #options: LoginsOptions
  readonly #known = new Map<string, WeakRef<TokenLogin>>()
  readonly #turns = new TokenTurns()
  #sweepAt = leastSwept

  constructor(options: LoginsOptions) {
    this.#options = options
  }

  of(login: OAuthLogin, hook: LoggedInHook, owner: HookOwner): TokenLogin {
    const tls = login.tokenOrigin === hook.origin ? hook.tls : undefined
    const key = JSON.stringify([owner.destinationId, hook.id, hook.origin, login, tls])
    const known = this.#known.get(key)?.deref()
    if (known !== undefined) return known
    const { sender, now, onAsked } = this.#options
    const requests = new TokenRequests(login, { sender, owner, tls })
    const asker = { tokenOrigin: login.tokenOrigin, sourceId: owner.sourceId }
    const made = new TokenLogin({
      ask: (urgency) => this.#turns.run({ ...asker, urgency }, () => requests.make(now())),
      onAsked: (asked) => onAsked?.(owner.destinationId, hook.id, asked),
      now,
    })
    this.#known.set(key, new WeakRef(made))
    if (this.#known.size >= this.#sweepAt) this.#sweep()
    return made
  }

  /** Requests no more tokens. */
  close(): void {
    this.#turns.close()
  }

  /** Forgets the logins that no destination has any more. */
  #sweep(): void {
    for (const [key, login] of this.#known) if (login.deref() === undefined) this.#known.delete(key)
    this.#sweepAt = Math.max(leastSwept, 2 * this.#known.size)
  }
}

const leastSwept = 100
