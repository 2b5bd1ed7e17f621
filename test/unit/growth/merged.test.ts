import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { merged } from '../../../src/growth/merged.ts'

async function* batches(
  log: readonly (readonly number[])[],
  onEnd: () => void,
): AsyncGenerator<readonly number[]> {
  try {
    yield* log
  } finally {
    onEnd()
  }
}

test('sorted logs come as one sorted log, with all that is in them', async () => {
  const log = fc.array(fc.array(fc.nat({ max: 50 }), { maxLength: 4 }), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(fc.array(log, { maxLength: 5 }), async (given) => {
      let ended = 0
      const logs = given.map((one) => {
        const sorted = one.flat().toSorted((a, b) => a - b)
        let at = 0
        return one.map(({ length }) => sorted.slice(at, (at += length)))
      })
      const all: number[] = []
      for await (const value of merged(
        logs.map((one) => batches(one, () => ended++)),
        (a, b) => a - b,
      ))
        all.push(value)
      expect(all).toEqual(given.flat(2).toSorted((a, b) => a - b))
      expect(ended).toBe(given.length)
    }),
  )
})

test('a log that is out of order stays in its order', async () => {
  const all: number[] = []
  for await (const value of merged(
    [batches([[5, 1], [9]], () => {}), batches([[2], [3]], () => {})],
    (a, b) => a - b,
  ))
    all.push(value)
  expect(all).toEqual([2, 3, 5, 1, 9])
})
