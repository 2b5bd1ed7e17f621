import { afterEach, beforeEach, expect, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import type { LogFilter } from '../../../../src/delivery-log/log-query.ts'
import { searchFilter } from '../../../../src/commands/log/log-search.ts'

/** A time zone whose local time is hours behind UTC. */
const elsewhere = 'America/New_York'
let zone: string | undefined

beforeEach(() => {
  zone = process.env['TZ']
  process.env['TZ'] = elsewhere
})

afterEach(() => {
  if (zone === undefined) delete process.env['TZ']
  else process.env['TZ'] = zone
})

function filterOf(since: string | undefined, until: string | undefined): LogFilter {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error('the default settings are refused')
  return searchFilter(read.config, {
    since,
    until,
    destination: undefined,
    source: undefined,
    hook: undefined,
    message: undefined,
    user: undefined,
    value: undefined,
    kind: undefined,
    outcome: undefined,
    reason: undefined,
    status: undefined,
    job: undefined,
    failed: false,
  })
}

test.each([
  ['2026-01-31T12:00:00', Date.UTC(2026, 0, 31, 12)],
  ['2026-01-31 12:00', Date.UTC(2026, 0, 31, 12)],
  ['2026-01-31', Date.UTC(2026, 0, 31)],
  ['2026-01-31T12:00:00-05:00', Date.UTC(2026, 0, 31, 17)],
])('%s is in UTC unless it names a zone, wherever the command runs', (text, ms) => {
  expect(filterOf(text, undefined).fromMs).toBe(ms)
  expect(filterOf('2020-01-01', text).toMs).toBe(ms)
})

test.each(['2026-02-30', '2026-01-31T25:00', '2026-01-31T12:00:00 EST', 'yesterday', '12', ''])(
  '%j is no time',
  (text) => {
    expect(() => filterOf(text, undefined)).toThrow('--since: expected a time such as 15m')
  },
)

test('a time that ends before it begins, or as it does, is refused', () => {
  for (const since of ['2026-01-31', '2026-02-01', '1m'])
    expect(() => filterOf(since, '2026-01-31')).toThrow('--since has to be before --until.')
})

test('a time that ends before the hour that is searched by default says what to give', () => {
  expect(() => filterOf(undefined, '2h')).toThrow(
    '--since, 1h ago unless it is given, has to be before --until.',
  )
})
