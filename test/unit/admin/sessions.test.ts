import { expect, test } from 'vitest'
import { everything } from '../../../src/admin/scope.ts'
import {
  endOfSession,
  newSession,
  SessionBook,
  type StoredSession,
  storedSession,
} from '../../../src/admin/sessions.ts'
import { TokenBook } from '../../../src/admin/token-book.ts'
import { newSecret, type Token } from '../../../src/admin/tokens.ts'

const limits = { lastsMs: 10_000, idleMs: 4_000 }

/** A book with one token, and what it keeps. The clock begins now. */
function open({ endsAtMs }: { endsAtMs?: number } = {}) {
  let nowMs = Date.now()
  const { digest } = newSecret()
  const token: Token = {
    name: 'ann',
    right: 'operate',
    seesContent: true,
    digest,
    scope: everything,
    endsAtMs,
    family: 'ann',
  }
  let tokens = [token]
  let kept: ReadonlyMap<string, StoredSession> = new Map()
  const now = (): number => nowMs
  const ofTopic = new Map()
  const book = new SessionBook({
    kept: () => kept,
    tokens: new TokenBook({ ofFile: () => tokens, ofTopic: () => ofTopic, now }),
    limits,
    now,
  })
  return {
    book,
    token,
    keep: (session: StoredSession) => (kept = new Map(kept).set(String(session['id']), session)),
    revoke: () => (tokens = []),
    pass: (ms: number) => (nowMs += ms),
  }
}

test('a session is found by its secret until it ends, by its use and in any case', () => {
  const { book, token, keep, pass } = open()
  const { secret, session } = newSession('session', token, limits)
  keep(storedSession(session))
  expect(book.find('session', secret)?.token).toMatchObject({ name: 'ann', right: 'operate' })
  expect(book.find('session', `${secret}x`)).toBeUndefined()
  expect(book.find('code', secret)).toBeUndefined()
  expect(book.renewed(session)).toBeUndefined()
  pass(3_000)
  const renewed = book.renewed(session)
  expect(renewed?.idleEndsAtMs).toBeGreaterThan(session.idleEndsAtMs + 2_000)
  keep(storedSession(renewed ?? session))
  pass(3_000)
  expect(book.find('session', secret)).toBeDefined()
  pass(1_500)
  expect(book.find('session', secret)).toBeUndefined()
  // However much it is used, it has an end.
  keep(storedSession({ ...session, idleEndsAtMs: session.endsAtMs + 5_000 }))
  expect(book.find('session', secret)).toBeDefined()
  pass(3_000)
  expect(book.find('session', secret)).toBeUndefined()
})

test('sessions in force are listed with what they were begun with, and with their last use', () => {
  const { book, token, keep, pass } = open()
  const { session } = newSession('session', token, limits)
  keep(storedSession(session))
  keep(storedSession(newSession('code', token, limits).session))
  expect(book.held.map((one) => [one.session.id, one.token.name])).toEqual([[session.id, 'ann']])
  expect([book.count, book.lastUsedMs(session)]).toEqual([1, session.madeAtMs])
  pass(3_000)
  const renewed = book.renewed(session) ?? session
  keep(storedSession(renewed))
  expect(book.lastUsedMs(renewed)).toBeGreaterThan(session.madeAtMs + 2_000)
  pass(4_500)
  expect([book.held, book.count]).toEqual([[], 0])
  const other = open()
  other.keep(storedSession(newSession('session', other.token, limits).session))
  expect(other.book.held).toHaveLength(1)
  other.revoke()
  expect(other.book.held).toEqual([])
})

test('a session ends with its token', () => {
  const { book, token, keep, revoke } = open({ endsAtMs: Date.now() + 2_000 })
  const { secret, session } = newSession('session', token, limits)
  keep(storedSession(session))
  const held = book.find('session', secret)
  expect(held && endOfSession(held)).toBe(token.endsAtMs)
  revoke()
  expect(book.find('session', secret)).toBeUndefined()
  const other = open({ endsAtMs: Date.now() + 2_000 })
  const second = newSession('session', other.token, limits)
  other.keep(storedSession(second.session))
  other.pass(2_500)
  expect(other.book.find('session', second.secret)).toBeUndefined()
})

test('what a session makes may outlive it, but not what somebody has signed in with', () => {
  const { book, token, keep } = open()
  const { secret, session } = newSession('session', token, limits)
  keep(storedSession(session))
  const held = book.find('session', secret)
  expect(held?.token.endsAtMs).toBeUndefined()
  expect(held && endOfSession(held)).toBe(session.endsAtMs)
})

test('what a later version keeps of a session is not overlooked', () => {
  const { book, token, keep } = open()
  const { secret, session } = newSession('session', token, limits)
  keep({ ...storedSession(session), mayOnly: ['read'] })
  expect(book.find('session', secret)).toBeUndefined()
})
