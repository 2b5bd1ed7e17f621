import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  judgePlace,
  judgeSettled,
  type LogFacts,
  type LogPlace,
} from '../../../../src/kafka/fetch/positions.ts'

const topicId = 'AAAAAAAAAAAAAAAAAAAAAA'
const otherId = 'BBBBBBBBBBBBBBBBBBBBBB'

function place(offset: number, remembered: Partial<LogPlace> = {}): LogPlace {
  return { topic: 'events', partition: 0, offset, ...remembered }
}

function log(start: number, end: number, facts: Partial<LogFacts> = {}): LogFacts {
  return { start, end, topicId, epochEnd: undefined, ...facts }
}

const epoch = (leaderEpoch: number, endOffset: number) => ({ epochEnd: { leaderEpoch, endOffset } })
const settledEpoch = (leaderEpoch: number, endOffset: number) => ({
  settledEpochEnd: { leaderEpoch, endOffset },
})

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
    // The deleted records may be of any epoch.
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

describe('what is remembered as settled behind a place', () => {
  const known = place(50, { topicId, leaderEpoch: 3, settled: { last: 70, leaderEpoch: 4 } })

  test.each([
    ['nothing is', place(50, { leaderEpoch: 3 }), log(0, 60, epoch(3, 60))],
    ['the epoch of its last record is the latest', known, log(0, 100, settledEpoch(4, 100))],
    ['that epoch ended behind it', known, log(0, 100, settledEpoch(4, 71))],
    ['the replicas are behind, and the leader has it', known, log(0, 60, settledEpoch(4, 71))],
  ])('holds where %s', (_what, one, facts) => {
    expect(judgeSettled(one, facts)).toEqual({ below: Infinity, isCutOff: false })
  })

  test.each([
    ['that epoch ended before its last record', settledEpoch(4, 70), 70],
    ['that epoch ended far before it', settledEpoch(4, 55), 55],
    ['the log has an earlier epoch, and then later ones', settledEpoch(3, 60), 50],
    ['the log has no such epoch', settledEpoch(-1, -1), 50],
  ])('is cut off where %s', (_what, facts, below) => {
    expect(judgeSettled(known, log(0, 100, facts))).toEqual({ below, isCutOff: true })
  })

  const unknown = place(50, { topicId, leaderEpoch: 3, settled: { last: 70, leaderEpoch: -1 } })

  test.each([
    ['the epoch of the place goes on', epoch(3, 100), 100, Infinity],
    ['the epoch of the place has ended before', epoch(3, 60), 100, 60],
    ['the log ends before', epoch(3, 100), 60, 60],
    ['nobody tells of epochs', {}, 100, Infinity],
    ['nobody tells of epochs, and the log ends before', {}, 60, 60],
  ])(
    'holds as far as is certain where a version before has not left its epoch, and %s',
    (_what, facts, end, below) => {
      expect(judgeSettled(unknown, log(0, end, facts))).toEqual({ below, isCutOff: false })
    },
  )
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
