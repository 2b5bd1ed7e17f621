import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeLending, encodeLending } from '../../../src/lending/lending-record.ts'

const amounts = fc
  .array(fc.tuple(fc.string(), fc.double({ min: 1e-5, max: 1e6, noNaN: true })))
  .map((pairs) => new Map(pairs))

test('a record is read as it was written', () => {
  const records = fc.record({
    from: fc.string({ minLength: 1 }),
    generation: fc.nat(),
    number: fc.integer({ min: 1 }),
    wants: amounts,
    answers: fc
      .array(fc.tuple(fc.string(), fc.record({ number: fc.nat(), parts: amounts })))
      .map((pairs) => new Map(pairs)),
  })
  fc.assert(
    fc.property(records, (record) => {
      const read = decodeLending(encodeLending(record))
      // An object lists keys that look like numbers first.
      expect(read).toEqual(record)
    }),
  )
})

test.each([
  ['nothing', null],
  ['no JSON', '{'],
  ['another version', '{"v":2,"from":"a","generation":1,"number":1,"wants":{},"answers":{}}'],
  ['a negative amount', '{"v":1,"from":"a","generation":1,"number":1,"wants":{"a":-1},"answers":{}}'],
  ['a list', '[]'],
])('a record with %s is passed over', (_what, text) => {
  expect(decodeLending(text === null ? null : Buffer.from(text))).toBeUndefined()
})
