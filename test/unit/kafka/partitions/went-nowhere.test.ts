import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { LeftOutOffsets } from '../../../../src/kafka/partitions/went-nowhere.ts'

function runsOf({ noted: { starts, ends } }: LeftOutOffsets): { start: number; end: number }[] {
  return starts.map((start, index) => ({ start, end: ends[index] ?? start }))
}

/** Returns the offsets from `since` on that aren't in `runs`, below `end`. */
function passedOn(noting: LeftOutOffsets, end: number): number[] {
  const { since } = noting.noted
  const runs = runsOf(noting)
  const offsets: number[] = []
  for (let offset = since; offset < end; offset++) {
    if (!runs.some((run) => run.start <= offset && offset < run.end)) offsets.push(offset)
  }
  return offsets
}

test('only what was passed on is noted so, in whatever order', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ takes: fc.integer({ min: 1, max: 4 }), passes: fc.nat(40) }), { maxLength: 40 }),
      (steps) => {
        const offsets = new LeftOutOffsets(0)
        const passed = new Set<number>()
        let top = 0
        for (const { takes, passes } of steps) {
          top += takes
          offsets.leaveOutTo(top)
          if (passes >= top) continue
          offsets.passOn(passes)
          passed.add(passes)
        }
        expect(passedOn(offsets, top)).toEqual([...passed].toSorted((one, other) => one - other))
        const runs = runsOf(offsets)
        // Runs are in order, and none touches the next.
        expect(
          runs.every(({ start, end }, index) => start < end && end < (runs[index + 1]?.start ?? Infinity)),
        ).toBe(true)
      },
    ),
  )
})

test('the next owner knows what was passed on and settled, and nothing of what was not settled', () => {
  const first = new LeftOutOffsets(0)
  first.leaveOutTo(10)
  for (const offset of [0, 1, 3, 5, 6, 7, 9]) first.passOn(offset)
  const next = new LeftOutOffsets(5, [7, 8], first.noted)
  expect(passedOn(next, 9)).toEqual([0, 1, 3, 7])
  next.passOn(6)
  expect(passedOn(next, 9)).toEqual([0, 1, 3, 6, 7])
})

test('an owner that knows nothing of what was settled notes only what comes after it', () => {
  const offsets = new LeftOutOffsets(5, [7, 8])
  offsets.leaveOutTo(6)
  offsets.passOn(5)
  expect(offsets.noted).toEqual({ since: 9, starts: [], ends: [] })
  offsets.leaveOutTo(11)
  offsets.passOn(9)
  expect(offsets.noted).toEqual({ since: 9, starts: [10], ends: [11] })
})

test('what went nowhere long ago is forgotten, and with it what was passed on then', () => {
  const offsets = new LeftOutOffsets(0)
  for (let offset = 0; offset < 100_000; offset++) {
    offsets.leaveOutTo(offset + 1)
    if (offset % 2 === 0) offsets.passOn(offset)
  }
  const { since } = offsets.noted
  const runs = runsOf(offsets)
  expect(runs.length).toBeLessThan(13_000)
  expect(since).toBeGreaterThan(70_000)
  expect(runs[0]?.start).toBeGreaterThanOrEqual(since)
  expect(runs.at(-1)).toEqual({ start: 99_999, end: 100_000 })
})
