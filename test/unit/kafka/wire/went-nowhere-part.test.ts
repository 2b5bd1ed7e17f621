import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeCommitMetadata, encodeCommitMetadata } from '../../../../src/kafka/wire/commit-metadata.ts'
import { believed, bindMetadata } from '../../../../src/kafka/wire/commit-binding.ts'
import {
  decodeLeftOut,
  encodeLeftOut,
  type LeftOut,
  maxLeftOutCharacters,
} from '../../../../src/kafka/wire/went-nowhere-part.ts'

const mark = { isFinal: true, epoch: 7 }
const home = { groupId: 'group', topic: 'events', partition: 3 }

/** Runs with the distances and lengths of `steps`, from the offset `since` on. */
function leftOutOf(since: number, steps: readonly (readonly [distance: number, length: number])[]): LeftOut {
  const starts: number[] = []
  const ends: number[] = []
  for (const [distance, length] of steps) {
    starts.push((ends.at(-1) ?? since) + distance)
    ends.push((ends.at(-1) ?? since) + distance + length)
  }
  return { since, starts, ends }
}

const someLeftOut = fc
  .tuple(
    fc.nat({ max: 2 ** 40 }),
    fc.array(
      fc.tuple(
        fc.oneof(fc.integer({ min: 1, max: 20 }), fc.nat({ max: 2 ** 33 })),
        fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 2 ** 33 })),
      ),
      { maxLength: 200 },
    ),
  )
  .map(([since, steps]) => leftOutOf(since, steps))

test('what went nowhere is read as it was written, or from a later offset on if there is no room for all', () => {
  fc.assert(
    fc.property(someLeftOut, fc.integer({ min: 0, max: 2_500 }), (leftOut, characters) => {
      const text = encodeLeftOut(leftOut, 5, characters)
      if (text === undefined) {
        expect(characters).toBeLessThan(24)
        return
      }
      expect(text.length).toBeLessThanOrEqual(Math.min(characters, maxLeftOutCharacters))
      const read = decodeLeftOut(text, 5)
      expect(read?.since).toBeGreaterThanOrEqual(leftOut.since)
      const since = read?.since ?? 0
      const older = leftOut.starts.filter((start) => start < since).length
      expect(read?.starts).toEqual(leftOut.starts.slice(older))
      expect(read?.ends).toEqual(leftOut.ends.slice(older))
      // Nothing that went nowhere is hidden above the later offset.
      expect(leftOut.ends[older - 1] ?? 0).toBeLessThanOrEqual(since)
    }),
  )
})

test('a commit has room for 6,000 records of which every second one goes nowhere, and for 80,000 if every hundredth does', () => {
  const alternating = Array.from({ length: 20_000 }, () => [1, 1] as const)
  const rare = Array.from({ length: 3_000 }, () => [99, 1] as const)
  for (const [steps, records] of [
    [alternating, 6_000],
    [rare, 80_000],
  ] as const) {
    const leftOut = leftOutOf(0, steps)
    const end = leftOut.ends.at(-1) ?? 0
    const read = decodeLeftOut(encodeLeftOut(leftOut, 0, 4_096) ?? '', 0)
    expect(end - (read?.since ?? Infinity)).toBeGreaterThan(records)
  }
})

test('a torn or changed part, and one of another offset, say nothing', () => {
  const text =
    encodeLeftOut(
      leftOutOf(100, [
        [5, 2],
        [9, 40],
      ]),
      300,
      500,
    ) ?? ''
  expect(decodeLeftOut(text, 300)).toBeDefined()
  expect(decodeLeftOut(text, 301)).toBeUndefined()
  for (let length = 0; length < text.length; length++)
    expect(decodeLeftOut(text.slice(0, length), 300)).toBeUndefined()
  for (let at = 1; at < text.length; at++) {
    const other = text[at] === 'A' ? 'B' : 'A'
    // The last character has bits that stand for nothing.
    const changed = decodeLeftOut(text.slice(0, at) + other + text.slice(at + 1), 300)
    if (at < text.length - 1) expect(changed).toBeUndefined()
  }
})

/** Returns `count` offsets, every second one from 1,000 on. */
function settled(count: number): number[] {
  return Array.from({ length: count }, (_, n) => 1_000 + 2 * n)
}

test('the metadata of a commit keeps its limit and all its other parts, whatever goes nowhere', () => {
  const leftOut = leftOutOf(
    0,
    Array.from({ length: 5_000 }, () => [3, 2] as const),
  )
  for (const [settledAbove, topicId, settledEpoch] of [
    [settled(0), undefined, undefined],
    [settled(0), 'A'.repeat(22), undefined],
    [settled(500), undefined, 4],
    [settled(9_000), 'A'.repeat(22), 2_147_483_647],
    [settled(12_000), 'A'.repeat(22), 2_147_483_647],
  ] as const) {
    const parts = {
      ...mark,
      ...(topicId !== undefined && { topicId }),
      ...(settledEpoch !== undefined && { settledEpoch }),
    }
    const metadata = encodeCommitMetadata(900, settledAbove, { ...parts, leftOut })
    const bound = bindMetadata(metadata, home, 900)
    expect(bound.length).toBeLessThanOrEqual(4_096)
    const { leftOut: read, ...others } = decodeCommitMetadata(900, bound) ?? {}
    expect(others).toEqual(decodeCommitMetadata(900, encodeCommitMetadata(900, settledAbove, parts)))
    if (settledAbove.length < 9_000) expect(read).toBeDefined()
    expect(believed({ offset: 900, metadata: bound }, home).moved).toBeUndefined()
    // Whoever moves the commit and keeps its metadata, doesn't want what it says.
    const moved = believed({ offset: 800, metadata: bound }, home)
    expect(decodeCommitMetadata(800, moved.metadata)?.leftOut).toBeUndefined()
  }
})
