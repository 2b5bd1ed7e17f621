import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { FetchSize, minFetchBytes } from '../../../../src/kafka/fetch/fetch-size.ts'

const mostBytes = 128 * 1024
const sizeBytes = 12
const headBytes = 61

/** Returns what one fetch from batch `at` on brings, as a broker answers it for a partition that isn't the first. */
function fetched(all: readonly number[], at: number, bytes: number) {
  let [batches, whole, largest] = [0, 0, 0]
  for (let size = all[at]; size !== undefined && whole + size <= bytes; size = all[at + batches]) {
    batches++
    whole += size
    largest = Math.max(largest, size)
  }
  const next = all[at + batches] ?? 0
  const came = batches === 0 ? 0 : Math.min(bytes - whole, next)
  return { sizes: { batches, bytes: whole, largest, cut: came < sizeBytes ? 0 : next }, came: whole + came }
}

/**
 * Reads a log. Returns how many times its bytes were fetched, in how many fetches, and how many of these brought
 * nothing one after the other, asked for too much, or for so little that a broker would wait for more.
 */
function readLog(all: readonly number[]): { times: number; fetches: number; bad: number } {
  const size = new FetchSize(mostBytes)
  let [came, fetches, bad, wasEmpty] = [0, 0, 0, false]
  for (let at = 0; at < all.length && bad === 0; fetches++) {
    if (size.bytes > mostBytes || size.bytes < minFetchBytes) bad++
    const answer = fetched(all, at, size.bytes)
    came += answer.came
    at += answer.sizes.batches
    if (answer.sizes.batches > 0) size.learn(answer.sizes)
    else {
      if (wasEmpty) bad++
      size.reset()
    }
    wasEmpty = answer.sizes.batches === 0
  }
  return { times: came / all.reduce((sum, one) => sum + one, 0), fetches, bad }
}

test.each([
  ['a whole fetch', 100, mostBytes],
  ['more than half of a fetch', 100, 70_000],
  ['less than half of a fetch', 100, 60_000],
  ['a third of a fetch', 100, 43_000],
  ['little', 5_000, 1_000],
])('batches of %s come once', (_what, count, size) => {
  const { times } = readLog(Array.from({ length: count }, () => size))
  expect(times).toBeLessThan(1.03)
})

test('batches that differ by a tenth come 1.1 times, in as many fetches as fit', () => {
  const all = Array.from({ length: 1_000 }, (_, index) => 85_000 + ((index * 7_919) % 17_000))
  const { times, fetches } = readLog(all)
  expect(times).toBeLessThan(1.1)
  expect(fetches).toBe(1_000)
})

test('small batches between those that fill a fetch are not waited for', () => {
  const all = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? 130_000 : 5_000))
  const { times, fetches, bad } = readLog(all)
  expect(bad).toBe(0)
  expect(times).toBeLessThan(1.1)
  expect(fetches).toBe(100)
})

test('a log of any batches that fit is read to its end', () => {
  const batch = fc.integer({ min: headBytes, max: mostBytes })
  fc.assert(
    fc.property(fc.array(batch, { minLength: 1, maxLength: 200 }), (all) => {
      expect(readLog(all).bad).toBe(0)
    }),
  )
})
