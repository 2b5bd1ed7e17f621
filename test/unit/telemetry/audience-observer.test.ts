import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createAudienceObserver } from '../../../src/telemetry/audience-observer.ts'
import { createWorkerMetrics } from '../../../src/telemetry/worker-metrics.ts'

/** Returns the line that is logged for a sync of a unit with these numbers of users. */
function lineOf(counts: { joined: number; left: number; unchanged: number }): Record<string, unknown> {
  const lines: string[] = []
  const log = pino(
    { formatters: { level: (level) => ({ level }) } },
    { write: (line) => void lines.push(line) },
  )
  const observer = createAudienceObserver({ metrics: createWorkerMetrics({ perDestination: true }), log })
  observer.synced({ unit: 1, spaceId: 'personas', audienceId: 'aud_1', syncId: 's', ...counts, tookMs: 1 })
  expect(lines).toHaveLength(1)
  return JSON.parse(lines[0] ?? '')
}

test('a sync with which most members leave is warned of, with the numbers and what to do', () => {
  expect(lineOf({ joined: 100, left: 100, unchanged: 0 })).toMatchObject({
    level: 'warn',
    audienceId: 'aud_1',
    left: 100,
    unchanged: 0,
    msg: expect.stringContaining('sync the right users'),
  })
})

test.each([
  ['some leave', { joined: 5, left: 50, unchanged: 50 }],
  ['a few of few leave', { joined: 0, left: 19, unchanged: 0 }],
  ['all are new', { joined: 100, left: 0, unchanged: 0 }],
])('a sync with which %s is a line like any other', (_what, counts) => {
  expect(lineOf(counts)).toMatchObject({ level: 'info', msg: 'a sync was applied' })
})
