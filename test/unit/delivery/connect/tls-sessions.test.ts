import { describe, expect, test } from 'vitest'
import { TlsSessions } from '../../../../src/delivery/connect/tls-sessions.ts'

const provenForMs = 600_000
const session = Buffer.from('a session')
const newer = Buffer.from('a newer session')

function at(): { clock: { nowMs: number }; sessions: TlsSessions } {
  const clock = { nowMs: 0 }
  return { clock, sessions: new TlsSessions(() => clock.nowMs) }
}

describe('the session of a server', () => {
  test('is the last one that it gave, and no other server gets it', () => {
    const { sessions } = at()
    sessions.keep('a.example:443', session, false)
    sessions.keep('a.example:443', newer, false)
    expect(sessions.of('a.example:443')).toBe(newer)
    expect(sessions.of('a.example:8443')).toBeUndefined()
  })

  test('is kept for ten thousand servers; then that of the one which gave none for the longest time goes', () => {
    const { sessions } = at()
    for (let server = 0; server < 10_000; server++) sessions.keep(String(server), session, false)
    sessions.keep('0', newer, true)
    sessions.keep('one more', session, false)
    expect(sessions.of('0')).toBe(newer)
    expect(sessions.of('1')).toBeUndefined()
    expect(sessions.of('2')).toBe(session)
    expect(sessions.of('one more')).toBe(session)
  })

  test('is resumed for ten minutes after the certificate was shown, however many were given since', () => {
    const { clock, sessions } = at()
    sessions.keep('a', session, false)
    for (; clock.nowMs < provenForMs; clock.nowMs += provenForMs / 4) {
      expect(sessions.of('a')).toBeDefined()
      sessions.keep('a', newer, true)
    }
    expect(sessions.of('a')).toBeUndefined()
    sessions.keep('a', newer, true)
    expect(sessions.of('a')).toBeUndefined()
    sessions.keep('a', session, false)
    expect(sessions.of('a')).toBe(session)
  })

  test('is not kept when it is longer than 8 KiB', () => {
    const { sessions } = at()
    sessions.keep('a', Buffer.alloc(8 * 1024 + 1), false)
    expect(sessions.of('a')).toBeUndefined()
    sessions.keep('a', Buffer.alloc(8 * 1024), false)
    expect(sessions.of('a')).toHaveLength(8 * 1024)
  })

  test('is forgotten when no connection could be made with it', () => {
    const { sessions } = at()
    sessions.keep('a', session, false)
    sessions.forget('a')
    expect(sessions.of('a')).toBeUndefined()
  })
})
