import { expect, test } from 'vitest'
import { type LiveAttempt, RecentAttempts } from '../../../../src/commands/listen/feed.ts'

const startMs = Date.parse('2026-07-29T09:00:00.000Z')

function attemptAt(seconds: number, more: Partial<LiveAttempt> = {}): LiveAttempt {
  return {
    at: new Date(startMs + seconds * 1_000).toISOString(),
    destination: 'crm',
    hook: 'main',
    source: 'shop',
    messageId: 'm',
    messageType: 'track',
    origin: { topic: 'events', partition: 0, offset: 1 },
    attempt: 1,
    verdict: 'delivered',
    outcome: 'answer',
    status: 200,
    durationMs: 1,
    error: null,
    replay: null,
    answer: null,
    ...more,
  }
}

test('each attempt is told once, however often the log has it in its answers', () => {
  const recent = new RecentAttempts(startMs)
  const [first, second] = [attemptAt(1), attemptAt(2, { attempt: 2 })]
  expect(recent.take([second, first])).toEqual([first, second])
  expect(recent.take([first, second])).toEqual([])
})

test('an attempt that comes late into the index is told all the same', () => {
  const recent = new RecentAttempts(startMs)
  recent.take([attemptAt(100)])
  const late = attemptAt(90, { messageId: 'late' })
  expect(Date.parse(late.at)).toBeGreaterThanOrEqual(recent.fromMs)
  expect(recent.take([late])).toEqual([late])
})

test('nothing from before the beginning is asked for, and nothing older than what may be late', () => {
  const recent = new RecentAttempts(startMs)
  expect(recent.fromMs).toBe(startMs)
  recent.take([attemptAt(5)])
  expect(recent.fromMs).toBe(startMs)
  recent.take([attemptAt(3_600)])
  expect(recent.fromMs).toBe(startMs + 3_585_000)
})

test('the tries of one message by several URLs, destinations and replays are different attempts', () => {
  const recent = new RecentAttempts(startMs)
  const all = [{}, { hook: 'second' }, { destination: 'erp' }, { replay: 'r1' }].map((more) =>
    attemptAt(1, more),
  )
  expect(recent.take(all)).toHaveLength(4)
})
