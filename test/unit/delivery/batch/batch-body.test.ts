import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { batchBody, batchBytes, batchIdOf } from '../../../../src/delivery/batch/batch-body.ts'

const messages = fc.array(
  fc.dictionary(
    fc.string(),
    fc.json().map((text) => JSON.parse(text) as unknown),
  ),
  {
    minLength: 1,
    maxLength: 20,
  },
)

function bodiesOf(values: readonly object[]): Buffer[] {
  return values.map((value) => Buffer.from(JSON.stringify(value)))
}

test('a JSON batch is what JSON.stringify makes of the array of its messages', () => {
  fc.assert(
    fc.property(messages, (values) => {
      const parsed = values.map((value): object => JSON.parse(JSON.stringify(value)))
      const body = batchBody('json', bodiesOf(parsed))
      expect(body.toString()).toBe(JSON.stringify(parsed))
    }),
  )
})

test('an NDJSON batch has a line for each message, the last one ended too', () => {
  fc.assert(
    fc.property(messages, (values) => {
      const body = batchBody('ndjson', bodiesOf(values)).toString()
      expect(body.endsWith('\n')).toBe(true)
      expect(body.slice(0, -1).split('\n')).toEqual(values.map((value) => JSON.stringify(value)))
    }),
  )
})

test('the size of a batch is known before it is made', () => {
  fc.assert(
    fc.property(messages, fc.constantFrom('json', 'ndjson'), (values, format) => {
      const bodies = bodiesOf(values)
      const bytes = bodies.reduce((sum, { length }) => sum + length, 0)
      expect(batchBody(format, bodies)).toHaveLength(batchBytes(format, bodies.length, bytes))
    }),
  )
})

test('a batch has the id of another one only if it has the same messages in the same order', () => {
  const ids = fc.array(fc.string(), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(ids, ids, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other)
      expect(batchIdOf(one) === batchIdOf(other)).toBe(isSame)
    }),
  )
  expect(batchIdOf(['a', 'b'])).toMatch(/^batch_[\w-]{43}$/)
  expect(batchIdOf(['a', 'b'])).not.toBe(batchIdOf(['b', 'a']))
  expect(batchIdOf(['a', 'b'])).not.toBe(batchIdOf(['a","b']))
})
