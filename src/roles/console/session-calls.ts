import { type AdminAnswer, done, noToken, problem } from '../../admin/problem.ts'
import { scopeData } from '../../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../../admin/server.ts'
import {
  codeLastsMs,
  newSession,
  type Holder,
  type SessionBook,
  type SessionLimits,
  storedSession,
} from '../../admin/sessions.ts'
import type { TokenBook } from '../../admin/token-book.ts'
import { mayDo, rights, type Token } from '../../admin/tokens.ts'
import type { WrongSecrets } from '../../admin/console/wrong-secrets.ts'
import { type SessionStore, sweptBy } from './session-store.ts'

export type SessionCallsOptions = {
  readonly tokens: Pick<TokenBook, 'find' | 'withHash'>
  readonly sessions: SessionBook
  readonly store: SessionStore
  readonly limits: SessionLimits
  readonly wrong: WrongSecrets
  /** Where the console is for browsers: a URL, or a path without the host. */
  readonly home: string
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

type Calls = Pick<AdminCalls, 'sign_in' | 'show_session' | 'sign_out' | 'create_code'>

/** Creates the handlers of the calls by which a browser signs in and out. */
export function sessionCalls(options: SessionCallsOptions): Calls {
  const calls = new SessionCalls(options)
  return {
    sign_in: (request) => calls.signIn(request),
    show_session: async ({ token, caller }) =>
      done(sessionData(token, calls.sessionOf(caller) !== undefined)),
    sign_out: (request) => calls.signOut(request),
    create_code: (request) => calls.createCode(request),
  }
}

class SessionCalls {
  readonly #options: SessionCallsOptions

  constructor(options: SessionCallsOptions) {
    this.#options = options
  }

  /** The session that a browser has now. */
  sessionOf({ secret }: AdminRequest['caller']): Holder | undefined {
    return secret === undefined ? undefined : this.#options.sessions.find('session', secret)
  }

  async signIn({ body, caller }: AdminRequest): Promise<AdminAnswer> {
    const { wrong } = this.#options
    const waitMs = wrong.waitMs(caller.address)
    if (waitMs > 0) return tooManyWrong(waitMs)
    const given: { token?: unknown; code?: unknown } = Object(body)
    const found =
      typeof given.code === 'string' ? this.#ofCode(given.code) : this.#ofToken(String(given.token))
    if (found === undefined) {
      wrong.note(caller.address)
      return given.code === undefined ? noToken : codeIsOver
    }
    return this.#stored(async () => {
      // The secret is always a new one, so nobody can choose the session of somebody else. A session that the
      // browser had ends.
      const former = this.sessionOf(caller)?.session.id
      const { secret, session } = newSession('session', found.token, this.#options.limits)
      const isMade = await this.#options.store.change({
        put: storedSession(session),
        use: found.codes,
        sweep: [...sweptBy(this.#options.sessions, session.of), ...(former === undefined ? [] : [former])],
        by: found.token.name,
        note: `signed in: ${found.token.name}`,
      })
      return isMade ? { ...nothing, headers: caller.keep(secret) } : codeIsOver
    })
  }

  signOut({ caller }: AdminRequest): Promise<AdminAnswer> {
    const held = this.sessionOf(caller)
    if (held === undefined) return Promise.resolve(problem('conflict', noSession))
    const { session, token } = held
    return this.#stored(async () => {
      await this.#options.store.change({
        sweep: [session.id],
        by: token.name,
        note: `signed out: ${token.name}`,
      })
      return { ...nothing, headers: caller.keep(undefined) }
    })
  }

  createCode({ token, caller }: AdminRequest): Promise<AdminAnswer> {
    if (this.sessionOf(caller) !== undefined) return Promise.resolve(problem('conflict', onlyTokens))
    return this.#stored(async () => {
      const { home } = this.#options
      const { code, endsAtMs } = await makeCode(this.#options, token)
      return done({ code, expiresAt: new Date(endsAtMs).toISOString(), path: `${home}#code=${code}` }, 201)
    })
  }

  #ofToken(given: string): { token: Token; codes: readonly string[] } | undefined {
    const token = this.#options.tokens.find(given)
    return token && { token, codes: [] }
  }

  #ofCode(given: string): { token: Token; codes: readonly string[] } | undefined {
    const held = this.#options.sessions.find('code', given)
    // The session is one of the token that has made the code, and not one of the code.
    const token = held && this.#options.tokens.withHash(held.session.of)
    return held && token && { token, codes: [held.session.id] }
  }

  async #stored(work: () => Promise<AdminAnswer>): Promise<AdminAnswer> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
        throw error
      this.#options.log.warn(
        { err: error },
        'a session could not be stored or ended, since Kafka does not answer',
      )
      return problem('unavailable', unanswered)
    }
  }
}

/** Makes a code that signs in once, as the holder of a token. */
export async function makeCode(
  { store, sessions }: Pick<SessionCallsOptions, 'store' | 'sessions'>,
  token: Pick<Token, 'digest' | 'name'>,
): Promise<{ readonly code: string; readonly endsAtMs: number }> {
  const { secret, session } = newSession('code', token, { lastsMs: codeLastsMs, idleMs: codeLastsMs })
  const sweep = sweptBy(sessions, session.of)
  await store.change({ put: storedSession(session), sweep, by: token.name, note: '' })
  return { code: secret, endsAtMs: session.endsAtMs }
}

/** A session that is used ends later. At most one write is under way for each session. */
export class Renewals {
  readonly #options: Pick<SessionCallsOptions, 'store' | 'sessions' | 'log'>
  readonly #underWay = new Set<string>()

  constructor(options: Pick<SessionCallsOptions, 'store' | 'sessions' | 'log'>) {
    this.#options = options
  }

  /** Finds what a session may do now, and notes that it was used. */
  find(secret: string): Token | undefined {
    const { sessions, store, log } = this.#options
    const held = sessions.find('session', secret)
    if (held === undefined) return undefined
    const renewed = sessions.renewed(held.session)
    const { id } = held.session
    if (renewed !== undefined && !this.#underWay.has(id)) {
      this.#underWay.add(id)
      store
        .renew(storedSession(renewed))
        .catch((error: unknown) => log.warn({ err: error }, 'a session could not be prolonged'))
        // After a failure, the next use tries again, but not at once.
        .finally(() => setTimeout(() => this.#underWay.delete(id), pauseMs).unref())
    }
    return held.token
  }
}

const pauseMs = 5_000
const nothing = { status: 204, body: {}, isProblem: false } as const

function sessionData(token: Token, isSession: boolean): object {
  return {
    name: token.name,
    rights: rights.filter((right) => mayDo(token, right)),
    scope: scopeData(token.scope),
    ends: token.endsAtMs === undefined ? null : new Date(token.endsAtMs).toISOString(),
    isSession,
  }
}

function tooManyWrong(waitMs: number): AdminAnswer {
  const seconds = Math.ceil(waitMs / 1_000)
  const answer = problem('busy', `Too many wrong tokens came from your address: try again in ${seconds} s.`)
  return { ...answer, headers: { ...answer.headers, 'retry-after': String(seconds) } }
}

const codeIsOver = problem(
  'no_token',
  'The link has been used, or is older than a minute: `sluice console` makes a new one. You can also sign in with a token.',
)
const noSession = 'There is no session to end: a token is revoked by DELETE /v1/tokens/{token}.'
const onlyTokens = 'A session can make no codes: ask with a token.'
const unanswered =
  'Kafka does not answer, or not in time, so you may not be signed in, or not be signed out: try again.'
