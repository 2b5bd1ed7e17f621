import { expect, test } from 'vitest'
import { count } from '../../../src/replay/count.ts'

const ranges = [
  { start: 0, end: 10 },
  { start: 0, end: 10 },
]

test('a count ends in time where a piece never comes, as while a schema registry is away, and says that it is not complete', async () => {
  const startedMs = performance.now()
  const counted = await count({
    ranges,
    pieces: {
      piece: ({ partition, to }) =>
        partition === 0 ? new Promise(() => undefined) : Promise.resolve({ records: [], next: to }),
    },
    choose: () => ({ kind: 'no' }),
    untilMs: startedMs + 50,
  })
  expect(counted).toMatchObject({ isComplete: false })
  expect(performance.now() - startedMs).toBeLessThan(5_000)
})

test('a count of a partition that lost its records ends, and says so', async () => {
  const counted = await count({
    ranges,
    pieces: {
      piece: ({ partition, to }) => Promise.resolve(partition === 0 ? 'lost' : { records: [], next: to }),
    },
    choose: () => ({ kind: 'no' }),
  })
  expect(counted).toBe('lost')
})
