import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { AppendTimes } from '../../../src/waiting/append-times.ts'

/** Adds records from `start` on, with these gaps between their times. `known`: their times. */
function timesOf(start: number, gapsMs: readonly number[]) {
  const times = new AppendTimes()
  let atMs = 1_000_000
  const known = gapsMs.map((gapMs) => (atMs += gapMs))
  for (const [index, one] of known.entries()) times.add(start + index, one)
  return { times, known }
}

test('a time is known to the second, and later times are never given for earlier records', () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(fc.nat(1_000), gaps, (start, all) => {
      const { times, known } = timesOf(start, all)
      for (const [index, one] of known.entries()) {
        const said = times.at(start + index) ?? Number.NaN
        expect(said).toBeLessThanOrEqual(one)
        expect(one - said).toBeLessThan(1_000)
      }
      expect(times.at(start - 1)).toBeUndefined()
      expect(times.at(start + known.length)).toBeUndefined()
    }),
  )
})

test('after a gap, only the later records are known, and single ones that were looked up', () => {
  const times = new AppendTimes()
  times.add(5, 1_000)
  times.add(9, 9_000)
  expect(times.at(5)).toBeUndefined()
  expect(times.at(9)).toBe(9_000)
  expect(times.ask(5)).toBeUndefined()
  expect(times.unknown).toBe(5)
  times.learn(5, [{ offset: 5, timestampMs: 1_000 }])
  expect(times.unknown).toBeUndefined()
  expect(times.at(5)).toBe(1_000)
  times.skip(3)
  times.add(13, 20_000)
  expect(times.at(9)).toBe(9_000)
  times.dropBefore(13)
  expect(times.at(5)).toBeUndefined()
  expect(times.at(13)).toBe(20_000)
})

test('a month of records takes little room, and their times are known to the hour', () => {
  const times = new AppendTimes()
  const everyMs = 10_000
  const count = (30 * 86_400_000) / everyMs
  for (let offset = 0; offset < count; offset++) times.add(offset, offset * everyMs)
  for (let offset = 0; offset < count; offset += 997)
    expect(offset * everyMs - (times.at(offset) ?? Number.NaN)).toBeLessThan(3_600_000)
})

test('between two known times, it is known about when a record was appended', () => {
  const gaps = fc.array(fc.integer({ min: 100, max: 300 }), { minLength: 20, maxLength: 200 })
  fc.assert(
    fc.property(fc.nat(1_000), gaps, (start, all) => {
      const { times, known } = timesOf(start, all)
      const about = known.map((_, index) => times.about(start + index))
      expect(about).toEqual(about.toSorted((a, b) => a - b))
      for (const [index, one] of known.entries())
        expect(Math.abs((about[index] ?? Number.NaN) - one)).toBeLessThan(1_000)
    }),
  )
})

test('before the known part, it is known about when a record was appended once others near it were read', () => {
  const times = new AppendTimes()
  const note = (offset: number): void => times.note({ offset, timestampMs: offset * 1_000 })
  times.add(100, 100_000)
  times.add(110, 110_000)
  expect(times.about(50)).toBe(0)
  note(20)
  expect(times.about(10)).toBe(0)
  expect(times.about(60)).toBe(60_000)
  note(40)
  note(30)
  expect([20, 25, 35, 39, 70, 105].map((offset) => times.about(offset))).toEqual([
    20_000, 25_000, 35_000, 39_000, 70_000, 105_000,
  ])
  times.dropBefore(35)
  expect(times.about(35)).toBe(35_000)
  for (let offset = 41; offset < 100; offset++) note(offset)
  expect(times.about(77)).toBe(77_000)
})

test('a log that nobody has appended to since its takeover is known as far as it was read', () => {
  const times = new AppendTimes()
  for (let offset = 0; offset < 3_000; offset++) times.note({ offset, timestampMs: offset * 1_000 })
  for (let offset = 0; offset < 2_900; offset += 97)
    expect(Math.abs(times.about(offset) - offset * 1_000)).toBeLessThan(10_000)
  expect(times.about(5_000)).toBeGreaterThan(2_900_000)
})

test('times of a clock that was ahead are forgotten once it is right, and until then say nothing', () => {
  const times = new AppendTimes()
  const nowMs = Date.now()
  const dayMs = 86_400_000
  times.add(0, nowMs - dayMs)
  for (let offset = 1; offset < 100; offset++) times.add(offset, nowMs + dayMs + offset * 1_000)
  expect(times.about(50)).toBe(0)
  expect(times.about(99)).toBe(0)
  for (let offset = 100; offset < 200; offset++) times.add(offset, nowMs - 100_000 + offset)
  expect(times.at(0)).toBe(nowMs - dayMs)
  for (const offset of [50, 100, 199]) {
    expect(times.at(offset)).toBeGreaterThanOrEqual(nowMs - dayMs)
    expect(times.about(offset)).toBeGreaterThan(0)
    expect(times.about(offset)).toBeLessThanOrEqual(nowMs)
  }
  expect(times.about(199)).toBeGreaterThan(nowMs - dayMs / 2)
})

test('a time of the distant past changes nothing of the times that are known', () => {
  const times = new AppendTimes()
  const nowMs = Date.now()
  times.add(0, nowMs - 5_000)
  times.add(1, 0)
  times.add(2, nowMs)
  expect([times.at(0), times.at(1), times.at(2)]).toEqual([nowMs - 5_000, nowMs - 5_000, nowMs])
})
