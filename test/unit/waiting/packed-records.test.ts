import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { PackedRecords, Segments } from '../../../src/waiting/packed-records.ts'

const bytes = fc.uint8Array({ maxLength: 50 }).map((array) => Buffer.from(array))
const some = fc.option(bytes, { nil: null })
const value = fc.oneof(
  some,
  fc.uint8Array({ minLength: 20_000, maxLength: 40_000 }).map((array) => Buffer.from(array)),
)
const headers = fc.dictionary(
  fc.string({ maxLength: 8 }).filter((name) => name !== '__proto__'),
  fc.oneof(some, fc.array(some, { minLength: 2, maxLength: 3 })),
  { maxKeys: 4 },
)
const record = fc.record({
  key: some,
  value,
  headers,
  leaderEpoch: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
})

function recordAt(offset: number, text: string) {
  return {
    offset,
    timestampMs: 1,
    leaderEpoch: 0,
    key: Buffer.from('k'),
    value: Buffer.from(text),
    headers: {},
  }
}

function readAt(packed: PackedRecords, offset: number) {
  return packed.read(packed.placeOf(offset))
}

test('each record comes back as it was, and no other', () => {
  const segments = new Segments()
  const list = fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), record), { maxLength: 12 })
  fc.assert(
    fc.property(list, (gaps) => {
      let offset = 100
      const records = gaps.map(([gap, one], index) => ({
        ...one,
        offset: (offset += gap),
        timestampMs: index + 0.5,
      }))
      const packed = new PackedRecords(records, segments)
      for (const one of records) expect(readAt(packed, one.offset)).toEqual(one)
      const known = new Set(records.map((one) => one.offset))
      for (let other = 99; other < offset + 2; other++)
        if (!known.has(other)) expect(readAt(packed, other)).toBeUndefined()
      expect([...packed.times()]).toEqual(
        records.map(({ offset: at, timestampMs }) => ({ offset: at, timestampMs })),
      )
      packed.release()
    }),
    { numRuns: 200 },
  )
})

test('a record that was read stays the same when the memory of its piece is used again', () => {
  const segments = new Segments()
  const first = new PackedRecords([recordAt(0, 'first')], segments)
  const read = readAt(first, 0)
  first.release()
  const second = new PackedRecords([recordAt(0, 'other')], segments)
  expect(read?.value?.toString()).toBe('first')
  expect(readAt(second, 0)?.value?.toString()).toBe('other')
  expect(readAt(first, 0)).toBeUndefined()
})

test('a record without readable content keeps its reason', () => {
  const unreadable = { ...recordAt(3, ''), key: null, value: null, unreadable: 'its batch is damaged' }
  const packed = new PackedRecords([recordAt(2, 'a'), unreadable, recordAt(4, 'b')], new Segments())
  expect(readAt(packed, 3)).toBe(unreadable)
  expect([readAt(packed, 2), readAt(packed, 4)].map((one) => one?.value?.toString())).toEqual(['a', 'b'])
})

test('pieces that follow each other use the same memory', () => {
  const segments = new Segments()
  const records = Array.from({ length: 500 }, (_, at) => recordAt(at, 'x'.repeat(1_000)))
  new PackedRecords(records, segments).release()
  const free = segments.freeBytes
  expect(free).toBeGreaterThan(500 * 1_000)
  for (let round = 0; round < 10; round++) new PackedRecords(records, segments).release()
  expect(segments.freeBytes).toBe(free)
})
