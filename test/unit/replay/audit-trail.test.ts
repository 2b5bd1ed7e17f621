import { expect, test } from 'vitest'
import { AuditTrail } from '../../../src/replay/audit-trail.ts'
import type { AuditEntry } from '../../../src/replay/job.ts'

const stopped: AuditEntry = {
  atMs: 0,
  by: 'eve',
  action: 'stopped',
  job: 'job-1',
  records: 1,
  detail: 'as asked',
}

function trailOf(entries: Iterable<AuditEntry>): AuditTrail {
  const trail = new AuditTrail()
  let place = 0
  for (const entry of entries) trail.take(entry, place++)
  return trail
}

test('a thousand stops and resumes by the same are two entries, with their number and their times', () => {
  const trail = trailOf(
    Array.from({ length: 1_020 }, (_, index): AuditEntry => ({
      ...stopped,
      atMs: index,
      action: index % 2 === 0 ? 'stopped' : 'resumed',
      records: index,
    })),
  )
  expect(trail.page({}).entries).toEqual([
    { ...stopped, action: 'resumed', atMs: 1, place: 1, count: 510, lastMs: 1_019, records: 1_019 },
    { ...stopped, atMs: 0, place: 0, count: 510, lastMs: 1_018, records: 1_018 },
  ])
})

test.each([
  ['by another', { by: 'ann' }],
  ['of another replay', { job: 'job-2' }],
  ['with other words', { detail: 'the destination is off' }],
  ['an hour later', { atMs: 3_600_000 }],
])('the same %s is another entry', (_what, other) => {
  const { entries } = trailOf([stopped, { ...stopped, ...other }]).page({})
  expect(entries.map(({ count }) => count)).toEqual([1, 1])
})

/** Entries of one person, none of which is equal to another. */
function* manyOf(by: string, count: number, fromMs = 0): Generator<AuditEntry> {
  for (let index = 0; index < count; index++)
    yield { ...stopped, by, atMs: fromMs + index, job: `job-${fromMs + index}` }
}

test('pages by the cursor have each entry once, newest first, also while entries come', () => {
  const trail = trailOf(manyOf('ann', 25))
  const found: number[] = []
  let before: number | undefined
  do {
    const page = trail.page({ limit: 10, ...(before !== undefined && { before }) })
    found.push(...page.entries.map(({ place }) => place))
    before = page.next
    trail.take({ ...stopped, by: 'eve', atMs: 100 }, 100 + found.length)
  } while (before !== undefined)
  expect(found).toEqual(Array.from({ length: 25 }, (_, index) => 24 - index))
})

test('a time range has the entries that were done in it, also those that were folded into an earlier one', () => {
  const trail = trailOf([stopped, { ...stopped, atMs: 50 }, { ...stopped, by: 'ann', atMs: 80 }])
  const byOf = (range: object) => trail.page(range).entries.map(({ by }) => by)
  expect(byOf({ fromMs: 50 })).toEqual(['ann', 'eve'])
  expect(byOf({ fromMs: 51 })).toEqual(['ann'])
  expect(byOf({ toMs: 80 })).toEqual(['eve'])
  expect(byOf({ job: 'job-2' })).toEqual([])
})

test('nobody pushes out what others did, however much they do, and the trail says since when it is complete', () => {
  const trail = trailOf([...manyOf('ann', 2_000), ...manyOf('eve', 100_000, 10_000), ...manyOf('ben', 1)])
  const { entries } = trail.page({})
  const countOf = (by: string) => entries.filter((entry) => entry.by === by).length
  expect(countOf('ann')).toBe(2_000)
  expect(countOf('ben')).toBe(1)
  expect(entries.length).toBeLessThanOrEqual(20_000)
  expect(countOf('eve')).toBeGreaterThan(15_000)
  const oldest = entries.findLast(({ by }) => by === 'eve')
  expect(trail.completeSinceMs).toBe((oldest?.atMs ?? 0) - 1)
  expect(trailOf(manyOf('ann', 20_000)).completeSinceMs).toBeUndefined()
})

test('of more people than there are entries, the oldest are forgotten', () => {
  const trail = new AuditTrail()
  for (let index = 0; index < 30_000; index++)
    trail.take({ ...stopped, atMs: index, by: `w-${index}` }, index)
  expect(trail.all.length).toBeLessThanOrEqual(20_000)
  expect(trail.all.length).toBeGreaterThan(10_000)
  expect(trail.all.at(-1)?.by).toBe('w-29999')
})
