import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Mark, Marks } from '../../../src/backfill/marks.ts'
import type { Standing } from '../../../src/backfill/standing.ts'
import { standingsAfter } from '../../../src/growth/standings.ts'
import type { Change } from '../../../src/growth/plan.ts'

const change: Change = {
  from: { partitions: 3, generation: 1 },
  to: { partitions: 5, generation: 2 },
}
const connection = { destinationId: 'crm', spaceId: 'space' }

function marksOf(standings: readonly (Standing | undefined)[], isTracked = true): Marks {
  const marks = new Marks(3)
  for (const [unit, standing] of standings.entries()) {
    if (standing !== undefined) marks.take({ kind: 'unit', ...connection, unit, standing }, unit)
    if (isTracked) marks.take({ kind: 'tracked', unit }, 10 + unit)
  }
  return marks
}

function standingsOf(written: readonly Mark[]): Standing[] {
  return written.flatMap((mark) => (mark.kind === 'unit' ? [mark.standing] : []))
}

const told = (upTo: number): Standing => ({ kind: 'told', upTo })
const syncing = (withLeft: boolean): Standing => ({
  kind: 'syncing',
  upTo: 1,
  withLeft,
  after: null,
  sent: 3,
})

test.each<[string, (Standing | undefined)[], Standing]>([
  ['a destination that was told all stays told', [told(7), told(5), told(9)], told(5)],
  ['one that is being told begins anew', [told(7), syncing(false), told(9)], { kind: 'new' }],
  ['and also with those who have left', [told(7), syncing(true), { kind: 'new' }], { kind: 'parted' }],
  ['one that was left out stays so', [told(0), { kind: 'left_out' }, told(0)], { kind: 'left_out' }],
  ['one of which a unit has written nothing is new there', [told(0), undefined, told(0)], { kind: 'new' }],
])('%s', (_what, before, expected) => {
  const written = standingsAfter(marksOf(before), change)
  expect(standingsOf(written)).toEqual(Array.from({ length: 5 }, () => expected))
  expect(written.filter(({ kind }) => kind === 'tracked')).toEqual([
    { kind: 'tracked', unit: 3 },
    { kind: 'tracked', unit: 4 },
  ])
})

test('where nobody has written how destinations stand, nothing is written', () => {
  expect(standingsAfter(marksOf([undefined, undefined, undefined], false), change)).toEqual([])
})

test('written in part and then again, it comes to the same', () => {
  const standing = fc.constantFrom(
    told(0),
    told(4),
    syncing(true),
    syncing(false),
    {
      kind: 'parted',
    } as const,
    { kind: 'new' } as const,
    { kind: 'left_out' } as const,
  )
  fc.assert(
    fc.property(fc.tuple(standing, standing, standing), fc.nat({ max: 5 }), (before, count) => {
      const marks = marksOf(before)
      const whole = standingsAfter(marks, change)
      for (const [index, mark] of whole.slice(0, count).entries()) marks.take(mark, 100 + index)
      expect(standingsAfter(marks, change)).toEqual(whole)
    }),
  )
})
