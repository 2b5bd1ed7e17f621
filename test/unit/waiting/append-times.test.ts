import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { AppendTimes } from '../../../src/waiting/append-times.ts'

test('a time is known to the second, and later times are never given for earlier records', () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(fc.nat(1_000), gaps, (start, all) => {
      const times = new AppendTimes()
      let atMs = 1_000_000
      const known = all.map((gapMs) => (atMs += gapMs))
      for (const [index, one] of known.entries()) times.add(start + index, one)
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
