import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { VersionedMap } from '../../../src/catalog/versioned-map.ts'

const key = fc.integer({ min: 0, max: 600 }).map((number) => `k${number}`)
const changes = fc.array(fc.tuple(key, fc.option(fc.integer(), { nil: undefined })), { maxLength: 80 })

/** A step makes the next version of one of the versions so far. */
const step = fc.record({ of: fc.nat(), changes })

test('every version stays as it was made, whichever other versions are made of it', () => {
  fc.assert(
    fc.property(fc.array(key, { maxLength: 700 }), fc.array(step, { maxLength: 20 }), (first, steps) => {
      const begin = new Map(first.map((one, value) => [one, value]))
      const versions = [{ map: VersionedMap.of(begin), model: begin }]
      for (const { of, changes: given } of steps) {
        const from = versions[of % versions.length] ?? expect.fail()
        const model = new Map(from.model)
        const patch = new Map(given)
        for (const [one, value] of patch) {
          if (value === undefined) model.delete(one)
          else model.set(one, value)
        }
        versions.push({ map: from.map.with(patch), model })
      }
      for (const { map, model } of versions) {
        expect(map.size).toBe(model.size)
        expect(new Map(map)).toEqual(model)
        expect(new Set(map.values())).toEqual(new Set(model.values()))
        for (const one of [...model.keys(), 'k0', 'k600', 'other']) {
          expect(map.get(one)).toBe(model.get(one))
          expect(map.has(one)).toBe(model.has(one))
        }
      }
    }),
    { numRuns: 60 },
  )
})

test('keys stay in the order in which they were added first, and a map that lost most keys forgets them', () => {
  const first = VersionedMap.of(new Map(['a', 'b', 'c'].map((one) => [one, 1])))
  const next = first.with(
    new Map([
      ['b', undefined],
      ['d', 1],
    ]),
  )
  expect([...next.keys()]).toEqual(['a', 'c', 'd'])
  expect([...next.with(new Map([['b', 2]])).keys()]).toEqual(['a', 'b', 'c', 'd'])
  const many = VersionedMap.of(new Map(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, index])))
  const few = many.with(new Map(Array.from({ length: 4_000 }, (_, index) => [`k${index}`, undefined])))
  expect(few.size).toBe(1_000)
  // It is made anew, so a key that comes back is the last one.
  expect([...few.with(new Map([['k0', 0]])).keys()].at(-1)).toBe('k0')
  expect(many.size).toBe(5_000)
})
