import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Unsent } from '../../../src/replay/unsent.ts'

const why = 'destination_off'

test('records that were left out one after the other take one range', () => {
  const unsent = new Unsent()
  for (const offset of [3, 5, 8]) unsent.leftOut({ partition: 1, offset }, why)
  unsent.sent({ partition: 1 })
  unsent.leftOut({ partition: 1, offset: 12 }, why)
  unsent.leftOut({ partition: 2, offset: 1 }, why)
  expect(unsent.ranges).toEqual([
    [1, 3, 9],
    [1, 12, 13],
    [2, 1, 2],
  ])
})

test('what no later replay can send is not remembered', () => {
  const unsent = new Unsent()
  for (const lasting of ['value_omitted', 'not_replayable'] as const)
    unsent.leftOut({ partition: 0, offset: 1 }, lasting)
  expect(unsent.ranges).toEqual([])
})

test('a next owner goes on with the ranges of the one before', () => {
  const unsent = new Unsent([[0, 3, 5]])
  unsent.leftOut({ partition: 0, offset: 9 }, why)
  expect(unsent.ranges).toEqual([
    [0, 3, 5],
    [0, 9, 10],
  ])
})

test('each record that was not sent is in a range, and there are never more than a hundred ranges', () => {
  const step = fc.record({
    partition: fc.nat(2),
    kind: fc.constantFrom('leftOut' as const, 'sent' as const, 'refused' as const),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 1_000, size: 'max' }), (steps) => {
      const unsent = new Unsent()
      const wanted: (readonly [number, number])[] = []
      for (const [offset, { partition, kind }] of steps.entries()) {
        if (kind === 'leftOut') unsent.leftOut({ partition, offset }, why)
        else unsent.sent({ partition })
        if (kind === 'refused') unsent.refused({ partition, offset })
        if (kind !== 'sent') wanted.push([partition, offset])
      }
      const { ranges } = unsent
      expect(ranges.length).toBeLessThanOrEqual(100)
      for (const [partition, offset] of wanted)
        expect(ranges.some(([of, start, end]) => of === partition && offset >= start && offset < end)).toBe(
          true,
        )
    }),
    { numRuns: 50 },
  )
})
