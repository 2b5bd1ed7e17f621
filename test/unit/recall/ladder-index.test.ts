import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { LadderCodes, LadderIndex } from '../../../src/recall/ladder-index.ts'

const plenty = () => ({ blocks: 1_000 })

function countsOf(codes: LadderCodes): Record<string, number> {
  return Object.fromEntries([...codes.ids()].map((id) => [id, codes.countOf(id)]))
}

test('what was written, read, taken early and passed is counted as a plain list would', () => {
  const most = 3_000
  const offset = fc.integer({ min: 100, max: most })
  const steps = fc.array(
    fc.oneof(
      fc.record({ do: fc.constant('learn' as const), offset, id: fc.constantFrom('crm', 'erp', undefined) }),
      fc.record({ do: fc.constant('take' as const), offset }),
      fc.record({ do: fc.constant('pass' as const), offset }),
      fc.record({ do: fc.constant('reach' as const), offset }),
    ),
    { maxLength: 60 },
  )
  fc.assert(
    fc.property(steps, (all) => {
      const codes = new LadderCodes(10)
      const index = new LadderIndex(100, codes, plenty())
      /** What is known, by offset. */
      const known = new Map<number, string | undefined>()
      let [from, end] = [100, 100]
      for (const step of all) {
        if (step.do === 'learn') index.learn(step.offset, step.id)
        else if (step.do === 'take') index.take(step.offset)
        else if (step.do === 'pass') index.pass(step.offset)
        else index.reachesTo(step.offset)
        const isRecord = step.do === 'learn' || step.do === 'take'
        end = Math.max(end, isRecord ? step.offset + 1 : step.offset)
        if (step.do === 'pass') from = Math.max(from, step.offset)
        if (step.do === 'learn' && step.offset >= from && !known.has(step.offset))
          known.set(step.offset, step.id)
        if (step.do === 'take' && step.offset >= from) known.set(step.offset, undefined)
        for (const one of known.keys()) if (one < from) known.delete(one)
      }
      const ids = [...known.values()].filter((id) => id !== undefined)
      const counts = Object.fromEntries(Map.groupBy(ids, (id) => id))
      expect(countsOf(codes)).toEqual(
        Object.fromEntries(Object.entries(counts).map(([id, of]) => [id, of?.length])),
      )
      expect(index.unknown).toBe(end - from - known.size)
      const next = index.nextUnknown()
      let first = from
      while (first < end && known.has(first)) first++
      let last = first
      while (last < end && !known.has(last)) last++
      expect(next).toEqual(first < end ? { from: first, to: last } : undefined)
      index.clear()
      expect([countsOf(codes), index.unknown]).toEqual([{}, 0])
    }),
    { numRuns: 500 },
  )
})

test('what there is no room for stays unknown, and has room again when others are passed', () => {
  const codes = new LadderCodes(2)
  const room = { blocks: 1 }
  const index = new LadderIndex(0, codes, room)
  for (const [offset, id] of ['crm', 'erp', 'third', 'crm'].entries()) index.learn(offset, id)
  index.learn(5_000, 'crm')
  expect(countsOf(codes)).toEqual({ crm: 2, erp: 1 })
  expect(index.unknown).toBe(5_001 - 3)
  expect(index.nextUnknown()).toEqual({ from: 2, to: 3 })
  index.pass(4_999)
  expect(room.blocks).toBe(1)
  index.learn(5_000, 'third')
  expect(countsOf(codes)).toEqual({ third: 1 })
  expect(index.unknown).toBe(1)
})
