import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { blockSize } from '../../../src/waiting/block.ts'
import { UnitIndex } from '../../../src/waiting/unit-index.ts'

/** What the index has to know of a record, one by one. */
type Known = { readonly code: number; state: 'waits' | 'taken' | 'done' }

type Step =
  | { readonly do: 'push'; readonly code: number; readonly count: number }
  | { readonly do: 'skip'; readonly count: number }
  | { readonly do: 'take'; readonly code: number }
  | { readonly do: 'finishTaken' | 'putBack' | 'finish'; readonly at: number }

const codes = fc.integer({ min: 4, max: 12 })
const counts = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 3 * blockSize }))
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('push' as const), code: codes, count: counts }),
    fc.record({ do: fc.constant('skip' as const), count: counts }),
    fc.record({ do: fc.constant('take' as const), code: codes }),
    fc.record({
      do: fc.constantFrom('finishTaken' as const, 'putBack' as const, 'finish' as const),
      at: fc.nat(),
    }),
  ),
  { maxLength: 60 },
)

/** Runs the steps on the index and on a plain list, and compares both after each step. */
function run(start: number, all: readonly Step[]): void {
  const index = new UnitIndex(start)
  const known = new Map<number, Known>()
  let end = start
  const inState = (state: Known['state']) => [...known].filter(([, one]) => one.state === state)
  for (const step of all) {
    switch (step.do) {
      case 'push':
        index.push(step.code, step.count)
        for (let n = 0; n < step.count; n++) known.set(end++, { code: step.code, state: 'waits' })
        break
      case 'skip':
        index.skip(step.count)
        end += step.count
        break
      case 'take': {
        const first = inState('waits').find(([, { code }]) => code === step.code)
        expect(index.firstOf(step.code)).toBe(first?.[0] ?? -1)
        expect(index.take(step.code)).toBe(first?.[0] ?? -1)
        if (first !== undefined) first[1].state = 'taken'
        break
      }
      case 'finishTaken':
      case 'putBack':
      case 'finish': {
        const candidates = inState(step.do === 'finish' ? 'waits' : 'taken')
        const chosen = candidates[step.at % Math.max(1, candidates.length)]
        if (chosen === undefined) break
        index[step.do](chosen[0])
        chosen[1].state = step.do === 'putBack' ? 'waits' : 'done'
        break
      }
    }
    const undone = [...known].filter(([, { state }]) => state !== 'done')
    expect(index.end).toBe(end)
    expect(index.undone).toBe(undone.length)
    expect(index.untaken).toBe(inState('waits').length)
    expect(index.head).toBe(undone[0]?.[0] ?? end)
    for (const code of index.undoneCodes())
      expect(index.undoneOf(code)).toBe(undone.filter(([, one]) => one.code === code).length)
    expect(new Set(index.undoneCodes())).toEqual(new Set(undone.map(([, { code }]) => code)))
    expect(new Set(index.codes())).toEqual(new Set(inState('waits').map(([, { code }]) => code)))
  }
}

test('the index agrees with a plain list, whatever is done', () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 2 * blockSize }), steps, run), { numRuns: 150 })
})

test('a million records of one destination take less than 4 bytes each, as many of a thousand less than 8', () => {
  const one = new UnitIndex(0)
  one.push(4, 1_000_000)
  expect(one.bytes / 1_000_000).toBeLessThan(4)
  const many = new UnitIndex(0)
  for (let n = 0; n < 1_000_000; n++) many.push(4 + 4 * (n % 1_000))
  expect(many.bytes / 1_000_000).toBeLessThan(8)
  for (let n = 0; n < 1_000; n++) expect(many.take(4 + 4 * n)).toBe(n)
  for (let n = 0; n < 1_000; n++) expect(many.take(4 + 4 * n)).toBe(1_000 + n)
})

test('what is done at the start of the log frees its blocks', () => {
  const index = new UnitIndex(0)
  index.push(4, 10 * blockSize)
  for (let n = 0; n < 9 * blockSize; n++) index.finishTaken(index.take(4))
  expect(index.head).toBe(9 * blockSize)
  expect(index.block(8)).toBeUndefined()
  expect(index.block(9)).toBeDefined()
})
