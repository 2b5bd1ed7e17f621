import { type AdminAnswer, done, noToken, problem } from '../../admin/problem.ts'
import { scopeData } from '../../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../../admin/server.ts'
import {
  codeLastsMs,
  endOfSession,
  newSession,
  type Holder,
  type SessionBook,
  type SessionLimits,
  storedSession,
} from '../../admin/sessions.ts'
import { type LinkBook, linkPrefix } from '../../admin/links.ts'
import type { TokenBook } from '../../admin/token-book.ts'
import { mayDo, rights, type Token } from '../../admin/tokens.ts'
import type { WrongSecrets } from '../../admin/console/wrong-secrets.ts'
import { atStore, type SessionStore, sweptBy } from './session-store.ts'

export type SessionCallsOptions = {
  readonly tokens: Pick<TokenBook, 'find' | 'withHash' | 'hasEnded'>
  readonly links: LinkBook
  readonly theme: Theme | null
  readonly catalog: 'file' | 'topic'
  readonly sessions: SessionBook
  readonly store: SessionStore
  readonly limits: SessionLimits
  readonly wrong: WrongSecrets
  /** Where the console is for browsers: a URL, or a path without the host. */
  readonly home: string
  /** Called with what somebody has given to sign in, and what came of it. */
  readonly onSignIn: (by: SignInBy, result: 'accepted' | 'refused' | 'limited') => void
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

/** What somebody signs in with: one of these. */
type SignInBy = 'token' | 'code' | 'link'
type SignIn = { readonly [by in SignInBy]?: string }

/** How the console looks. `logo`: its path below the console. */
export type Theme = {
  readonly name: string | null
  readonly accent: string | null
  readonly scheme: 'system' | 'light' | 'dark'
  readonly logo: string | null
}

type Calls = Pick<AdminCalls, 'sign_in' | 'show_session' | 'sign_out' | 'create_code'>

/** Creates the handlers of the calls by which a browser signs in and out. */
export function sessionCalls(options: SessionCallsOptions): Calls {
  const calls = new SessionCalls(options)
  return {
    sign_in: (request) => calls.signIn(request),
    show_session: async ({ token, caller }) => {
      const { theme, catalog } = options
      return done({ ...sessionData(token, calls.sessionOf(caller)), theme, catalog })
    },
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
    const { wrong, onSignIn } = this.#options
    const given: SignIn = Object(body)
    const by = given.code === undefined ? (given.link === undefined ? 'token' : 'link') : 'code'
    const waitMs = wrong.waitMs(caller.address)
    if (waitMs > 0) {
      onSignIn(by, 'limited')
      return tooManyWrong(waitMs)
    }
    const found = this.#foundBy(given)
    if ('status' in found) {
      wrong.note(caller.address)
      onSignIn(by, 'refused')
      return found
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
        deed: 'signed_in',
        note: `signed in: ${found.token.name}`,
      })
      onSignIn(by, isMade ? 'accepted' : 'refused')
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
        deed: 'signed_out',
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

  /** Returns who signs in, with the codes that this uses up, or why nobody does. */
  #foundBy({ token, code, link }: SignIn): { token: Token; codes: readonly string[] } | AdminAnswer {
    const { tokens, links, sessions } = this.#options
    if (code !== undefined) {
      const held = sessions.find('code', code)
      // The session is one of the token that has made the code, and not one of the code.
      const of = held && tokens.withHash(held.session.of)
      return held && of ? { token: of, codes: [held.session.id] } : codeIsOver
    }
    if (link !== undefined) {
      const of = links.find(link)
      return of === undefined || tokens.hasEnded(of) ? linkIsOver : { token: of, codes: [] }
    }
    const of = token === undefined ? undefined : tokens.find(token)
    return of === undefined ? noToken : { token: of, codes: [] }
  }

  #stored(work: () => Promise<AdminAnswer>): Promise<AdminAnswer> {
    return atStore(this.#options.log, work, unanswered)
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

function sessionData(token: Token, held: Holder | undefined): object {
  const { name, scope, grants, seesContent } = token
  const endsAtMs = held === undefined ? token.endsAtMs : endOfSession(held)
  return {
    name: grants === undefined ? name : name.slice(linkPrefix.length),
    rights: grants === undefined ? rights.filter((right) => mayDo(token, right)) : [...grants],
    content: seesContent,
    scope: scopeData(scope),
    label: scope.label === undefined ? null : `${scope.label.key}=${scope.label.value}`,
    ends: endsAtMs === undefined ? null : new Date(endsAtMs).toISOString(),
    isLink: grants !== undefined,
    isSession: held !== undefined,
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
const linkIsOver = problem(
  'no_token',
  'The link has ended or was revoked: ask whoever gave it to you for another one.',
)
const noSession = 'There is no session to end: a token is revoked by DELETE /v1/tokens/{token}.'
const onlyTokens = 'A session can make no codes: ask with a token.'
const unanswered =
  'Kafka does not answer, or not in time, so you may not be signed in, or not be signed out: try again.'
