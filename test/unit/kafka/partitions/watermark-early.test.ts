import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeCommitMetadata,
  encodeCommitMetadata,
  maxRememberedOffsets,
} from '../../../../src/kafka/wire/commit-metadata.ts'
import { EarlyEpochs } from '../../../../src/kafka/partitions/early-epochs.ts'
import { Watermark } from '../../../../src/kafka/partitions/watermark.ts'

/** Records that are taken before the feed reaches them. */

function settledAbove(watermark: Watermark): number[] {
  return [...watermark.settledAbove(maxRememberedOffsets)]
}

describe('a record that is taken early', () => {
  test('is held when the feed reaches it in flight, and settled when it reaches it later', () => {
    const watermark = new Watermark(10)
    expect([12, 14].map((offset) => watermark.takeEarly(offset))).toEqual(['new', 'new'])
    expect(watermark.takeEarly(12)).toBe('held')
    watermark.settle(14)
    expect(watermark.takeEarly(14)).toBe('settled')
    expect(watermark.position).toBe(10)
    expect(settledAbove(watermark)).toEqual([14])
    expect([10, 11, 12, 13, 14].map((offset) => watermark.receive(offset))).toEqual([
      'new',
      'new',
      'held',
      'new',
      'settled',
    ])
    for (const offset of [12, 10, 11]) watermark.settle(offset)
    expect(watermark.position).toBe(13)
    watermark.settle(13)
    expect(watermark.position).toBe(15)
    expect(watermark.heldCount).toBe(0)
  })

  test('is not taken again by a next owner that finds it in the commit, though it is the very position', () => {
    const watermark = new Watermark(5)
    for (const offset of [5, 7]) {
      watermark.takeEarly(offset)
      watermark.settle(offset)
    }
    const metadata = encodeCommitMetadata(watermark.position, watermark.settledAbove(maxRememberedOffsets), {
      isFinal: true,
      epoch: 1,
    })
    const next = new Watermark(5, decodeCommitMetadata(5, metadata)?.settledAbove)
    expect([5, 6, 7].map((offset) => next.takeEarly(offset))).toEqual(['settled', 'new', 'settled'])
    next.settle(6)
    expect(settledAbove(next)).toEqual([5, 6, 7])
    expect([5, 6, 7].map((offset) => next.receive(offset))).toEqual(['settled', 'settled', 'settled'])
    expect(next.position).toBe(8)
  })

  test('lies within the offsets that a commit can remember', () => {
    const watermark = new Watermark(0)
    expect(watermark.takeEarly(maxRememberedOffsets)).toBe('beyond')
    expect(watermark.takeEarly(maxRememberedOffsets - 1)).toBe('new')
    watermark.receive(0)
    watermark.settle(0)
    expect(watermark.takeEarly(maxRememberedOffsets)).toBe('new')
  })

  test('is not passed over while it is in flight, even if the log has lost it', () => {
    const watermark = new Watermark(0)
    watermark.takeEarly(3)
    watermark.skipTo(10)
    expect(watermark.position).toBe(3)
    watermark.settle(3)
    expect(watermark.position).toBe(10)
  })
})

test('the epoch of each early record is known, in whatever order they are taken', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 30 }),
      fc.array(fc.nat(), { maxLength: 60 }),
      (steps, picks) => {
        let epoch = 0
        const epochs = steps.map((step) => (epoch += step))
        const early = new EarlyEpochs()
        const noted = new Set<number>()
        for (const pick of picks) {
          const offset = pick % epochs.length
          noted.add(offset)
          early.note(offset, epochs[offset] ?? 0)
          for (const one of noted) expect(early.of(one)).toBe(epochs[one])
        }
      },
    ),
  )
})

const window = 40

const history = fc.record({
  gaps: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 120 }),
  steps: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constant({ kind: 'receive' as const }) },
      { weight: 4, arbitrary: fc.nat().map((pick) => ({ kind: 'early' as const, pick })) },
      { weight: 5, arbitrary: fc.nat().map((pick) => ({ kind: 'settle' as const, pick })) },
      { weight: 1, arbitrary: fc.constant({ kind: 'rejoin' as const }) },
      { weight: 1, arbitrary: fc.constant({ kind: 'handover' as const }) },
      { weight: 1, arbitrary: fc.nat({ max: 6 }).map((count) => ({ kind: 'lost' as const, count })) },
    ),
    { maxLength: 300 },
  ),
})

/** What a watermark must know, as plain sets. */
class Model {
  readonly offsets: readonly number[]
  readonly settled = new Set<number>()
  held: number[] = []
  /** Records that the log has lost before this owner received them. */
  readonly lost = new Set<number>()
  top = 0

  constructor(offsets: readonly number[]) {
    this.offsets = offsets
  }

  receiptOf(offset: number): 'new' | 'held' | 'settled' {
    if (this.settled.has(offset)) return 'settled'
    return this.held.includes(offset) ? 'held' : 'new'
  }

  /** The first offset that isn't settled: a record, or the end of what was received. */
  get position(): number {
    const open = this.offsets.find(
      (offset) =>
        offset < this.top &&
        !this.settled.has(offset) &&
        (!this.lost.has(offset) || this.held.includes(offset)),
    )
    return open ?? this.top
  }
}

test('for any history: each record is new once, and the position and the memory are those of a naive model', () => {
  fc.assert(
    fc.property(history, ({ gaps, steps }) => {
      let offset = -1
      const model = new Model(gaps.map((gap) => (offset += gap)))
      let watermark = new Watermark(0)
      for (const step of steps) {
        switch (step.kind) {
          case 'receive': {
            const next = model.offsets.find((one) => one >= model.top)
            if (next === undefined) break
            const expected = model.receiptOf(next)
            expect(watermark.receive(next)).toBe(expected)
            if (expected === 'new') model.held.push(next)
            model.top = next + 1
            break
          }
          case 'early': {
            const above = model.offsets.filter((one) => one >= model.top && one < model.top + window)
            const next = above[step.pick % above.length]
            if (next === undefined) break
            const expected = model.receiptOf(next)
            expect(watermark.takeEarly(next)).toBe(expected)
            if (expected === 'new') model.held.push(next)
            break
          }
          case 'settle': {
            const [one] = model.held.splice(step.pick % Math.max(1, model.held.length), 1)
            if (one === undefined) break
            watermark.settle(one)
            model.settled.add(one)
            break
          }
          case 'lost': {
            const to = model.top + step.count
            for (const one of model.offsets)
              if (one >= model.top && one < to && !model.settled.has(one)) model.lost.add(one)
            watermark.skipTo(to)
            model.top = Math.max(model.top, to)
            break
          }
          case 'rejoin': {
            for (const one of model.offsets.filter(
              (each) => each >= watermark.position && each < model.top,
            )) {
              if (model.lost.has(one) && !model.held.includes(one)) continue
              expect(watermark.receive(one)).toBe(model.receiptOf(one))
            }
            break
          }
          case 'handover': {
            const metadata = encodeCommitMetadata(
              watermark.position,
              watermark.settledAbove(maxRememberedOffsets),
              { isFinal: true, epoch: 1 },
            )
            const memory = decodeCommitMetadata(watermark.position, metadata)
            watermark = new Watermark(watermark.position, memory?.settledAbove)
            model.held = []
            model.top = watermark.position
            break
          }
        }
        expect(watermark.position).toBe(model.position)
        expect(watermark.heldCount).toBe(model.held.filter((one) => one >= model.position).length)
        const remembered = model.offsets.filter((one) => one >= model.position && model.settled.has(one))
        expect(settledAbove(watermark)).toEqual(remembered)
        expect(watermark.lastSettledAbove(maxRememberedOffsets)).toBe(remembered.at(-1) ?? -1)
      }
    }),
    { numRuns: 1_000 },
  )
})
