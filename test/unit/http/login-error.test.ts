import { expect, onTestFinished, test, vi } from 'vitest'
import { ReportedTroubles } from '../../../src/http/login-error.ts'

function reported() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const logged: string[] = []
  return { logged, troubles: new ReportedTroubles((message) => logged.push(message)) }
}

test('troubles with several brokers are each logged at most once a minute', () => {
  const { logged, troubles } = reported()
  for (let second = 0; second < 60; second++) {
    for (const broker of ['a:9092', 'b:9092', 'c:9092']) troubles.take(`${broker}: the login failed`)
    vi.advanceTimersByTime(1_000)
  }
  expect(logged).toHaveLength(3)
  troubles.take('b:9092: the login failed')
  expect(logged).toHaveLength(4)
})

test('the last trouble is known even if it is not logged again', () => {
  const { troubles } = reported()
  for (const message of ['one', 'other', 'one']) troubles.take(message)
  expect(troubles.last).toBe('one')
})
