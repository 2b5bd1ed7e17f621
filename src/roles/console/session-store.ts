import { type AdminAnswer, problem } from '../../admin/problem.ts'
import type { SessionBook, StoredSession } from '../../admin/sessions.ts'
import type { Deed } from '../../catalog-log/desk.ts'
import { type Edit } from '../../catalog-log/judge.ts'
import { keyOf, type ObjectName } from '../../catalog-log/names.ts'
import { type OpenedDesk, refusalText } from '../operations/catalog-desk.ts'
import { untilRead } from '../operations/token-desk.ts'
import type { CatalogTopic } from '../catalog/followed-topic.ts'

/** A change of what is kept. All of it is made, or nothing. */
export type SessionChange = {
  readonly put?: StoredSession
  /** Somebody who signs in. What is kept of the person is replaced. */
  readonly person?: StoredSession | undefined
  /** Ids of what must be there, and is removed. A code is used by removing it, so it works once. */
  readonly use?: readonly string[]
  /** Ids of what is removed if it is there. */
  readonly sweep?: readonly string[]
  readonly by: string
  /** For the audit trail: what it calls the change, and the words about it. Empty: it doesn't have it. */
  readonly deed?: Deed
  readonly note: string
}

/** Where sessions are kept. The methods reject if Kafka doesn't answer. */
export type SessionStore = {
  readonly kept: () => ReadonlyMap<string, StoredSession>
  /** Returns false if something that is to be used isn't there any more. */
  readonly change: (change: SessionChange) => Promise<boolean>
  /** Changes a session if it is still there. */
  readonly renew: (session: StoredSession) => Promise<void>
}

/** Keeps sessions in this process. They end with it, and other processes don't know them. */
export function sessionsInMemory(): SessionStore {
  let kept: ReadonlyMap<string, StoredSession> = new Map()
  return {
    kept: () => kept,
    change({ put, person, use = [], sweep = [] }) {
      if (!use.every((id) => kept.has(id))) return Promise.resolve(false)
      const next = new Map(kept)
      for (const id of [...use, ...sweep]) next.delete(id)
      for (const one of [put, person]) if (one !== undefined) next.set(String(one['id']), one)
      kept = next
      return Promise.resolve(true)
    },
    renew(session) {
      const id = String(session['id'])
      if (kept.has(id)) kept = new Map(kept).set(id, session)
      return Promise.resolve()
    },
  }
}

/**
 * Keeps sessions in the topic of the catalog, beside the tokens, so that all processes of the admin API know
 * them. Earlier versions ignore them there.
 */
export function sessionsInTopic(
  desk: Pick<OpenedDesk, 'change' | 'look'>,
  topic: Pick<CatalogTopic, 'revision' | 'tokens'>,
): SessionStore {
  async function made(edits: readonly Edit[], about: Pick<SessionChange, 'by' | 'deed' | 'note'>) {
    const answer = await desk.change({ edits, ...about })
    if (answer.ok) await untilRead(topic, answer.revision)
    return answer
  }
  return {
    kept: () => topic.tokens(),
    async change({ put, person, use = [], sweep = [], ...about }) {
      const edits = [
        ...use.map(removed),
        ...(put === undefined ? [] : [putEdit(put, 'none')]),
        ...(person === undefined ? [] : [putEdit(person, undefined)]),
      ]
      const swept = [...new Set(sweep)].filter((id) => !use.includes(id)).map(removed)
      const answer = await made([...edits, ...swept], about)
      if (answer.ok) return true
      if (answer.kind !== 'missing') throw new Error(refusalText(answer))
      if (use.includes(answer.name.id)) return false
      // Another process has removed what has ended meanwhile.
      const second = edits.length === 0 ? { ok: true as const } : await made(edits, about)
      if (second.ok) return true
      if (second.kind !== 'missing') throw new Error(refusalText(second))
      return false
    },
    async renew(session) {
      const { all } = await desk.look()
      const present = all.get(keyOf(nameOf(String(session['id']))))
      if (present === undefined) return
      const answer = await made([putEdit(session, present.version)], { by: 'sluice', note: '' })
      // Somebody else has renewed it, or it was ended.
      if (!answer.ok && answer.kind !== 'outdated') throw new Error(refusalText(answer))
    },
  }
}

/** Answers with a problem if what is kept can't be changed, because Kafka doesn't answer. */
export async function atStore(
  log: { readonly warn: (fields: object, message: string) => void },
  work: () => Promise<AdminAnswer>,
  unanswered: string,
): Promise<AdminAnswer> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
      throw error
    log.warn({ err: error }, 'a session or a link could not be kept or ended, since Kafka does not answer')
    return problem('unavailable', unanswered)
  }
}

const removed = (id: string): Edit => ({ name: nameOf(id), op: 'remove' })

/** `base`: as in `Edit`. `undefined`: whatever is there. */
function putEdit(given: StoredSession, base: number | 'none' | undefined): Edit {
  return { name: nameOf(String(given['id'])), op: 'put', given, ...(base !== undefined && { base }) }
}

function nameOf(id: string): ObjectName {
  return { kind: 'token', id }
}

/** The most sessions and codes of one token, and of all. */
const most = { ofToken: 100, ofAll: 10_000 } as const
const mostSwept = 100

/** Returns what a new session of a token removes: what has ended, and the oldest if there are too many. */
export function sweptBy(book: Pick<SessionBook, 'all' | 'hasEnded'>, of: string): readonly string[] {
  const ended = book.all.filter((one) => book.hasEnded(one))
  const present = book.all
    .filter((one) => !book.hasEnded(one))
    .toSorted((one, other) => one.madeAtMs - other.madeAtMs)
  const own = present.filter((one) => one.of === of)
  const tooMany = [
    ...own.slice(0, Math.max(0, own.length + 1 - most.ofToken)),
    ...present.slice(0, Math.max(0, present.length + 1 - most.ofAll)),
  ]
  return [...new Set([...tooMany, ...ended].map(({ id }) => id))].slice(0, mostSwept)
}
