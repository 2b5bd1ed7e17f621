import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { OldestRecord } from '../../../../src/kafka/partitions/oldest-record.ts'

const unknown = { end: 0, endSeenMs: 0 }

test('of records that are out, the first one counts', () => {
  const oldest = new OldestRecord()
  for (const offset of [0, 1, 2, 3]) oldest.see(offset, 10_000 * (offset + 1), 0)
  expect(oldest.appendedMs(0, unknown)).toBe(10_000)
  expect(oldest.appendedMs(2, unknown)).toBe(30_000)
})

test('where all are settled nothing is old', () => {
  const oldest = new OldestRecord()
  oldest.see(0, 10_000, 0)
  expect(oldest.appendedMs(1, { end: 1, endSeenMs: 10_500 })).toBe(0)
})

test('a record that has not been fetched yet came after all those before it, and after the end was last seen', () => {
  const oldest = new OldestRecord()
  oldest.see(0, 10_000, 0)
  expect(oldest.appendedMs(1, { end: 2, endSeenMs: 0 })).toBe(10_000)
  expect(oldest.appendedMs(1, { end: 2, endSeenMs: 90_000 })).toBe(90_000)
})

test('before anything came of a partition its age is not known', () => {
  expect(new OldestRecord().appendedMs(5, { end: 9, endSeenMs: 0 })).toBe(0)
})

test('records that come again change nothing', () => {
  const oldest = new OldestRecord()
  oldest.see(0, 10_000, 0)
  oldest.see(1, 20_000, 0)
  oldest.see(0, 99_000, 0)
  expect(oldest.appendedMs(0, unknown)).toBe(10_000)
})

test('a record never counts as younger than it is, and as a second older at the most while few are out', () => {
  const gaps = fc.array(fc.record({ waitMs: fc.nat(5_000), skipped: fc.nat(3) }), {
    minLength: 1,
    maxLength: 200,
  })
  fc.assert(
    fc.property(gaps, fc.nat(), (steps, pick) => {
      const oldest = new OldestRecord()
      const records: { offset: number; atMs: number }[] = []
      let [offset, atMs] = [0, 1]
      for (const { waitMs, skipped } of steps) {
        offset += 1 + skipped
        atMs += waitMs
        records.push({ offset, atMs })
        oldest.see(offset, atMs, 0)
      }
      const wanted = records[pick % records.length] ?? { offset: 0, atMs: 0 }
      const told = oldest.appendedMs(wanted.offset, unknown)
      expect(told).toBeLessThanOrEqual(wanted.atMs)
      expect(told).toBeGreaterThan(wanted.atMs - 1_000)
    }),
  )
})

test('a head that is stuck while millions pass takes no more memory than that, and keeps its age', () => {
  const oldest = new OldestRecord()
  for (let offset = 0; offset < 1_000_000; offset++) oldest.see(offset, offset * 1_000 + 7, 0)
  expect(oldest.appendedMs(0, unknown)).toBe(7)
})
