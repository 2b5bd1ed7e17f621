import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Arrival,
  arrivalAt,
  correctTimestamp,
  occasionOf,
} from '../../../../src/gateway/messages/clock.ts'
import { formatTimestamp } from '../../../../src/message/timestamp.ts'

const received = '2026-03-01T12:00:00.000Z'
const arrival = arrivalAt(Date.parse(received))

function corrected(original: unknown, sentAt: unknown, at: Arrival): string | undefined {
  return correctTimestamp(original, occasionOf(sentAt, at))
}

describe('a corrected timestamp', () => {
  test.each([
    [
      'a clock that is an hour late',
      '2026-03-01T10:59:50Z',
      '2026-03-01T11:00:00Z',
      '2026-03-01T11:59:50.000Z',
    ],
    ['a clock that is right', '2026-03-01T11:59:50.000Z', received, '2026-03-01T11:59:50.000Z'],
    [
      'a clock that is years ahead',
      '2031-01-01T00:00:00Z',
      '2031-01-01T00:00:01Z',
      '2026-03-01T11:59:59.000Z',
    ],
    [
      'Go v2, without a colon in the zone',
      '2019-11-10T23:00:00+0000',
      '2019-11-10T23:00:05+0000',
      '2026-03-01T11:59:55.000Z',
    ],
    ['other zones', '2026-03-01T13:59:00+02:00', '2026-03-01T07:00:00-05:00', '2026-03-01T11:59:00.000Z'],
    ['an import of old data', '2009-11-10T23:00:00Z', received, '2009-11-10T23:00:00.000Z'],
    [
      'a request that was under way for nearly a second',
      '2026-03-01T11:59:00.000Z',
      '2026-03-01T11:59:59.001Z',
      '2026-03-01T11:59:00.000Z',
    ],
    [
      'a clock that is a second late',
      '2026-03-01T11:59:00.000Z',
      '2026-03-01T11:59:59.000Z',
      '2026-03-01T11:59:01.000Z',
    ],
    ['no sentAt', '2009-11-10T23:00:00Z', undefined, '2009-11-10T23:00:00.000Z'],
    ['a sentAt that is none', '2009-11-10T23:00:00Z', 'now', '2009-11-10T23:00:00.000Z'],
    ['no time of its own', undefined, received, received],
    ['an empty time of its own', '', received, received],
    [
      'a correction out of all years',
      '9999-12-31T23:59:59Z',
      '2026-01-01T00:00:00Z',
      '9999-12-31T23:59:59.000Z',
    ],
    ['a sentAt of 1970', '2026-03-01T11:59:00Z', '1970-01-01T00:00:00Z', '2026-03-01T11:59:00.000Z'],
    ['a sentAt of the year 1', '2026-03-01T11:59:00Z', '0001-01-01T00:00:00Z', '2026-03-01T11:59:00.000Z'],
    [
      'a sentAt of the next century',
      '2026-03-01T11:59:00Z',
      '2126-03-01T12:00:00Z',
      '2026-03-01T11:59:00.000Z',
    ],
    [
      'a clock that is ten years late',
      '2016-03-03T11:59:00Z',
      '2016-03-03T12:00:00Z',
      '2026-03-01T11:59:00.000Z',
    ],
    ['one that is later still', '2016-02-20T11:59:00Z', '2016-02-20T12:00:00Z', '2016-02-20T11:59:00.000Z'],
  ])('gives the time by our clock, for %s', (_, original, sentAt, expected) => {
    expect(corrected(original, sentAt, arrival)).toBe(expected)
  })

  test.each([
    ['words', '10/11/2009'],
    ['a number', 1_257_894_000],
    ['a day that is not in the calendar', '2026-02-30T00:00:00Z'],
    ['an object', {}],
  ])('is not made up for a time that is %s', (_, original) => {
    expect(corrected(original, received, arrival)).toBeUndefined()
  })

  test('is the time that was given, if times are kept', () => {
    const kept = arrivalAt(Date.parse(received), false)
    expect(corrected('2020-03-01T10:59:50Z', '2026-03-01T11:00:00Z', kept)).toBe('2020-03-01T10:59:50.000Z')
    expect(corrected(undefined, '2026-03-01T11:00:00Z', kept)).toBe(received)
  })

  test('does not depend on what the client’s clock is wrong by', () => {
    const ms = fc.integer({ min: Date.UTC(1990), max: Date.UTC(2090) })
    // An error of less than a second isn't corrected.
    const skew = fc
      .integer({ min: -3e11, max: 3e11 })
      .filter((error) => Math.abs(error) >= 1_000 || error === 0)
    fc.assert(
      fc.property(ms, fc.nat(1e9), skew, (receivedMs, waitedMs, skewMs) => {
        const original = formatTimestamp(receivedMs - waitedMs + skewMs)
        const sentAt = formatTimestamp(receivedMs + skewMs)
        const text = corrected(original, sentAt, arrivalAt(receivedMs))
        expect(text).toBe(formatTimestamp(receivedMs - waitedMs))
      }),
      { numRuns: 1_000 },
    )
  })
})
