import { randomBytes } from 'node:crypto'
import type { TokenBook } from './token-book.ts'
import { digestOf, type Token } from './tokens.ts'

/**
 * `session`: somebody has signed in, and a browser has its secret in a cookie. `code`: signs in once, within
 * a minute.
 */
const kinds = ['session', 'code'] as const
type Kind = (typeof kinds)[number]

/** A session, or a code that begins one. Times are epoch milliseconds. */
export type Session = {
  readonly id: string
  readonly kind: Kind
  /** The SHA-256 hash of its secret, in hexadecimal digits. */
  readonly hash: string
  /** The hash of the token that has signed in. Without this token, it ends. */
  readonly of: string
  readonly madeAtMs: number
  readonly endsAtMs: number
  /** When the session ends unless it is used. */
  readonly idleEndsAtMs: number
}

/** How long sessions last, in milliseconds: after the sign-in, and after their last use. */
export type SessionLimits = { readonly lastsMs: number; readonly idleMs: number }

/** What is kept of sessions: see `storedSession`. */
export type StoredSession = Readonly<Record<string, unknown>>

export const codeLastsMs = 60_000
/** A session that is used is kept for longer once this share of its idle time is over. */
const renewedAfter = 0.25

/** Makes a session or a code of a token, and its secret, of which only the hash is kept. */
export function newSession(
  kind: Kind,
  of: Pick<Token, 'digest'>,
  { lastsMs, idleMs }: SessionLimits,
): { readonly secret: string; readonly session: Session } {
  const nowMs = Date.now()
  const secret = `sluice_${kind}_${randomBytes(32).toString('base64url')}`
  const session = {
    id: `${kind}.${randomBytes(12).toString('hex')}`,
    kind,
    hash: digestOf(secret).toString('hex'),
    of: of.digest.toString('hex'),
    madeAtMs: nowMs,
    endsAtMs: nowMs + lastsMs,
    idleEndsAtMs: nowMs + Math.min(idleMs, lastsMs),
  }
  return { secret, session }
}

export function storedSession(session: Session): StoredSession {
  const { id, kind, hash, of, madeAtMs, endsAtMs, idleEndsAtMs } = session
  return {
    id,
    kind,
    sha256: hash,
    of,
    madeAt: timeOf(madeAtMs),
    endsAt: timeOf(endsAtMs),
    idleEndsAt: timeOf(idleEndsAtMs),
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

const storedFields = new Set(['id', 'kind', 'sha256', 'of', 'madeAt', 'endsAt', 'idleEndsAt'])

/** Reads what is kept. Returns `undefined` for a token, and for what this version doesn't know all of. */
function readStoredSession(stored: StoredSession): Session | undefined {
  const text = (name: string): string => (typeof stored[name] === 'string' ? stored[name] : '')
  const kind = kinds.find((known) => known === stored['kind'])
  const isKnown = Object.keys(stored).every((name) => storedFields.has(name))
  const [madeAtMs = NaN, endsAtMs = NaN, idleEndsAtMs = NaN] = ['madeAt', 'endsAt', 'idleEndsAt'].map(
    (name) => Date.parse(text(name)),
  )
  if (kind === undefined || !isKnown || Number.isNaN(madeAtMs + endsAtMs + idleEndsAtMs)) return undefined
  return { id: text('id'), kind, hash: text('sha256'), of: text('of'), madeAtMs, endsAtMs, idleEndsAtMs }
}

export type SessionBookOptions = {
  /** What is kept, with the tokens of the topic. Returns another map after each change. */
  readonly kept: () => ReadonlyMap<string, StoredSession>
  readonly tokens: Pick<TokenBook, 'withHash' | 'hasEnded'>
  readonly limits: SessionLimits
  readonly now?: () => number
}

/**
 * A session that is in force, with what its holder may do. The token has the end of the token that has signed
 * in, so what the session makes, such as a link, may outlive it.
 */
export type Holder = { readonly session: Session; readonly token: Token }

/** Returns when a session ends at the latest, in epoch milliseconds. */
export function endOfSession({ session, token }: Holder): number {
  return Math.min(session.endsAtMs, token.endsAtMs ?? Infinity)
}

/** The sessions that are in force. None outlives its token, or may do more. */
export class SessionBook {
  readonly #options: SessionBookOptions
  readonly #now: () => number
  /** What `#byHash` was made from. */
  #stored: ReadonlyMap<string, unknown> | undefined
  #byHash = new Map<string, Session>()

  constructor(options: SessionBookOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** Finds a session or a code that is in force at this moment. */
  find(kind: Kind, secret: string): Holder | undefined {
    // The hash of a guess says nothing about the hash of a secret, so a table may be asked for it.
    const session = this.#sessions.get(digestOf(secret).toString('hex'))
    if (session === undefined || session.kind !== kind) return undefined
    const token = this.#tokenOf(session)
    if (token === undefined) return undefined
    return { session, token: { ...token, digest: Buffer.from(session.hash, 'hex') } }
  }

  /** The token of a session. `undefined`: one of them has ended. */
  #tokenOf(session: Session): Token | undefined {
    if (this.hasEnded(session)) return undefined
    const token = this.#options.tokens.withHash(session.of)
    return token === undefined || this.#options.tokens.hasEnded(token) ? undefined : token
  }

  hasEnded({ endsAtMs, idleEndsAtMs }: Session): boolean {
    return Math.min(endsAtMs, idleEndsAtMs) <= this.#now()
  }

  /** Returns the session with a later end if it is time to keep that. */
  renewed(session: Session): Session | undefined {
    const { idleMs } = this.#options.limits
    const nowMs = this.#now()
    const idleEndsAtMs = Math.min(nowMs + idleMs, session.endsAtMs)
    const isDue = idleEndsAtMs - session.idleEndsAtMs > idleMs * renewedAfter
    return isDue ? { ...session, idleEndsAtMs } : undefined
  }

  /** The number of sessions that are in force. Codes aren't counted. */
  get count(): number {
    return this.held.length
  }

  /** The sessions that are in force, without codes, each with what it was begun with. */
  get held(): readonly Holder[] {
    return this.all.flatMap((session) => {
      const token = session.kind === 'session' ? this.#tokenOf(session) : undefined
      return token === undefined ? [] : [{ session, token }]
    })
  }

  /**
   * Returns when a session was used last, in epoch milliseconds: at this time, or up to a quarter of the idle
   * time later.
   */
  lastUsedMs({ madeAtMs, idleEndsAtMs }: Session): number {
    return Math.max(madeAtMs, idleEndsAtMs - this.#options.limits.idleMs)
  }

  /** All that is kept, also what has ended. */
  get all(): readonly Session[] {
    return [...this.#sessions.values()]
  }

  get #sessions(): ReadonlyMap<string, Session> {
    const stored = this.#options.kept()
    if (stored !== this.#stored) {
      this.#stored = stored
      const sessions = [...stored.values()].flatMap((one) => readStoredSession(one) ?? [])
      this.#byHash = new Map(sessions.map((session) => [session.hash, session]))
    }
    return this.#byHash
  }
}
