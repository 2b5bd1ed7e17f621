import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeCommitMetadata,
  encodeCommitMetadata,
  maxRememberedOffsets,
} from '../../../../src/kafka/wire/commit-metadata.ts'
import { Watermark } from '../../../../src/kafka/partitions/watermark.ts'

const runs = { numRuns: 1_000 }

describe('watermark', () => {
  test('the position is the first record that has not settled', () => {
    const watermark = new Watermark(10)
    for (const offset of [10, 11, 12]) watermark.receive(offset)
    watermark.settle(11)
    expect(watermark.position).toBe(10)
    watermark.settle(10)
    expect(watermark.position).toBe(12)
    watermark.settle(12)
    expect(watermark.position).toBe(13)
  })

  test('offsets that no record has are passed over', () => {
    const watermark = new Watermark(0)
    watermark.receive(3)
    watermark.receive(7)
    watermark.settle(3)
    expect(watermark.position).toBe(7)
    watermark.settle(7)
    expect(watermark.position).toBe(8)
  })

  test('a batch that ends in markers is passed over once its records have settled', () => {
    const watermark = new Watermark(0)
    watermark.receive(0)
    watermark.skipTo(4)
    expect(watermark.position).toBe(0)
    watermark.settle(0)
    expect(watermark.position).toBe(4)
  })

  test('what a former owner settled above the commit is not taken again', () => {
    const watermark = new Watermark(5, [7, 8])
    expect([5, 6, 7, 8, 9].map((offset) => watermark.receive(offset))).toEqual([
      'new',
      'new',
      'settled',
      'settled',
      'new',
    ])
    watermark.settle(5)
    watermark.settle(6)
    expect(watermark.position).toBe(9)
  })

  test('a record that is delivered again while it is held, or after it settled, is not new', () => {
    const watermark = new Watermark(0)
    watermark.receive(0)
    watermark.receive(1)
    watermark.settle(1)
    expect([0, 1].map((offset) => watermark.receive(offset))).toEqual(['held', 'settled'])
  })

  test('settling a record that is not held is a bug, and says so', () => {
    const watermark = new Watermark(0)
    watermark.receive(0)
    watermark.settle(0)
    watermark.receive(1)
    expect(() => watermark.settle(2)).toThrow('without being held')
  })

  test('a gap of a billion offsets costs no memory', () => {
    const watermark = new Watermark(0)
    watermark.receive(1_000_000_000)
    expect(watermark.span).toBe(1)
  })
})

describe('a gap of two hundred million offsets, as compaction or a restored log leaves it,', () => {
  const gap = 200_000_000

  test('takes no memory while a record before it is held', () => {
    const before = process.memoryUsage().arrayBuffers
    const watermark = new Watermark(0)
    watermark.receive(0)
    for (const offset of [gap, gap + 1, gap + 3]) expect(watermark.receive(offset)).toBe('new')
    watermark.settle(gap + 1)
    expect([...watermark.settledAbove(2 * gap)]).toEqual([gap + 1])
    watermark.skipTo(2 * gap)
    watermark.settle(0)
    expect(watermark.position).toBe(gap)
    watermark.settle(gap)
    expect(watermark.position).toBe(gap + 3)
    watermark.settle(gap + 3)
    expect(watermark.position).toBe(2 * gap)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1024 ** 2)
  })

  test('is passed over before what a former owner settled behind it', () => {
    const watermark = new Watermark(0, [gap, gap + 2])
    expect(watermark.receive(5)).toBe('new')
    expect([...watermark.settledAbove(2 * gap)]).toEqual([gap, gap + 2])
    expect([gap, gap + 1, gap + 2].map((offset) => watermark.receive(offset))).toEqual([
      'settled',
      'new',
      'settled',
    ])
    watermark.settle(5)
    watermark.settle(gap + 1)
    expect(watermark.position).toBe(gap + 3)
  })
})

/**
 * The offsets of a partition's records, with gaps between them, and the order in which the records settle.
 */
const history = fc
  .record({
    start: fc.nat({ max: 1_000 }),
    gaps: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 200 }),
    // Each step receives the next record, settles the n-th held one, moves to a new owner, or lets the same
    // owner join again.
    steps: fc.array(
      fc.oneof(
        { weight: 4, arbitrary: fc.constant({ kind: 'receive' as const }) },
        { weight: 4, arbitrary: fc.nat().map((pick) => ({ kind: 'settle' as const, pick })) },
        { weight: 1, arbitrary: fc.constant({ kind: 'handover' as const }) },
        { weight: 1, arbitrary: fc.constant({ kind: 'rejoin' as const }) },
      ),
      { minLength: 1, maxLength: 400 },
    ),
  })
  .map(({ start, gaps, steps }) => {
    let offset = start
    const offsets = gaps.map((gap) => (offset += gap))
    return { start, offsets, steps }
  })

test('for any history: the position never goes back nor past a held record, and no settled record is new again', () => {
  fc.assert(
    fc.property(history, ({ start, offsets, steps }) => {
      let watermark = new Watermark(start)
      let next = 0
      let held: number[] = []
      const settled = new Set<number>()
      let highestPosition = start
      for (const step of steps) {
        if (step.kind === 'receive') {
          const offset = offsets[next]
          if (offset === undefined) continue
          next++
          const receipt = watermark.receive(offset)
          if (settled.has(offset)) expect(receipt).toBe('settled')
          else if (held.includes(offset)) expect(receipt).toBe('held')
          else {
            expect(receipt).toBe('new')
            held.push(offset)
          }
        } else if (step.kind === 'settle' && held.length > 0) {
          const [offset] = held.splice(step.pick % held.length, 1)
          if (offset === undefined) continue
          watermark.settle(offset)
          settled.add(offset)
        } else if (step.kind === 'handover') {
          // This handover is a graceful one. The new owner doesn't hold what the old one held. It finds in
          // the metadata what is settled.
          const metadata = encodeCommitMetadata(
            watermark.position,
            watermark.settledAbove(maxRememberedOffsets),
            {
              isFinal: true,
              epoch: 7,
            },
          )
          const memory = decodeCommitMetadata(watermark.position, metadata)
          expect(memory).toBeDefined()
          watermark = new Watermark(watermark.position, memory?.settledAbove)
          held = []
          next = offsets.findIndex((offset) => offset >= watermark.position)
          if (next < 0) next = offsets.length
        } else if (step.kind === 'rejoin') {
          // The broker delivers again from the commit, to the same owner.
          next = offsets.findIndex((offset) => offset >= watermark.position)
          if (next < 0) next = offsets.length
        }
        const firstUnsettled = offsets.slice(0, next).find((offset) => !settled.has(offset))
        expect(watermark.position).toBeGreaterThanOrEqual(highestPosition)
        if (held.length > 0) expect(watermark.position).toBeLessThanOrEqual(Math.min(...held))
        if (firstUnsettled !== undefined) expect(watermark.position).toBeLessThanOrEqual(firstUnsettled)
        highestPosition = watermark.position
        for (const limit of [3, maxRememberedOffsets])
          expect(watermark.lastSettledAbove(limit)).toBe([...watermark.settledAbove(limit)].at(-1) ?? -1)
      }
      // When all records were received and settled, nothing is left to commit.
      for (const offset of offsets.slice(next)) if (watermark.receive(offset) === 'new') held.push(offset)
      for (const offset of held) watermark.settle(offset)
      expect(watermark.position).toBe((offsets.at(-1) ?? start - 1) + 1)
    }),
    runs,
  )
})

describe('commit metadata', () => {
  test('what is encoded is decoded again, in at most 4,096 characters', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 2 ** 40 }),
        fc.uniqueArray(fc.nat({ max: maxRememberedOffsets - 1 }), { maxLength: 300 }),
        fc.boolean(),
        fc.nat({ max: 2 ** 32 - 1 }),
        fc.record(
          {
            begunBelow: fc.nat({ max: 2 ** 41 }),
            topicId: fc.constant('AAAAAAAAAAAAAAAAAAAAAA'),
            settledEpoch: fc.nat({ max: 2 ** 31 - 1 }),
          },
          { requiredKeys: [] },
        ),
        (position, relative, isFinal, epoch, rest) => {
          const settledAbove = relative.sort((a, b) => a - b).map((offset) => position + offset)
          const mark = { isFinal, epoch, ...rest }
          const metadata = encodeCommitMetadata(position, settledAbove, mark)
          expect(metadata.length).toBeLessThanOrEqual(4_096)
          expect(decodeCommitMetadata(position, metadata)).toStrictEqual({ settledAbove, ...mark })
        },
      ),
      runs,
    )
  })

  test('a full window fits', () => {
    const all = Array.from({ length: maxRememberedOffsets }, (_, index) => index)
    for (const mark of [
      { isFinal: false, epoch: 0 },
      {
        isFinal: true,
        epoch: 2 ** 32 - 1,
        begunBelow: 2 ** 48 - 1,
        topicId: 'AAAAAAAAAAAAAAAAAAAAAA',
        settledEpoch: 2 ** 31 - 1,
      },
    ]) {
      const metadata = encodeCommitMetadata(0, all, mark)
      expect(metadata.length).toBeLessThanOrEqual(4_096)
      expect(decodeCommitMetadata(0, metadata)).toEqual({ settledAbove: all, ...mark })
    }
  })

  test('versions before read what they know of it: the base64 up to the first =, and the id of the topic behind it', () => {
    for (const settledAbove of [[], [12], [12, 30], [12, 30, 41]]) {
      for (const topicId of [undefined, 'AAAAAAAAAAAAAAAAAAAAAA']) {
        const mark = { isFinal: true, epoch: 3, ...(topicId !== undefined && { topicId }) }
        const before = encodeCommitMetadata(10, settledAbove, mark)
        const now = encodeCommitMetadata(10, settledAbove, { ...mark, settledEpoch: 7 })
        expect(Buffer.from(now, 'base64')).toEqual(Buffer.from(before, 'base64'))
        const [, behind = ''] = now.split(/=+/)
        expect(behind).toBe(topicId === undefined ? '-' : before.split(/=+/)[1])
      }
    }
  })

  test('an epoch or an id that is damaged is not known, and all else is', () => {
    const mark = { isFinal: false, epoch: 1, topicId: 'AAAAAAAAAAAAAAAAAAAAAA', settledEpoch: 12 }
    const metadata = encodeCommitMetadata(0, [3, 9], mark)
    const known = { settledAbove: [3, 9], isFinal: false, epoch: 1 }
    expect(decodeCommitMetadata(0, metadata.replace('12.', '13.'))).toStrictEqual({
      ...known,
      topicId: mark.topicId,
    })
    expect(decodeCommitMetadata(0, metadata.replace('=AAAA', '=AAAB'))).toStrictEqual({
      ...known,
      settledEpoch: 12,
    })
  })

  test('what is not ours, or damaged, is not believed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (text) => {
        expect(decodeCommitMetadata(0, text)).toBeUndefined()
      }),
      runs,
    )
    const good = Buffer.from(encodeCommitMetadata(0, [3, 9], { isFinal: false, epoch: 1 }), 'base64')
    fc.assert(
      fc.property(fc.nat({ max: good.length * 8 - 1 }), (bit) => {
        const damaged = Buffer.from(good)
        damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(decodeCommitMetadata(0, damaged.toString('base64'))).toBeUndefined()
      }),
      runs,
    )
    expect(decodeCommitMetadata(0, null)).toBeUndefined()
    expect(decodeCommitMetadata(0, '')).toBeUndefined()
  })
})
