import { expect, test } from 'vitest'
import { EpochHistory } from '../../../../src/kafka/fetch/epoch-history.ts'

test('the epoch of the last record before an offset is that of the batch that it came in', () => {
  const history = new EpochHistory(100, 3)
  for (const [from, leaderEpoch] of [
    [100, 3],
    [120, 3],
    [150, 5],
    [160, 5],
    [200, 6],
  ] as const)
    history.add(from, leaderEpoch)
  expect([100, 101, 150, 151, 200, 201, 999].map((offset) => history.before(offset))).toEqual([
    3, 3, 3, 5, 5, 6, 6,
  ])
})

test('nothing is known before the first batch where nobody remembers an epoch', () => {
  const history = new EpochHistory(100, -1)
  expect(history.before(100)).toBe(-1)
  history.add(100, 2)
  expect([100, 101].map((offset) => history.before(offset))).toEqual([-1, 2])
})

test('what is read once more changes nothing, and what is read otherwise takes the place of what was', () => {
  const history = new EpochHistory(0, -1)
  for (const [from, leaderEpoch] of [
    [0, 1],
    [10, 2],
    [20, 4],
  ] as const)
    history.add(from, leaderEpoch)
  history.add(5, 1)
  history.add(10, 2)
  expect([10, 20, 21].map((offset) => history.before(offset))).toEqual([1, 2, 4])
  history.add(15, 7)
  expect([15, 16, 99].map((offset) => history.before(offset))).toEqual([2, 7, 7])
})

test('a log of very many leaders is remembered in part', () => {
  const history = new EpochHistory(0, -1)
  for (let leaderEpoch = 0; leaderEpoch < 1_000; leaderEpoch++) history.add(10 * leaderEpoch, leaderEpoch)
  expect(history.before(10_000)).toBe(999)
  expect(history.before(5)).toBe(-1)
})
