import * as fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { PacedLines } from '../../../src/telemetry/paced-lines.ts'

const everyMs = 1_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})

afterEach(() => {
  vi.useRealTimers()
})

type Written = { nth: number; leftOut?: number; atMs: number }

function listen(): { lines: PacedLines<{ nth: number }>; written: Written[] } {
  const written: Written[] = []
  const write = (line: { nth: number; leftOut?: number }): void =>
    void written.push({ ...line, atMs: Math.round(performance.now()) })
  return { lines: new PacedLines({ write, everyMs }), written }
}

test('the first of a key is written at once, and the newest of those that follow a second later', () => {
  const { lines, written } = listen()
  const startMs = Math.round(performance.now())
  for (let nth = 1; nth <= 500; nth++) lines.add('a', { nth })
  lines.add('b', { nth: 501 })
  vi.advanceTimersByTime(5_000)
  expect(written).toEqual([
    { nth: 1, atMs: startMs },
    { nth: 501, atMs: startMs },
    { nth: 500, leftOut: 498, atMs: startMs + everyMs },
  ])
})

test('one that comes after a quiet second is written at once', () => {
  const { lines, written } = listen()
  lines.add('a', { nth: 1 })
  vi.advanceTimersByTime(everyMs)
  lines.add('a', { nth: 2 })
  expect(written.map(({ nth, leftOut }) => [nth, leftOut])).toEqual([
    [1, undefined],
    [2, undefined],
  ])
})

test('what waits is written before the end, and nothing is left to come', () => {
  const { lines, written } = listen()
  for (let nth = 1; nth <= 3; nth++) lines.add('a', { nth })
  lines.flush()
  lines.flush()
  expect(written.map(({ nth, leftOut }) => [nth, leftOut])).toEqual([
    [1, undefined],
    [3, 1],
  ])
  expect(vi.getTimerCount()).toBe(0)
})

test('whenever they come, each is written or counted by a line soon after it, and no two lines of a key are nearer than a second', () => {
  const comings = fc.array(
    fc.record({ key: fc.constantFrom('a', 'b'), afterMs: fc.oneof(fc.constant(0), fc.nat(2_500)) }),
    { maxLength: 60 },
  )
  fc.assert(
    fc.property(comings, (coming) => {
      const { lines, written } = listen()
      const cameAtMs: number[] = []
      for (const { key, afterMs } of coming) {
        vi.advanceTimersByTime(afterMs)
        lines.add(key, { nth: cameAtMs.length })
        cameAtMs.push(Math.round(performance.now()))
      }
      vi.advanceTimersByTime(4 * everyMs)
      expect(vi.getTimerCount()).toBe(0)
      for (const key of ['a', 'b']) {
        const own = coming.flatMap((one, nth) => (one.key === key ? [nth] : []))
        const told = written.filter(({ nth }) => coming[nth]?.key === key)
        let at = 0
        for (const [index, { nth, leftOut = 0, atMs }] of told.entries()) {
          const counted = own.slice(at, at + leftOut + 1)
          expect(counted.at(-1)).toBe(nth)
          expect(atMs - (cameAtMs[counted[0] ?? -1] ?? NaN)).toBeLessThanOrEqual(2 * everyMs)
          expect(atMs - (told[index - 1]?.atMs ?? -Infinity)).toBeGreaterThanOrEqual(everyMs)
          at += leftOut + 1
        }
        expect(at).toBe(own.length)
      }
    }),
  )
})
