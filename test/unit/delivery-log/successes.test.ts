import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { SuccessSampler } from '../../../src/delivery-log/successes.ts'

type Success = { destinationId: string }

/** Returns the weights of the records that are written, by URL, and the sampler. */
function sample(
  successes: readonly { atMs: number; hook: string }[],
  perSecond: number,
): { weights: Map<string, number[]>; sampler: SuccessSampler<Success> } {
  const sampler = new SuccessSampler<Success>(perSecond)
  const weights = new Map<string, number[]>()
  const add = (hook: string, weight: number): void => {
    if (weight > 0) weights.set(hook, [...(weights.get(hook) ?? []), weight])
  }
  for (const { atMs, hook } of successes) {
    sampler.leftover(atMs, (of) => add(of.hook, of.unlogged))
    add(hook, sampler.weightOf({ destinationId: 'crm' }, hook, 200, 1, atMs))
  }
  sampler.leftover(Infinity, (of) => add(of.hook, of.unlogged))
  return { weights, sampler }
}

test('the weights of a URL add up to its successes, whatever their times', () => {
  const success = fc.record({ gapMs: fc.nat(30), hook: fc.constantFrom('a', 'b') })
  fc.assert(
    fc.property(
      fc.array(success, { maxLength: 2_000 }),
      fc.integer({ min: 1, max: 20 }),
      (given, perSecond) => {
        let atMs = 1_000_000
        const successes = given.map(({ gapMs, hook }) => ({ hook, atMs: (atMs += gapMs) }))
        const { weights } = sample(successes, perSecond)
        for (const hook of ['a', 'b']) {
          const sum = (weights.get(hook) ?? []).reduce((total, weight) => total + weight, 0)
          expect(sum).toBe(successes.filter((one) => one.hook === hook).length)
        }
      },
    ),
  )
})

test('of ten thousand in a second a hundred have a record of their own, and a few hundred in all', () => {
  const successes = Array.from({ length: 10_000 }, (_, index) => ({ hook: 'a', atMs: 5_000 + index / 20 }))
  const written = sample(successes, 100).weights.get('a') ?? []
  expect(written.filter((weight) => weight === 1)).toHaveLength(100)
  expect(written.length).toBeLessThan(400)
})

test('a second later each has a record again', () => {
  const successes = Array.from({ length: 5_000 }, () => ({ hook: 'a', atMs: 5_000 }))
  const { sampler } = sample(successes, 10)
  expect(sampler.weightOf({ destinationId: 'crm' }, 'a', 200, 1, 6_000)).toBe(1)
})

test('successes without a record are reported soon after the clock was set back', () => {
  const sampler = new SuccessSampler<Success>(1)
  const weights: number[] = []
  for (let count = 0; count < 5; count++)
    weights.push(sampler.weightOf({ destinationId: 'crm' }, 'a', 200, 1, 3_600_000))
  expect(weights).toEqual([1, 0, 0, 0, 0])
  sampler.leftover(3_600_999, ({ unlogged }) => weights.push(unlogged))
  expect(weights).toHaveLength(5)
  sampler.leftover(1_000, ({ unlogged }) => weights.push(unlogged))
  expect(weights.slice(5)).toEqual([4])
})

test('URLs of months ago are forgotten, also those of a destination that still gets messages', () => {
  const sampler = new SuccessSampler<Success>(1)
  let weight = 0
  const rounds = 500
  for (let round = 0; round < rounds; round++) {
    const atMs = round * 3_600_000
    for (const destinationId of ['crm', `destination-${round}`]) {
      for (let count = 0; count < 3; count++)
        weight += sampler.weightOf({ destinationId }, `hook-${round}`, 200, 1, atMs)
    }
    for (const laterMs of [500, 1_000, 61_000])
      sampler.leftover(atMs + laterMs, ({ unlogged }) => (weight += unlogged))
  }
  expect(sampler.size).toBe(0)
  expect(weight).toBe(rounds * 6)
})
