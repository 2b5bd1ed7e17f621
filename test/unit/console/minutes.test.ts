import { expect, test } from 'vitest'
import { latencyOf, minutesIn, valuesAt } from '../../../src/console/data/minutes.ts'
import type { LogMinute } from '../../../src/console/data/types.ts'

const none = { succeeded: 0, failed: 0, parked: 0, delivered: 0, dead: 0, superseded: 0, suppressed: 0 }

function minute(at: string, succeeded: number, durationMs: LogMinute['durationMs']): LogMinute {
  return { ...none, omitted: 0, filtered: 0, minute: `2026-07-23T${at}:00.000Z`, succeeded, durationMs }
}

const minutes = [
  minute('14:01', 3, { p50: 10, p95: 80, p99: 90 }),
  minute('14:02', 0, null),
  minute('14:03', 5, { p50: 20, p95: 40, p99: 200 }),
]

test('the latency of some minutes is that of the slowest, and none where there was no request', () => {
  expect(latencyOf(minutes)).toEqual({ p50: 20, p95: 80, p99: 200 })
  expect(latencyOf(minutes.slice(1, 2))).toBe(undefined)
  expect(latencyOf([])).toBe(undefined)
})

test('minutes without requests, which the API leaves out, have a value too', () => {
  const times = minutesIn({ from: '2026-07-23T14:00:30.000Z', to: '2026-07-23T14:05:00.000Z' })
  expect(times.map((at) => new Date(at).toISOString().slice(11, 16))).toEqual([
    '14:01',
    '14:02',
    '14:03',
    '14:04',
  ])
  expect(valuesAt(times, minutes, ({ succeeded }) => succeeded, 0)).toEqual([3, 0, 5, 0])
  expect(valuesAt(times, minutes, ({ durationMs }) => durationMs?.p95 ?? null, null)).toEqual([
    80,
    null,
    40,
    null,
  ])
})
