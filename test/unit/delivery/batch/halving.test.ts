import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Halving } from '../../../../src/delivery/batch/halving.ts'

type Sent = { requests: number; accepted: number[]; refused: number[]; left: number[]; order: number[] }

/** Sends a batch to a server that refuses each request with a bad message. */
function send(size: number, bad: ReadonlySet<number>): Sent {
  const halving = new Halving(Array.from({ length: size }, (_, index) => index))
  const sent: Sent = { requests: 0, accepted: [], refused: [], left: [], order: [] }
  for (let part = halving.next(); part !== undefined; part = halving.next()) {
    sent.requests++
    if (!part.some((message) => bad.has(message))) sent.accepted.push(...part)
    else if (part.length === 1) sent.refused.push(...part)
    else if (!halving.halve(part)) {
      sent.left.push(...part, ...halving.rest())
      break
    } else continue
    sent.order.push(...part)
  }
  return sent
}

test('one bad message of a thousand is found, and all others are accepted', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), fc.nat(), (size, at) => {
      const bad = at % size
      const { accepted, refused, left, requests } = send(size, new Set([bad]))
      expect({ refused, left }).toEqual({ refused: [bad], left: [] })
      expect(accepted).toHaveLength(size - 1)
      expect(requests).toBeLessThanOrEqual(21)
    }),
  )
})

test('however many are bad: each message has one end, no request is too many, and none is refused with others', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), fc.array(fc.nat(999)), (size, list) => {
      const bad = new Set(list)
      const { accepted, refused, left, requests } = send(size, bad)
      expect([...accepted, ...refused, ...left].toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: size }, (_, index) => index),
      )
      expect(requests).toBeLessThanOrEqual(33)
      expect(accepted.some((message) => bad.has(message))).toBe(false)
      expect(refused.every((message) => bad.has(message))).toBe(true)
    }),
  )
})

test('the parts are sent in the order of their messages', () => {
  const { order } = send(100, new Set([17, 60]))
  expect(order).toEqual(order.toSorted((a, b) => a - b))
})
