import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assignPartitions, foreignTopics, type Subscriber } from '../../../../src/kafka/group/assignment.ts'

const member = (
  memberId: string,
  topics: readonly string[],
  claim: Partial<Subscriber['claim']> = {},
): Subscriber => ({
  memberId,
  topics,
  claim: { units: [], sinceMs: 0, busy: [], busyWithState: [], ...claim },
})

const given = (members: readonly Subscriber[], partitions = 4) =>
  Object.fromEntries(
    [...assignPartitions(members, partitions)].map(([memberId, topics]) => [
      memberId,
      Object.fromEntries(topics),
    ]),
  )

describe('units', () => {
  test('are shared out whole, whatever exists of the topics', () => {
    expect(given([member('a', ['events', 'retry']), member('b', ['events', 'retry'])])).toEqual({
      a: { events: [0, 1], retry: [0, 1] },
      b: { events: [2, 3], retry: [2, 3] },
    })
  })

  test('stay where they are', () => {
    const [a, b] = [member('a', ['events'], { units: [1, 3], sinceMs: 5 }), member('b', ['events'])]
    expect(given([a, b])).toEqual({ a: { events: [1, 3] }, b: { events: [0, 2] } })
  })

  test('are as many as the members say, and else as many as the leader has', () => {
    expect(given([member('a', ['events'], { partitions: 2 })])).toEqual({ a: { events: [0, 1] } })
  })

  test('are read by their owners alone, also where others read a topic more', () => {
    expect(given([member('a', ['events', 'retry.1s']), member('b', ['events', 'retry.1m'])])).toEqual({
      a: { events: [0, 1], 'retry.1s': [0, 1] },
      b: { events: [2, 3], 'retry.1m': [2, 3] },
    })
  })
})

describe('two installations in one group', () => {
  const ours = [member('a', ['x.events', 'x.retry']), member('c', ['x.events', 'x.retry'])]
  const theirs = member('b', ['y.events'], { partitions: 3 })

  test('get their own topics', () => {
    expect(given([...ours, theirs])).toEqual({
      a: { 'x.events': [0, 1], 'x.retry': [0, 1] },
      b: { 'y.events': [0, 1, 2] },
      c: { 'x.events': [2, 3], 'x.retry': [2, 3] },
    })
  })

  test('find each other; one whose ladder differs is none', () => {
    expect(foreignTopics([...ours, theirs], ['x.events'])).toEqual(['y.events'])
    expect(foreignTopics([...ours, theirs], ['y.events'])).toEqual(['x.events', 'x.retry'])
    expect(foreignTopics([...ours, member('d', ['x.retry'])], ['x.events'])).toEqual([])
  })
})

test('each unit is given to exactly one member, with all topics that the member reads', () => {
  const topic = fc.constantFrom('a', 'b', 'c', 'd')
  const subscriber = fc.record({
    topics: fc.uniqueArray(topic),
    units: fc.array(fc.nat({ max: 6 })),
    sinceMs: fc.nat({ max: 3 }),
  })
  fc.assert(
    fc.property(
      fc.array(subscriber, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 7 }),
      (all, count) => {
        const members = all.map(({ topics, ...claim }, index) =>
          member(`m${index}`, ['events', ...topics], claim),
        )
        const assignment = assignPartitions(members, count)
        const owned = members.flatMap(({ memberId, topics }) => {
          const ofMember = assignment.get(memberId) ?? new Map<string, number[]>()
          const units = ofMember.get('events') ?? []
          expect([...ofMember]).toEqual(units.length === 0 ? [] : topics.map((name) => [name, units]))
          return units
        })
        expect(owned.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, id) => id))
      },
    ),
  )
})
