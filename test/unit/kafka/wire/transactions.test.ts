import { describe, expect, test } from 'vitest'
import type { FetchedRecord } from '../../../../src/kafka/wire/record-batch.ts'
import { withoutAborted } from '../../../../src/kafka/wire/transactions.ts'

type Kind = 'plain' | 'sent' | 'abort' | 'commit' | 'gap'

/**
 * Returns a record of this kind. A record of the kind `sent` belongs to a transaction of this producer.
 * Records of all other kinds except `plain` are markers.
 */
function record(offset: number, kind: Kind, producerId = '1'): FetchedRecord {
  const isControlRecord = kind === 'abort' || kind === 'commit' || kind === 'gap'
  const keys = {
    abort: [0, 0, 0, 0],
    commit: [0, 0, 0, 1],
    gap: undefined,
    plain: [0, 0, 0, 0],
    sent: [0, 0, 0, 0],
  }
  const key = keys[kind]
  return {
    offset,
    timestampMs: 0,
    key: key === undefined ? null : Buffer.from(key),
    value: null,
    headers: {},
    leaderEpoch: 0,
    isControlRecord,
    batchContext: { producerId, inTransaction: kind !== 'plain' },
  }
}

type Aborted = { producerId: string; firstOffset: number }[]

function given(records: readonly FetchedRecord[], aborted: Aborted = [], from = 0): number[] {
  return withoutAborted(records, aborted, from).map(({ offset }) => offset)
}

describe('of a fetch are given on', () => {
  test('all records, as they are, where nothing is to be left out', () => {
    const records = [record(5, 'plain'), record(9, 'sent')]
    expect(withoutAborted(records, [], 5)).toBe(records)
  })

  test('none before the offset that was asked for', () => {
    expect(given([record(4, 'plain'), record(5, 'plain')], [], 5)).toEqual([5])
  })

  test('no markers, and no places that compaction has left empty', () => {
    expect(given([record(0, 'sent'), record(1, 'commit'), record(2, 'gap'), record(3, 'plain')])).toEqual([
      0, 3,
    ])
  })
})

describe('what belongs to an aborted transaction is left out', () => {
  test('of several that are open together, each up to its own marker', () => {
    const records = [
      record(0, 'sent', '1'),
      record(1, 'sent', '2'),
      record(2, 'abort', '1'),
      record(3, 'sent', '2'),
      record(4, 'sent', '1'),
      record(5, 'abort', '2'),
      record(6, 'sent', '2'),
      record(7, 'plain', '1'),
    ]
    const aborted = [
      { producerId: '2', firstOffset: 1 },
      { producerId: '1', firstOffset: 0 },
    ]
    expect(given(records, aborted)).toEqual([4, 6, 7])
  })

  test('of one that began before the fetch', () => {
    const aborted = [{ producerId: '1', firstOffset: 3 }]
    expect(given([record(9, 'sent'), record(10, 'abort'), record(11, 'sent')], aborted, 9)).toEqual([11])
  })

  test('of two of one producer, and not what it committed between them', () => {
    const records = [
      record(0, 'sent'),
      record(1, 'abort'),
      record(2, 'sent'),
      record(3, 'commit'),
      record(4, 'sent'),
      record(5, 'abort'),
    ]
    const aborted = [0, 4].map((firstOffset) => ({ producerId: '1', firstOffset }))
    expect(given(records, aborted)).toEqual([2])
  })

  test('but no plain record of that producer, and none whose key looks like a marker', () => {
    const records = [record(0, 'sent'), record(1, 'plain'), record(2, 'sent', '2'), record(3, 'abort')]
    expect(given(records, [{ producerId: '1', firstOffset: 0 }])).toEqual([1, 2])
  })

  test('also behind the marker of a commit, which ends no aborted one', () => {
    const records = [record(0, 'sent', '1'), record(1, 'commit', '1'), record(2, 'sent', '1')]
    expect(given(records, [{ producerId: '1', firstOffset: 0 }])).toEqual([])
  })
})
