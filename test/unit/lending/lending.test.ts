import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Lending, lentForMs } from '../../../src/lending/lending.ts'
import { destinationId, SimulatedGroup } from './simulated-group.ts'

const quarter = { share: 0.25 }
const four = [quarter, quarter, quarter, quarter]

function groupOf(perSecond: number, members = four, burst = 1): SimulatedGroup {
  return new SimulatedGroup({ perSecond, burst }, members)
}

function member(group: SimulatedGroup, index: number) {
  const found = group.members[index]
  if (found === undefined) throw new Error(`there is no member ${index}`)
  return found
}

test('a member with all messages of a destination gets nearly all of its rate', () => {
  const group = groupOf(5, four, 5)
  member(group, 2).waiting = 300
  group.run(70_000)
  expect(group.waiting).toBe(0)
  expect(group.starts.at(-1)).toBeLessThan(1.1 * 60_000)
})

test('a rate of less than a request a second for each member is lent too', () => {
  const group = groupOf(0.5)
  member(group, 0).waiting = 30
  group.run(80_000)
  expect(group.waiting).toBe(0)
  expect(group.starts.at(-1)).toBeLessThan(1.2 * 60_000)
})

test('members that have different amounts are done at about the same time', () => {
  const group = groupOf(5, four, 5)
  for (const [index, count] of [97, 83, 66, 54].entries()) member(group, index).waiting = count
  group.run(80_000)
  expect(group.waiting).toBe(0)
  expect(group.starts.at(-1)).toBeLessThan(1.1 * 60_000)
})

test('the parts never add up to more than the whole, and a lender never gives all of its own', () => {
  const group = groupOf(20)
  member(group, 0).waiting = 400
  member(group, 1).waiting = 50
  group.run(20_000, () => {
    expect(group.parts).toBeLessThanOrEqual(1 + 1e-9)
    expect(Math.min(...group.members.map(({ part }) => part))).toBeGreaterThan(0)
  })
  expect(member(group, 0).part).toBeGreaterThan(0.6)
})

test('a lender that has messages again gets its part back within seconds', () => {
  const group = groupOf(8)
  member(group, 0).waiting = 2_000
  group.run(10_000)
  expect(member(group, 3).part).toBeLessThan(0.02)
  member(group, 3).waiting = 1_000
  group.run(lentForMs + 500)
  expect(member(group, 3).part).toBeGreaterThanOrEqual(0.25)
  expect(member(group, 0).part).toBeLessThanOrEqual(0.75)
})

test('what was lent to a member that died comes back', () => {
  const group = groupOf(8)
  member(group, 0).waiting = 1_000
  group.run(10_000)
  member(group, 0).isAsleep = true
  group.run(lentForMs + 3_000)
  for (const index of [1, 2, 3]) expect(member(group, index).part).toBeCloseTo(0.25, 9)
})

test('what a member has borrowed from one that died ends', () => {
  const group = groupOf(8)
  member(group, 0).waiting = 1_000
  group.run(10_000)
  for (const index of [1, 2, 3]) member(group, index).isAsleep = true
  group.run(lentForMs)
  expect(member(group, 0).part).toBeCloseTo(0.25, 9)
})

test('members that know nothing of lending keep their part, and the others lend to each other', () => {
  const group = groupOf(8)
  member(group, 1).isAsleep = true
  member(group, 0).waiting = 1_000
  group.run(10_000)
  expect(member(group, 1).part).toBe(0.25)
  expect(member(group, 0).part).toBeGreaterThan(0.7)
  expect(group.parts).toBeLessThanOrEqual(1 + 1e-9)
})

test('a new assignment ends what was borrowed, and nothing is lent across generations', () => {
  const group = groupOf(8, [{ share: 0.5 }, { share: 0.5 }])
  member(group, 0).waiting = 1_000
  group.run(10_000)
  expect(member(group, 0).part).toBeGreaterThan(0.9)
  member(group, 0).assign(0.4, 2)
  expect(member(group, 0).part).toBeCloseTo(0.4, 9)
  group.run(10_000)
  expect(member(group, 0).part).toBeCloseTo(0.4, 9)
  member(group, 1).assign(0.6, 2)
  group.run(10_000)
  expect(member(group, 0).part).toBeGreaterThan(0.9)
})

test('a member that came back under its old name lends nothing until the loans of its former process are over', () => {
  const options = { waiting: () => [], needOf: () => 0, isSpare: () => true, lowered: () => undefined }
  const lending = new Lending({ ...options, id: 'lender', lentUntilMs: lentForMs })
  lending.assigned(0.5, 1)
  const question = {
    from: 'borrower',
    generation: 1,
    wants: new Map([[destinationId, 9]]),
    answers: new Map(),
  }
  lending.take({ ...question, number: 1 }, 1_000)
  expect(lending.look(1_000)).toBeUndefined()
  expect(0.5 + lending.differenceOf(destinationId, 1_000)).toBeCloseTo(0.01, 9)
  lending.take({ ...question, number: 2 }, lentForMs)
  expect(lending.look(lentForMs)?.answers.get('borrower')?.number).toBe(2)
})

test('a member with ten thousand limited destinations asks for few at a time, and for each in its turn', () => {
  const ids = Array.from({ length: 10_000 }, (_, index) => `destination-${index}`)
  const lending = new Lending({
    id: 'borrower',
    waiting: () => ids,
    needOf: () => 7,
    isSpare: () => false,
    lowered: () => undefined,
  })
  lending.assigned(0.5, 1)
  const asked = new Set<string>()
  let records = 0
  for (let nowMs = 0; nowMs < 50_000; nowMs += 500) {
    const record = lending.look(nowMs)
    if (record === undefined) continue
    records++
    expect(record.wants.size).toBeLessThanOrEqual(200)
    for (const id of record.wants.keys()) asked.add(id)
  }
  expect(records).toBe(50)
  expect(asked.size).toBe(10_000)
})

test('a lender writes bounded records however many members ask for however much', () => {
  const lending = new Lending({
    id: 'lender',
    waiting: () => [],
    needOf: () => 0,
    isSpare: () => true,
    lowered: () => undefined,
  })
  lending.assigned(0.5, 1)
  for (let borrower = 0; borrower < 50; borrower++) {
    const wants = new Map(Array.from({ length: 200 }, (_, index) => [`${borrower}-${index}`, 5]))
    lending.take({ from: `borrower-${borrower}`, generation: 1, number: 1, wants, answers: new Map() }, 0)
  }
  const loans = (): number =>
    [...(lending.look(0)?.answers.values() ?? [])].reduce((sum, { parts }) => sum + parts.size, 0)
  expect(loans()).toBe(400)
  // The others are answered in the next records.
  expect(loans()).toBe(400)
})

/** What happens to a group: bursts of messages for members, and members that are suspended or die. */
const scenes = fc.record({
  perSecond: fc.constantFrom(0.4, 1, 5, 40, 200),
  burst: fc.integer({ min: 1, max: 20 }),
  members: fc.array(
    fc.record({
      units: fc.integer({ min: 1, max: 5 }),
      lookEveryMs: fc.constantFrom(500, 525, 1_000, 2_500, 6_000),
      writeMs: fc.constantFrom(25, 200, 1_500, 5_000),
    }),
    { minLength: 2, maxLength: 6 },
  ),
  events: fc.array(
    fc.record({
      atMs: fc.integer({ min: 0, max: 60_000 }),
      member: fc.nat(5),
      what: fc.oneof(
        fc.integer({ min: 1, max: 400 }).map((messages) => ({ messages })),
        fc.constantFrom(1_000, 4_000, 9_000).map((sleepMs) => ({ sleepMs })),
        fc.record({ move: fc.nat(5) }),
      ),
    }),
    { maxLength: 25 },
  ),
})

type Event = { readonly messages?: number; readonly sleepMs?: number; readonly move?: number }

test('whatever happens, no time has more starts than the rate allows, and all that waits is started', () => {
  fc.assert(
    fc.property(scenes, ({ perSecond, burst, members, events }) => {
      const units = members.map((one) => one.units)
      const all = units.reduce((sum, count) => sum + count, 0)
      const settings = members.map((one) => ({ ...one, share: one.units / all }))
      const group = new SimulatedGroup({ perSecond, burst }, settings)
      const awakeAtMs = members.map(() => 0)
      let generation = 1
      const happen = (index: number, { messages, sleepMs, move }: Event): void => {
        if (messages !== undefined) member(group, index).waiting += Math.min(messages, 30 * perSecond)
        if (sleepMs !== undefined) awakeAtMs[index] = group.nowMs + sleepMs
        // A member that is asleep would first be expelled, and a member never loses its last unit here.
        if (move === undefined || group.members.some(({ isAsleep }) => isAsleep) || (units[index] ?? 0) < 2)
          return
        units[index] = (units[index] ?? 0) - 1
        units[move % units.length] = (units[move % units.length] ?? 0) + 1
        generation++
        for (const [other, count] of units.entries()) member(group, other).assign(count / all, generation)
      }
      const left = events.toSorted((a, b) => a.atMs - b.atMs)
      const step = (): void => {
        for (; left.length > 0 && (left[0]?.atMs ?? 0) <= group.nowMs; left.shift())
          happen((left[0]?.member ?? 0) % members.length, left[0]?.what ?? {})
        for (const [index, one] of group.members.entries())
          one.isAsleep = group.nowMs < (awakeAtMs[index] ?? 0)
      }
      group.run(70_000, step)
      // Each member may start its burst at once, at least one delivery. What it borrows ends within its
      // lane's next look.
      expect(group.excess).toBeLessThanOrEqual(burst + members.length + 0.5 * perSecond + 1)
      const mostS = Math.max(
        ...group.members.map(({ waiting }, index) => (waiting * all) / (units[index] ?? 1)),
      )
      group.run((mostS / perSecond) * 1_000 + 2 * lentForMs + 10_000, step)
      expect(group.waiting).toBe(0)
    }),
  )
})
