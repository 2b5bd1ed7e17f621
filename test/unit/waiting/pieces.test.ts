import { expect, test } from 'vitest'
import { Pieces } from '../../../src/waiting/pieces.ts'

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

test('fetches become smaller if little of them is used before it is dropped, and larger again if most of it is', () => {
  const pieces = new Pieces(mebi)
  for (let from = 0; from < 3_000; from += 100) pieces.add(0, from, piece(from)).used = 1
  expect(pieces.fetchBytes).toBe(32 * 1024)
  for (let from = 3_000; from < 6_000; from += 100) pieces.add(0, from, piece(from)).used = 90
  expect(pieces.fetchBytes).toBe(512 * 1024)
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
  for (let from = 1_000; from < 4_000; from += 100) pieces.add(0, from, piece(from)).used = 1
  expect(pieces.startFor(0, 4_010)).toBe(4_010)
})
