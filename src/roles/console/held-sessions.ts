import { setTimeout as delay } from 'node:timers/promises'
import { limitOf } from '../../admin/limited.ts'
import { type AdminAnswer, done, missing, problem } from '../../admin/problem.ts'
import { personId, personPrefix } from '../../admin/provider/people.ts'
import { covers, scopeData } from '../../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../../admin/server.ts'
import { endOfSession, type Holder, type SessionBook } from '../../admin/sessions.ts'
import { mayDo, rights } from '../../admin/tokens.ts'
import { atStore, type SessionStore } from './session-store.ts'

export type HeldSessionsOptions = {
  readonly sessions: Pick<SessionBook, 'all' | 'held' | 'find' | 'hasEnded' | 'lastUsedMs'>
  readonly store: Pick<SessionStore, 'change'>
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

type Calls = Pick<AdminCalls, 'list_sessions' | 'remove_session' | 'remove_sessions'>

/**
 * How often the end of all sessions is tried, if others of them end meanwhile, and the pause in between, in
 * milliseconds, in which this process reads which.
 */
const tries = { most: 10, pauseMs: 200 } as const

/** Creates the handlers of the calls by which somebody sees and ends the sessions of others. */
export function heldSessionCalls(options: HeldSessionsOptions): Calls {
  const calls = new HeldSessions(options)
  return {
    list_sessions: (request) => Promise.resolve(calls.list(request)),
    remove_session: (request) => calls.end(request),
    remove_sessions: (request) => calls.endAllOf(request),
  }
}

class HeldSessions {
  readonly #options: HeldSessionsOptions

  constructor(options: HeldSessionsOptions) {
    this.#options = options
  }

  list(request: AdminRequest): AdminAnswer {
    const { query, caller } = request
    const after = query['cursor'] === undefined ? undefined : placeIn(query['cursor'])
    if (query['cursor'] !== undefined && after === undefined)
      return problem('bad_request', 'cursor: pass one from an answer, or none.')
    const { sessions } = this.#options
    const all = this.#seenBy(request)
      .map((holder) => ({ holder, place: placeOf(holder) }))
      .toSorted((one, other) => compare(one.place, other.place))
    const rest = after === undefined ? all : all.filter(({ place }) => compare(place, after) > 0)
    const page = rest.slice(0, limitOf(query))
    const last = page.length < rest.length ? page.at(-1) : undefined
    const own = caller.secret === undefined ? undefined : sessions.find('session', caller.secret)?.session.id
    return done({
      sessions: page.map(({ holder }) => ({
        ...heldData(holder),
        lastUsedAt: timeOf(sessions.lastUsedMs(holder.session)),
        isOwn: holder.session.id === own,
      })),
      total: all.length,
      cursor: last === undefined ? null : Buffer.from(JSON.stringify(last.place)).toString('base64url'),
    })
  }

  end(request: AdminRequest): Promise<AdminAnswer> {
    const { session: id = '' } = request.params
    return this.#atStore(async () => {
      const found = this.#seenBy(request).find(({ session }) => session.id === id)
      if (found === undefined) return missing('session', id)
      const isEnded = await this.#options.store.change({
        use: [id],
        by: request.token.name,
        deed: 'sessions_ended',
        note: `ended a session: ${found.token.name}`,
      })
      return isEnded ? done({ ended: 1 }) : missing('session', id)
    })
  }

  endAllOf(request: AdminRequest): Promise<AdminAnswer> {
    const { holder = '' } = request.params
    const { store, sessions } = this.#options
    return this.#atStore(async () => {
      for (let tried = 0; tried < tries.most; tried++) {
        const found = this.#seenBy(request).filter((one) => holderOf(one).id === holder)
        const [first] = found
        if (first === undefined) return missing('session of', holder)
        // A code of a minute ago would begin another one.
        const begunWith = new Set(found.map(({ session }) => session.of))
        const use = sessions.all.filter((one) => begunWith.has(one.of) && !sessions.hasEnded(one))
        const isEnded = await store.change({
          use: use.map(({ id }) => id),
          by: request.token.name,
          deed: 'sessions_ended',
          note: `ended ${found.length} sessions: ${first.token.name}`,
        })
        if (isEnded) return done({ ended: found.length })
        // One of them has ended by itself.
        await delay(tries.pauseMs)
      }
      return problem('unavailable', 'Sessions of it begin and end too quickly: try again.')
    })
  }

  /** The sessions that see no more than the token of the request. */
  #seenBy({ token }: Pick<AdminRequest, 'token'>): readonly Holder[] {
    return this.#options.sessions.held.filter((one) => covers(token.scope, one.token.scope))
  }

  #atStore(work: () => Promise<AdminAnswer>): Promise<AdminAnswer> {
    return atStore(this.#options.log, work, unanswered)
  }
}

/** Sessions are listed by name, and those of a name by age. The id tells two of the same time apart. */
type Place = readonly [name: string, madeAtMs: number, id: string]

function placeOf({ token, session: { madeAtMs, id } }: Holder): Place {
  return [token.name, madeAtMs, id]
}

function compare([name, madeAtMs, id]: Place, [otherName, otherMs, otherId]: Place): number {
  if (name !== otherName) return name < otherName ? -1 : 1
  if (madeAtMs !== otherMs) return madeAtMs - otherMs
  return id === otherId ? 0 : id < otherId ? -1 : 1
}

function placeIn(cursor: string): Place | undefined {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (!Array.isArray(place)) return undefined
    const [name, madeAtMs, id]: unknown[] = place
    if (typeof name !== 'string' || typeof madeAtMs !== 'number' || typeof id !== 'string') return undefined
    return [name, madeAtMs, id]
  } catch {
    return undefined
  }
}

/** Says who holds a session: the id of a person or of a link, or the name of a token. */
function holderOf({ session, token }: Holder): { readonly kind: string; readonly id: string } {
  if (token.grants !== undefined) return { kind: 'link', id: token.family }
  if (token.name.startsWith(personPrefix)) return { kind: 'person', id: personId(session.of) }
  return { kind: 'token', id: `token.${token.name}` }
}

function heldData(holder: Holder): object {
  const { session, token } = holder
  const { kind, id } = holderOf(holder)
  const { name, grants, seesContent, scope } = token
  return {
    id: session.id,
    kind,
    holder: id,
    name,
    rights: grants === undefined ? rights.filter((right) => mayDo(token, right)) : [...grants],
    content: seesContent,
    scope: scopeData(scope),
    since: timeOf(session.madeAtMs),
    endsAt: timeOf(endOfSession(holder)),
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

const unanswered = 'Kafka does not answer, or not in time, so the sessions may have ended or not: list them.'
