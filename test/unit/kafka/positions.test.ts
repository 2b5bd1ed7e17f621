import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { judgePlace, type LogFacts, type LogPlace } from '../../../src/kafka/positions.ts'

const topicId = 'AAAAAAAAAAAAAAAAAAAAAA'
const otherId = 'BBBBBBBBBBBBBBBBBBBBBB'

function place(offset: number, remembered: Partial<LogPlace> = {}): LogPlace {
  return { topic: 'events', partition: 0, offset, ...remembered }
}

function log(start: number, end: number, facts: Partial<LogFacts> = {}): LogFacts {
  return { start, end, topicId, epochEnd: undefined, ...facts }
}

const epoch = (leaderEpoch: number, endOffset: number) => ({ epochEnd: { leaderEpoch, endOffset } })

describe('a place in a log', () => {
  test.each([
    ['at its beginning', 10],
    ['in its midst', 50],
    ['at its end', 100],
  ])('%s is gone on from', (_where, offset) => {
    expect(judgePlace(place(offset, { topicId }), log(10, 100))).toEqual({ kind: 'goOn', offset })
  })

  test('that was never read is its beginning', () => {
    expect(judgePlace(place(-1), log(10, 100))).toEqual({ kind: 'goOn', offset: 10 })
  })

  test('before its beginning: retention was faster', () => {
    const found = { kind: 'retentionWon', from: 4, to: 10 }
    expect(judgePlace(place(4), log(10, 100))).toEqual(found)
    // What is deleted may have been of any epoch.
    expect(judgePlace(place(4, { leaderEpoch: 2 }), log(10, 100, epoch(2, 10)))).toEqual(found)
  })

  test('behind its end: it lost records, and nobody knows from where on they are others', () => {
    expect(judgePlace(place(101), log(10, 100))).toEqual({
      kind: 'truncated',
      at: 10,
      from: 101,
      reason: 'shorter',
    })
  })

  test('that is remembered of a topic with another id is nowhere', () => {
    expect(judgePlace(place(50, { topicId: otherId }), log(0, 100))).toEqual({
      kind: 'truncated',
      at: 0,
      from: 50,
      reason: 'recreated',
    })
  })

  test.each([
    ['the broker', place(50, { topicId }), { topicId: undefined }],
    ['the commit', place(50), {}],
  ])('is taken for the same where %s knows no id', (_who, where, facts) => {
    expect(judgePlace(where, log(0, 100, facts))).toMatchObject({ kind: 'goOn' })
  })
})

describe('where the epoch of the last record that was read is known', () => {
  const read = place(50, { topicId, leaderEpoch: 3 })

  test.each([
    ['is the latest', epoch(3, 100)],
    ['ended behind the place', epoch(3, 60)],
    ['ended at the place', epoch(3, 50)],
  ])('and %s, it is gone on', (_what, facts) => {
    expect(judgePlace(read, log(0, 100, facts))).toEqual({ kind: 'goOn', offset: 50 })
  })

  test.each([
    ['that epoch ended before the place', epoch(3, 40), 100, 40, 'diverged'],
    ['an earlier one is the last before it', epoch(2, 40), 100, 40, 'diverged'],
    ['the log ends there', epoch(3, 40), 40, 40, 'shorter'],
    ['the log has no such epoch', epoch(-1, -1), 100, 5, 'diverged'],
    ['the record before the place is of an earlier one', epoch(2, 70), 100, 5, 'diverged'],
    ['the log begins behind where they part', epoch(3, 3), 100, 5, 'diverged'],
  ] as const)('and %s, the logs part there, or who knows where', (_what, facts, end, at, reason) => {
    expect(judgePlace(read, log(5, end, facts))).toEqual({ kind: 'truncated', at, from: 50, reason })
  })

  test('and the replicas are behind, it is gone on: the leader has it', () => {
    expect(judgePlace(read, log(0, 45, epoch(3, 60)))).toEqual({ kind: 'goOn', offset: 50 })
  })
})

test('whatever is known: it is gone on within the log, and nothing is passed over but what the log has no more', () => {
  const number = fc.integer({ min: -1, max: 30 })
  const id = fc.constantFrom(undefined, topicId, otherId)
  fc.assert(
    fc.property(
      fc.record({ offset: number, leaderEpoch: number, remembered: id }),
      fc.record({
        start: fc.nat(10),
        length: fc.nat(20),
        id,
        epochEnd: fc.option(fc.tuple(number, number), { nil: undefined }),
      }),
      ({ offset, leaderEpoch, remembered }, { start, length, id: found, epochEnd }) => {
        const facts = log(start, start + length, {
          topicId: found,
          epochEnd: epochEnd && { leaderEpoch: epochEnd[0], endOffset: epochEnd[1] },
        })
        const judged = judgePlace(place(offset, { leaderEpoch, topicId: remembered }), facts)
        switch (judged.kind) {
          case 'goOn':
            expect(judged.offset).toBe(offset < 0 ? start : offset)
            expect(judged.offset).toBeGreaterThanOrEqual(start)
            break
          case 'retentionWon':
            expect(judged).toMatchObject({ from: offset, to: start })
            expect(offset).toBeLessThan(start)
            break
          case 'truncated':
            expect(judged.from).toBe(offset)
            expect(judged.at).toBeGreaterThanOrEqual(start)
        }
      },
    ),
    { numRuns: 2_000 },
  )
})
