import { afterEach, expect, test, vi } from 'vitest'
import { LastHeard, now } from '../../../../src/kafka/group/last-heard.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('what was heard an hour ago is an hour old, though the clock was set back meanwhile', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_700_000_000_000 })
  const last = new LastHeard()
  expect(last.agoMs).toBe(Infinity)
  last.heard()
  vi.advanceTimersByTime(3_600_000)
  expect(last.agoMs).toBe(3_600_000)
  vi.setSystemTime(1_700_000_000_000 - 7_200_000)
  expect(last.agoMs).toBe(3_600_000)
})

test('what was heard before a virtual machine was suspended is as old as the wall clock says', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_700_000_000_000 })
  const last = new LastHeard()
  last.heard()
  vi.setSystemTime(1_700_000_000_000 + 60_000)
  expect(last.agoMs).toBe(60_000)
})

test('an answer is as old as its question, because the process may have been suspended meanwhile', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_700_000_000_000 })
  const last = new LastHeard()
  const asked = now()
  vi.advanceTimersByTime(60_000)
  last.heard(asked)
  expect(last.agoMs).toBe(60_000)
  last.heard()
  last.heard(asked)
  expect(last.agoMs).toBe(0)
})
