import { expect, test } from 'vitest'
import { withLocalTimes } from '../../../../src/commands/command/local-times.ts'

const berlin = () => 120

test('a time has the hour of the clock on the wall, and says how far it is from UTC', () => {
  expect(withLocalTimes('fails since 2026-07-29T09:30:05.123Z (2 h)', berlin)).toBe(
    'fails since 2026-07-29T11:30:05+02:00 (2 h)',
  )
  expect(withLocalTimes('2026-12-31T23:30Z', () => -210)).toBe('2026-12-31T20:00-03:30')
})

test('it is still a time that commands take', () => {
  const [, shown = ''] = withLocalTimes('--from 2026-07-29T09:30:05Z', berlin).split(' ')
  expect(new Date(shown).toISOString()).toBe('2026-07-29T09:30:05.000Z')
})

test('what follows a time in a table stays in its column', () => {
  const rows = [
    '2026-07-29T09:30:05.123Z   crm',
    '2026-07-29T09:30:05Z       crm',
    `${'time'.padEnd(25)}  what`,
  ]
  expect(rows.map((row) => withLocalTimes(row, berlin).lastIndexOf('  ') + 2)).toEqual([27, 27, 27])
})

test.each([
  ['{"timestamp":"2026-07-29T09:30:05.123Z"}'],
  ["at '2026-07-29T09:30:05Z'"],
  ['order-2026-07-29T09:30:05Z'],
  ['2026-13-29T09:30:05Z'],
])('what a message says stays as it is: %s', (line) => {
  expect(withLocalTimes(line, berlin)).toBe(line)
})
