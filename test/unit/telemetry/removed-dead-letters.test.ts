import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RemovedDeadLetters } from '../../../src/telemetry/removed-dead-letters.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})

afterEach(() => {
  vi.useRealTimers()
})

test('the dead letters of each removed destination are told at once, and then once a minute with their number so far', () => {
  const written: object[] = []
  const removed = new RemovedDeadLetters({ warn: (line: object) => void written.push(line) })
  for (let nth = 1; nth <= 40; nth++) removed.add('customer-9')
  removed.add('customer-8')
  expect(written).toEqual([
    { destination: 'customer-9', deadLetters: 1 },
    { destination: 'customer-8', deadLetters: 1 },
  ])
  vi.advanceTimersByTime(60_000)
  expect(written.slice(2)).toEqual([{ destination: 'customer-9', deadLetters: 40 }])
  vi.advanceTimersByTime(600_000)
  removed.add('customer-9')
  expect(written.slice(3)).toEqual([{ destination: 'customer-9', deadLetters: 41 }])
})

test('the ids of records can not fill the memory', () => {
  const removed = new RemovedDeadLetters({ warn: () => undefined })
  for (let nth = 0; nth < 5_000; nth++) removed.add(`forged-${nth}`)
  const written: object[] = []
  const counted = new RemovedDeadLetters({ warn: (line: object) => void written.push(line) })
  for (let nth = 0; nth <= 1_000; nth++) counted.add(`forged-${nth}`)
  counted.add('forged-0')
  counted.flush()
  expect(written.at(-1)).toEqual({ destination: 'forged-0', deadLetters: 1 })
})
