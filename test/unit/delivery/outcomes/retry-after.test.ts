import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { parseRetryAfter } from '../../../../src/http/retry-after.ts'

const nowMs = Date.UTC(1994, 10, 6, 8, 48, 37)
const minuteMs = 60_000
const yearMs = 365 * 24 * 60 * minuteMs
const timeZone = process.env['TZ']

afterEach(() => {
  if (timeZone === undefined) delete process.env['TZ']
  else process.env['TZ'] = timeZone
})

describe('seconds', () => {
  test.each([
    ['0', 0],
    ['1', 1_000],
    ['120', 120_000],
    [' 120 ', 120_000],
    ['007', 7_000],
  ])('%j', (value, waitMs) => {
    expect(parseRetryAfter(value, nowMs)).toBe(waitMs)
  })

  test.each(['31536001', '99999999999', '9'.repeat(400)])('%s is cut to a year', (value) => {
    expect(parseRetryAfter(value, nowMs)).toBe(yearMs)
  })
})

describe('a date', () => {
  const forms = [
    ['IMF-fixdate', 'Sun, 06 Nov 1994 08:49:37 GMT'],
    ['RFC 850', 'Sunday, 06-Nov-94 08:49:37 GMT'],
    ['asctime', 'Sun Nov  6 08:49:37 1994'],
  ]

  test.each(forms)('in the form of %s', (_name, value) => {
    expect(parseRetryAfter(value, nowMs)).toBe(minuteMs)
  })

  test.each(forms)('in the form of %s is in GMT, wherever this runs', (_name, value) => {
    process.env['TZ'] = 'America/New_York'
    expect(parseRetryAfter(value, nowMs)).toBe(minuteMs)
  })

  test.each(forms)('in the form of %s, once it has passed, is no wait', (_name, value) => {
    expect(parseRetryAfter(value, nowMs + 2 * minuteMs)).toBe(0)
  })

  test('is cut to a year', () => {
    expect(parseRetryAfter('Fri, 31 Dec 9999 23:59:59 GMT', nowMs)).toBe(yearMs)
  })
})

describe('a date beside the date of the response', () => {
  const said = 'Sun, 06 Nov 1994 08:49:37 GMT'

  test.each([
    ['a clock that is right', 'Sun, 06 Nov 1994 08:48:37 GMT', minuteMs],
    ['a clock that is an hour fast', 'Sun, 06 Nov 1994 08:49:07 GMT', minuteMs / 2],
    ['a clock that is years slow', 'Sun Nov  6 08:47:37 1994', 2 * minuteMs],
    ['the same second', said, 0],
    ['a time that has passed', 'Sun, 06 Nov 1994 09:49:37 GMT', 0],
  ])('is counted from it: %s', (_name, date, waitMs) => {
    for (const atMs of [nowMs, nowMs - 60 * minuteMs, nowMs + 3 * yearMs])
      expect(parseRetryAfter(said, atMs, date)).toBe(waitMs)
  })

  test.each([undefined, '', 'today', 'Sun, 99 Nov 1994 08:48:37 GMT', '784111717'])(
    'is counted from our own time if the response has the date %j',
    (date) => {
      expect(parseRetryAfter(said, nowMs, date)).toBe(minuteMs)
    },
  )

  test('changes nothing about seconds', () => {
    expect(parseRetryAfter('120', nowMs, 'Sun, 06 Nov 1994 09:49:37 GMT')).toBe(120_000)
  })
})

describe('anything else says nothing', () => {
  test.each([
    undefined,
    '',
    ' ',
    '-1',
    '+5',
    '1.5',
    '1e3',
    '0x10',
    '5 s',
    '120, 120',
    'soon',
    'never 2099',
    'in 5 minutes',
    'Monday, 5',
    '1994-11-06T08:49:37Z',
    'Sun, 06 Nov 1994',
    'Sun, 99 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 25:49:37 GMT',
  ])('%j', (value) => {
    expect(parseRetryAfter(value, nowMs)).toBeUndefined()
  })
})

describe('for any value at any time', () => {
  const dateParts = fc.constantFrom(
    'Sun',
    ',',
    ' ',
    'Nov',
    '06',
    '1994',
    '08:49:37',
    'GMT',
    '-',
    '+',
    '9',
    'soon',
  )
  const values = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.array(dateParts, { maxLength: 10 }).map((parts) => parts.join('')),
    fc.bigInt().map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
  )
  const times = fc.integer({ min: 0, max: 8.64e15 })

  test('it does not throw, and a wait is whole milliseconds from nothing to a year', () => {
    fc.assert(
      fc.property(values, times, (value, atMs) => {
        const waitMs = parseRetryAfter(value, atMs) ?? 0
        expect(Number.isSafeInteger(waitMs)).toBe(true)
        expect(waitMs).toBeGreaterThanOrEqual(0)
        expect(waitMs).toBeLessThanOrEqual(yearMs)
      }),
      { numRuns: 5_000 },
    )
  })

  test('seconds are read as they were written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: yearMs / 1_000 }), times, (seconds, atMs) => {
        expect(parseRetryAfter(String(seconds), atMs)).toBe(seconds * 1_000)
      }),
      { numRuns: 1_000 },
    )
  })

  test('a date that is to come is waited for to the second', () => {
    const now = fc.integer({ min: 0, max: Date.UTC(2500, 0) })
    fc.assert(
      fc.property(now, fc.integer({ min: 0, max: yearMs / 1_000 }), (atMs, seconds) => {
        const date = new Date(atMs + seconds * 1_000)
        const waitMs = parseRetryAfter(date.toUTCString(), atMs) ?? Infinity
        expect(waitMs).toBeLessThanOrEqual(seconds * 1_000)
        expect(waitMs).toBeGreaterThan((seconds - 1) * 1_000)
      }),
      { numRuns: 1_000 },
    )
  })
})
