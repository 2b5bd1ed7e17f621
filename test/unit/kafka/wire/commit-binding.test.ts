import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  believed,
  bindMetadata,
  bindRead,
  describeMoved,
  unbindMetadata,
} from '../../../../src/kafka/wire/commit-binding.ts'
import {
  decodeCommitMetadata,
  encodeCommitMetadata,
  maxRememberedOffsets,
  type OwnerMark,
} from '../../../../src/kafka/wire/commit-metadata.ts'
import { memoryOf } from '../../../../src/kafka/wire/stored-commit.ts'

const home = { groupId: 'sluice', topic: 'sluice.events', partition: 3 }
const topicId = 'AAAAAAAAAAAAAAAAAAAAAA'
const whole: OwnerMark = { isFinal: true, epoch: 7, begunBelow: 90, topicId, settledEpoch: 2 }
/** The settled offsets above the offset 20. */
const settledAbove = [21, 22, 24, 40]

function bound(mark: OwnerMark = whole): string {
  return bindMetadata(encodeCommitMetadata(20, settledAbove, mark), home, 20)
}

function memoryAt(offset: number, metadata: string | null, at = home) {
  return memoryOf(believed({ offset, metadata, leaderEpoch: 2 }, at))
}

const marks = fc.record(
  {
    isFinal: fc.boolean(),
    epoch: fc.nat({ max: 2 ** 32 - 1 }),
    begunBelow: fc.nat({ max: 2 ** 41 }),
    topicId: fc.constant(topicId),
    settledEpoch: fc.nat({ max: 2 ** 31 - 1 }),
  },
  { requiredKeys: ['isFinal', 'epoch'] },
)

test('a commit that is read where it was written is believed as it is', () => {
  fc.assert(
    fc.property(marks, (mark) => {
      const stored = { offset: 20, metadata: bound(mark), leaderEpoch: 2 }
      expect(believed(stored, home)).toBe(stored)
      expect(memoryOf(stored)).toStrictEqual({ settledAbove, ...mark })
    }),
  )
})

test('a full window with all that a commit may have fits into 4,096 characters', () => {
  const offset = Number.MAX_SAFE_INTEGER - maxRememberedOffsets
  const all = Array.from({ length: maxRememberedOffsets }, (_, index) => offset + index)
  const mark = {
    isFinal: true,
    epoch: 2 ** 32 - 1,
    begunBelow: 2 ** 48 - 1,
    topicId,
    settledEpoch: 2 ** 31 - 1,
  }
  const metadata = bindMetadata(encodeCommitMetadata(offset, all, mark), home, offset)
  expect(metadata.length).toBeLessThanOrEqual(4_096)
  expect(memoryAt(offset, metadata)).toEqual({ settledAbove: all, ...mark })
})

describe('a commit that somebody has moved', () => {
  test('lists nothing as settled, wherever it was moved to', () => {
    fc.assert(
      fc.property(marks, fc.nat({ max: 2 ** 40 }), (mark, offset) => {
        fc.pre(offset !== 20)
        const stored = believed({ offset, metadata: bound(mark), leaderEpoch: 2 }, home)
        expect(stored).toMatchObject({ offset, leaderEpoch: -1, moved: { from: 20 } })
        expect(memoryOf(stored)).toMatchObject({ settledAbove: [], isFinal: false, epoch: mark.epoch })
      }),
    )
  })

  test('keeps what holds for its partition at any offset: the epoch, what may have begun, and the topic', () => {
    expect(memoryAt(15, bound())).toStrictEqual({
      settledAbove: [],
      isFinal: false,
      epoch: 7,
      begunBelow: 90,
      topicId,
    })
  })

  test.each([
    ['another partition', { ...home, partition: 4 }],
    ['another topic', { ...home, topic: 'sluice.replays' }],
    ['another group', { ...home, groupId: 'staging' }],
  ])('keeps only the epoch if its metadata is that of %s, even at the same offset', (_what, at) => {
    for (const offset of [20, 15]) {
      expect(memoryAt(offset, bound(), at)).toStrictEqual({ settledAbove: [], isFinal: false, epoch: 7 })
      expect(believed({ offset, metadata: bound() }, at).moved).toEqual({ from: -1 })
    }
  })

  test('is told with both offsets, and with what happens', () => {
    expect(describeMoved({ from: 20 }, 15)).toMatch(
      /moved the commit of this partition from offset 20 to 15.*all records from there are delivered/,
    )
    expect(describeMoved({ from: -1 }, 15)).toMatch(/to offset 15, with the metadata of another partition/)
  })
})

test('a binding that is damaged is not believed', () => {
  const metadata = bound()
  const begins = metadata.indexOf('=@') + 2
  for (let at = begins; at < metadata.length; at++) {
    const damaged = `${metadata.slice(0, at)}${metadata[at] === '1' ? '2' : '1'}${metadata.slice(at + 1)}`
    expect(memoryAt(20, damaged)?.settledAbove).toEqual([])
    expect(memoryAt(20, metadata.slice(0, at))?.settledAbove).toEqual([])
  }
})

describe('of earlier versions', () => {
  test('metadata that says nothing of its place is believed', () => {
    fc.assert(
      fc.property(marks, (mark) => {
        const stored = { offset: 20, metadata: encodeCommitMetadata(20, settledAbove, mark), leaderEpoch: 2 }
        expect(believed(stored, home)).toBe(stored)
      }),
    )
    for (const metadata of [null, '', 'of another program']) {
      const stored = { offset: 20, metadata }
      expect(believed(stored, home)).toBe(stored)
    }
  })

  test('a worker reads in bound metadata what it reads in unbound metadata', () => {
    fc.assert(
      fc.property(marks, (mark) => {
        const before = encodeCommitMetadata(20, settledAbove, mark)
        // `decodeCommitMetadata` is what the version before read. Older versions read only the base64.
        expect(decodeCommitMetadata(20, bound(mark))).toStrictEqual(decodeCommitMetadata(20, before))
        expect(Buffer.from(bound(mark), 'base64')).toEqual(Buffer.from(before, 'base64'))
      }),
    )
  })
})

test('metadata can be bound to another group, but only if it is bound to none, and Sluice wrote it', () => {
  const other = { ...home, groupId: 'heir' }
  const heirs = bindRead(unbindMetadata(bound()), other, 20)
  expect(memoryAt(20, heirs, other)).toStrictEqual({ settledAbove, ...whole })
  expect(bindRead(bound(), other, 20)).toBe(bound())
  expect(bindRead('of another program', other, 20)).toBe('of another program')
})
