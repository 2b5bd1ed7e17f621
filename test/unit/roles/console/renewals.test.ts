import { expect, test } from 'vitest'
import { everything } from '../../../../src/admin/scope.ts'
import { newSession, SessionBook, storedSession } from '../../../../src/admin/sessions.ts'
import { TokenBook } from '../../../../src/admin/token-book.ts'
import { newSecret } from '../../../../src/admin/tokens.ts'
import { Renewals } from '../../../../src/roles/console/session-calls.ts'
import { sessionsInMemory } from '../../../../src/roles/console/session-store.ts'
import { until } from '../../../support/until.ts'

test('a session that can not be prolonged goes on until its end, and that is told once', async () => {
  const limits = { lastsMs: 10_000, idleMs: 4_000 }
  const { digest } = newSecret()
  const ann = {
    name: 'ann',
    right: 'operate',
    seesContent: true,
    digest,
    scope: everything,
    family: 'ann',
  } as const
  const token = { ...ann, endsAtMs: undefined }
  const { secret, session } = newSession('session', token, limits)
  const kept = new Map([[session.id, storedSession(session)]])
  const now = (): number => session.madeAtMs + 3_000
  const ofTopic = new Map()
  const sessions = new SessionBook({
    kept: () => kept,
    tokens: new TokenBook({ ofFile: () => [token], ofTopic: () => ofTopic, now }),
    limits,
    now,
  })
  const told: string[] = []
  const renewals = new Renewals({
    sessions,
    store: { ...sessionsInMemory(), renew: () => Promise.reject(new Error('Kafka does not answer')) },
    log: { warn: (_fields, message) => void told.push(message) },
  })
  expect(renewals.find(secret)?.name).toBe('ann')
  await until('it is told', () => told.length > 0)
  expect(renewals.find(secret)?.name).toBe('ann')
  expect(told).toEqual(['a session could not be prolonged'])
})
