import { afterEach, expect, test, vi } from 'vitest'
import { isStillMember } from '../../../src/roles/still-member.ts'

const sessionTimeoutMs = 30_000

afterEach(() => void vi.useRealTimers())

test('a member has its units for a session after its last commit', () => {
  vi.useFakeTimers()
  expect(isStillMember(undefined, sessionTimeoutMs)).toBe(false)
  const consumer = { lastCommitMs: Date.now() }
  expect(isStillMember(consumer, sessionTimeoutMs)).toBe(true)
  vi.setSystemTime(consumer.lastCommitMs + sessionTimeoutMs)
  expect(isStillMember(consumer, sessionTimeoutMs)).toBe(false)
})

test('a member that commits no more does not keep its units because its clock was set back', () => {
  vi.useFakeTimers()
  const consumer = { lastCommitMs: Date.now() }
  vi.setSystemTime(consumer.lastCommitMs - 3_600_000)
  expect(isStillMember(consumer, sessionTimeoutMs)).toBe(false)
})
