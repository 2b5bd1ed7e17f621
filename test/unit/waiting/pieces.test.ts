import { expect, test } from 'vitest'
import { Pieces, take } from '../../../src/waiting/pieces.ts'

const mebi = 1024 ** 2

/** Records from the offset `from` on, of 1 KB each. */
function piece(from: number) {
  const value = Buffer.alloc(1_024)
  const records = Array.from({ length: 100 }, (_, index) => ({
    offset: from + index,
    key: null,
    value,
    headers: {},
    timestampMs: 0,
  }))
  return { records, next: from + records.length }
}

/** Fetches pieces, and delivers every so many of their records. */
function fetchMany(
  pieces: Pieces,
  { from: first, to, every }: { from: number; to: number; every: number },
): void {
  for (let from = first; from < to; from += 100) {
    const added = pieces.add(0, from, piece(from))
    for (let offset = from; offset < from + 100; offset += every) take(added, offset)
  }
}

test('fetches become smaller if little of them is used before it is dropped, and larger again if most of it is', () => {
  const pieces = new Pieces(mebi)
  fetchMany(pieces, { from: 0, to: 3_000, every: 100 })
  expect(pieces.fetchBytes).toBe(32 * 1024)
  fetchMany(pieces, { from: 3_000, to: 6_000, every: 1 })
  expect(pieces.fetchBytes).toBe(512 * 1024)
})

test('fetches stay large while something is used in all parts of them, though most lies there for others', () => {
  const pieces = new Pieces(mebi)
  fetchMany(pieces, { from: 0, to: 6_000, every: 12 })
  expect(pieces.fetchBytes).toBe(512 * 1024)
})

test('pieces that are dropped because their unit has another owner change nothing', () => {
  const pieces = new Pieces(mebi)
  for (let from = 0; from < 600; from += 100) pieces.add(0, from, piece(from))
  pieces.dropAll(0)
  expect(pieces.find(0, 0)).toBeUndefined()
  expect(pieces.fetchBytes).toBe(512 * 1024)
})

test('the record at an offset is delivered, if the log has it', () => {
  const pieces = new Pieces(mebi)
  const { records, next } = piece(0)
  const added = pieces.add(0, 0, { records: records.filter(({ offset }) => offset !== 7), next })
  expect([take(added, 6)?.offset, take(added, 7), take(added, 99)?.offset]).toEqual([6, undefined, 99])
})

test('a piece is found by each offset that it covers, in its own unit, until all before an offset is dropped', () => {
  const pieces = new Pieces(mebi)
  const [first, second] = [pieces.add(0, 0, piece(0)), pieces.add(0, 100, piece(100))]
  expect([0, 99, 100, 199].map((offset) => pieces.find(0, offset))).toEqual([first, first, second, second])
  expect([pieces.find(0, 200), pieces.find(1, 0)]).toEqual([undefined, undefined])
  pieces.dropBefore(0, 150)
  expect([pieces.find(0, 99), pieces.find(0, 150)]).toEqual([undefined, second])
})

test('a fetch begins where the piece before ends, if this is near, and most of what is fetched is used', () => {
  const pieces = new Pieces(mebi)
  pieces.add(0, 0, piece(0))
  expect([99, 100, 149, 150].map((offset) => pieces.startFor(0, offset))).toEqual([99, 100, 100, 150])
  expect(pieces.startFor(1, 120)).toBe(120)
  fetchMany(pieces, { from: 1_000, to: 4_000, every: 100 })
  expect(pieces.startFor(0, 4_010)).toBe(4_010)
})
