import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  formatTimestamp,
  isCanonicalTimestamp,
  parseTimestamp,
  timestampPattern,
} from '../../../src/message/timestamp.ts'

const runs = { numRuns: 2000 }
const earliestMs = Date.parse('0000-01-01T00:00:00.000Z')
const latestMs = Date.parse('9999-12-31T23:59:59.999Z')
const normalised = (text: string) => formatTimestamp(parseTimestamp(text) ?? Number.NaN)

describe('a spelling that is read', () => {
  test.each([
    ['2009-11-10T23:00:00.000Z', '2009-11-10T23:00:00.000Z'],
    ['2009-11-10T23:00:00+0000', '2009-11-10T23:00:00.000Z'],
    ['2009-11-10T23:00:00Z', '2009-11-10T23:00:00.000Z'],
    ['2009-11-10t23:00:00z', '2009-11-10T23:00:00.000Z'],
    ['2009-11-10 23:00:00.5+00:00', '2009-11-10T23:00:00.500Z'],
    ['2009-11-10T23:00:00,5Z', '2009-11-10T23:00:00.500Z'],
    ['2009-11-10T23:00:00.123456789Z', '2009-11-10T23:00:00.123Z'],
    ['2009-11-10T23:00:00.999999999Z', '2009-11-10T23:00:00.999Z'],
    ['2009-11-10T23:00:00+05:30', '2009-11-10T17:30:00.000Z'],
    ['2009-11-10T23:00:00-0130', '2009-11-11T00:30:00.000Z'],
    ['2009-11-10T23:00:00+02', '2009-11-10T21:00:00.000Z'],
    ['2009-11-10T23:00', '2009-11-10T23:00:00.000Z'],
    ['2009-11-10T23:00:00.123', '2009-11-10T23:00:00.123Z'],
    ['2009-11-10', '2009-11-10T00:00:00.000Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
  ])('%s is %s', (text, expected) => {
    expect(normalised(text)).toBe(expected)
  })
})

describe('a text that is refused', () => {
  test.each(
    [
      [
        '',
        'today',
        '1700000000',
        '2009',
        '2009-11',
        '2009-1-1',
        '20091110T230000Z',
        '2009-W46-2',
        '2009-314',
      ],
      ['2023-02-29', '1900-02-29', '2024-04-31', '2024-13-01', '2024-00-01', '2024-01-00', '2024-01-32'],
      [
        '2009-11-10T24:00:00Z',
        '2009-11-10T23:60:00Z',
        '2009-11-10T23:00:61Z',
        '2009-11-10T23Z',
        '2009-11-10T',
      ],
      ['2009-11-10Z', '2009-11-10T23:00:00.Z', '2009-11-10T23:00:00.123Zx', '2009-11-10T23:00:00 Z'],
      [
        '2009-11-10T23:00:00+24:00',
        '2009-11-10T23:00:00+00:60',
        '2009-11-10T23:00:00+0',
        '2009-11-10T23:00:00+0:00',
      ],
      [
        '2009-11-10T23:00:00+00:',
        '2009-11-10T23:00:00+00:0',
        '2009-11-10T23:00:00+00:000',
        '2009-11-10T23:00Z+00:00',
      ],
      [
        '+002009-11-10T23:00:00Z',
        '0000-01-01T00:00:00+00:01',
        '9999-12-31T23:59:00-00:01',
        '9999-12-31T23:59:60Z',
      ],
      [' 2009-11-10', '2009-11-10 ', '２００９-11-10', '2009-11-10T23:00:00.000Z\n', 'Tue Nov 10 2009'],
    ].flat(),
  )('%j', (text) => {
    expect(parseTimestamp(text)).toBeUndefined()
  })
})

test('every moment of the years 0000 to 9999 is read as it is written', () => {
  fc.assert(
    fc.property(fc.integer({ min: earliestMs, max: latestMs }), (ms) => {
      const text = formatTimestamp(ms) ?? ''
      expect(text).toBe(new Date(ms).toISOString())
      expect(parseTimestamp(text)).toBe(ms)
      expect(isCanonicalTimestamp(text)).toBe(true)
    }),
    runs,
  )
})

test.each([earliestMs - 1, latestMs + 1, Number.NaN, Infinity, 9e15])('%d ms is not written', (ms) => {
  expect(formatTimestamp(ms)).toBeUndefined()
})

const two = (max: number) => fc.nat(max).map((value) => String(value).padStart(2, '0'))
const nearTimestamp = fc
  .tuple(
    fc.nat(9999).map((year) => String(year).padStart(4, '0')),
    fc.oneof(two(12), two(13)),
    fc.oneof(two(28), two(32)),
    fc.constantFrom('T', 't', ' ', '', '_'),
    fc.tuple(two(24), two(60)).map((parts) => parts.join(':')),
    fc.oneof(
      two(61).map((second) => `:${second}`),
      fc.constant(''),
    ),
    fc.constantFrom('', '', '.', '.1', ',12', '.123', '.123456', '.x'),
    fc.oneof(
      fc.constantFrom('Z', 'z', '', ' '),
      fc
        .tuple(
          fc.constantFrom('+', '-', ''),
          two(24),
          fc.constantFrom(':', ''),
          fc.oneof(two(60), fc.constant('')),
        )
        .map((parts) => parts.join('')),
    ),
  )
  .map(([year, month, day, separator, time, second, fraction, zone]) =>
    [`${year}-${month}-${day}`, separator, time, second, fraction, zone].join(''),
  )

const published = new RegExp(timestampPattern)

test('what is read fits the published pattern', () => {
  fc.assert(
    fc.property(nearTimestamp, (text) => {
      fc.pre(parseTimestamp(text) !== undefined)
      expect(text).toMatch(published)
    }),
    runs,
  )
})

test('what fits the published pattern is read, when month and year have such a day', () => {
  fc.assert(
    fc.property(nearTimestamp, (text) => {
      fc.pre(published.test(text) && Number(text.slice(8, 10)) <= 28 && !/^(?:0000|9999)/.test(text))
      expect(parseTimestamp(text)).toBeDefined()
    }),
    runs,
  )
})

test('is canonical exactly when normalising changes nothing', () => {
  fc.assert(
    fc.property(nearTimestamp, (text) => {
      const ms = parseTimestamp(text)
      fc.pre(ms !== undefined)
      expect(isCanonicalTimestamp(text)).toBe(normalised(text) === text)
    }),
    runs,
  )
})

const within = (min: number, max: number) =>
  fc.integer({ min, max }).map((value) => String(value).padStart(2, '0'))
const bothRead = fc
  .tuple(
    fc.integer({ min: 1, max: 9998 }).map((year) => String(year).padStart(4, '0')),
    fc.tuple(within(1, 12), within(1, 28)).map((parts) => parts.join('-')),
    fc.tuple(within(0, 23), within(0, 59)).map((parts) => parts.join(':')),
    fc.oneof(
      fc.constantFrom('', ':07.1', ':08.12'),
      within(0, 59).map((second) => `:${second}.123`),
    ),
    fc.oneof(
      fc.constant('Z'),
      fc
        .tuple(fc.constantFrom('+', '-'), within(0, 23), fc.constant(':'), within(0, 59))
        .map((parts) => parts.join('')),
    ),
  )
  .map(([year, day, time, second, zone]) => `${year}-${day}T${time}${second}${zone}`)

test('second 60 is not canonical', () => {
  expect(isCanonicalTimestamp('2016-12-31T23:59:60.000Z')).toBe(false)
})

test('agrees with Date.parse on what both read', () => {
  fc.assert(
    fc.property(bothRead, (text) => {
      expect(parseTimestamp(text)).toBe(Date.parse(text))
    }),
    runs,
  )
})
