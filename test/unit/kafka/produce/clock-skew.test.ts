import { expect, test } from 'vitest'
import { clockAheadMs } from '../../../../src/kafka/produce/clock-skew.ts'

test.each([
  ['agree', { appended: 1_050, sent: 1_000, answered: 1_100 }, 0],
  ['agree, when the append was at once', { appended: 1_000, sent: 1_000, answered: 1_000 }, 0],
  ['differ: ours is ahead', { appended: 400, sent: 1_000, answered: 1_100 }, 600],
  ['differ: ours is behind', { appended: 1_900, sent: 1_000, answered: 1_100 }, -800],
])('clocks %s', (_, { appended, sent, answered }, ahead) => {
  expect(clockAheadMs(appended, sent, answered)).toBeCloseTo(ahead)
})
