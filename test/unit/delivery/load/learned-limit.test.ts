import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LearnedLimit } from '../../../../src/delivery/load/learned-limit.ts'
import { parallel, queueing, type Simulated, simulateLoad, type SimulatedRun } from './simulated-load.ts'

/** Tests of what is learned about servers, on a virtual clock. All messages are there from the start. */

const runs = { numRuns: 30 }
const seeds = fc.integer({ min: 1, max: 2 ** 31 - 2 })

/** Numbers from 0 to 1 that look random (Lehmer). */
function chances(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

/** Returns the messages that were taken in a second, on average over a span of time. */
function perSecond({ takenAtMs }: Simulated, fromMs: number, untilMs: number): number {
  const taken = takenAtMs.filter((atMs) => atMs >= fromMs && atMs < untilMs).length
  return (taken * 1_000) / (untilMs - fromMs)
}

/** Returns how long the messages take, as a multiple of the time that they would take at the ceiling. */
function slowness(run: () => SimulatedRun): number {
  return simulateLoad(run()).endMs / simulateLoad({ ...run(), isFixed: true }).endMs
}

/** Returns messages for a server with one worker that needs 250 ms. */
const serial = (isFixed: boolean): SimulatedRun => ({
  server: queueing(1, () => 250),
  messages: 300,
  untilMs: 300_000,
  isFixed,
})

/** Returns messages for a server that answers 503 to one of twenty requests. */
function oftenBusy(): SimulatedRun {
  const chance = chances(7)
  return {
    server: (nowMs) => ({ atMs: nowMs + 1_000, status: chance() < 0.05 ? 503 : 200 }),
    messages: 3_000,
  }
}

describe('a server with one worker', () => {
  test('gets few requests that time out, and 64 at once would be three of four', () => {
    const fixed = simulateLoad(serial(true))
    expect(fixed.requests / fixed.taken).toBeGreaterThan(2)
    const learned = simulateLoad(serial(false))
    expect(learned.taken).toBe(300)
    expect(learned.requests / 300).toBeLessThanOrEqual(1.02)
    expect(learned.endMs).toBeLessThanOrEqual(1.1 * 75_000)
  })

  test.each([
    [100, 1.02],
    [400, 1.1],
    [1_000, 1.1],
    [2_000, 1.15],
  ])('that needs %i ms gets at most %f requests a message', (serviceMs, most) => {
    const { requests, taken } = simulateLoad({ server: queueing(1, () => serviceMs), messages: 300 })
    expect(taken).toBe(300)
    expect(requests / 300).toBeLessThanOrEqual(most)
  })

  test('gets few requests that time out from four processes, each of which learns alone', () => {
    const server = queueing(1, () => 250)
    const { requests } = simulateLoad({ server, messages: 300, processes: 4, ceiling: 64 })
    expect(requests / 300).toBeLessThanOrEqual(1.3)
  })

  test('whose times vary gets all messages, with few requests that time out', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const chance = chances(seed)
        const server = queueing(1, () => 125 + 250 * chance())
        const { requests, taken } = simulateLoad({ server, messages: 300 })
        expect(taken).toBe(300)
        expect(requests / 300).toBeLessThanOrEqual(1.3)
      }),
      runs,
    )
  })
})

describe('a server that takes any number at once', () => {
  test('and needs a second gets 64 at once', () => {
    const { endMs, limits, requests } = simulateLoad({ server: parallel(() => 1_000), messages: 3_000 })
    expect(requests).toBe(3_000)
    expect(limits[0]?.cap).toBe(64)
    expect(endMs).toBeLessThanOrEqual(1.1 * 47_000)
  })

  test.each([
    [5, 0],
    [50, 0],
    [50, 300],
    [500, 0],
  ])('and needs %i ms has its whole rate after 2 s, with handshakes of %i ms', (latencyMs, handshakeMs) => {
    const run = { server: parallel(() => latencyMs), messages: 1_000_000, untilMs: 4_000, handshakeMs }
    const learned = perSecond(simulateLoad(run), 2_000, 4_000)
    expect(learned).toBeGreaterThanOrEqual(
      0.9 * perSecond(simulateLoad({ ...run, isFixed: true }), 2_000, 4_000),
    )
  })

  test('and answers some requests in 5 ms and the others in 2 s keeps nine tenths of its rate', () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom(0.01, 0.1, 0.5, 0.9), (seed, slowShare) => {
        const ratio = slowness(() => {
          const chance = chances(seed)
          return {
            server: parallel(() => (chance() < slowShare ? 2_000 : 5)),
            messages: Math.round((64 * 60) / (slowShare * 2 + 0.005)),
          }
        })
        expect(ratio).toBeLessThanOrEqual(1 / 0.9)
      }),
      { numRuns: 8 },
    )
  })

  test('has its whole rate within 10 s after it has answered nothing for 30 s', () => {
    for (const latencyMs of [5, 500, 1_000]) {
      const run = simulateLoad({
        server: (nowMs) => ({
          atMs: nowMs > 11_000 && nowMs < 41_000 ? Number.POSITIVE_INFINITY : nowMs + latencyMs,
          status: 200,
        }),
        messages: 1_000_000,
        untilMs: 60_000,
      })
      expect(perSecond(run, 50_000, 54_000)).toBeGreaterThanOrEqual(0.9 * perSecond(run, 6_000, 10_000))
    }
  })

  test('has its whole rate half a minute after a minute in which it was slow', () => {
    const slow = queueing(1, () => 1_000)
    const run = simulateLoad({
      server: (nowMs, inFlight) =>
        nowMs > 11_000 && nowMs < 71_000 ? slow(nowMs, inFlight) : { atMs: nowMs + 500, status: 200 },
      messages: 1_000_000,
      untilMs: 110_000,
    })
    expect(perSecond(run, 100_000, 110_000)).toBeGreaterThanOrEqual(0.9 * perSecond(run, 6_000, 10_000))
  })
})

test('a server that answers 503 to one of twenty requests at any load is not slowed', () => {
  expect(slowness(oftenBusy)).toBeLessThanOrEqual(1 / 0.9)
})

test('a server that answers 503 to more than 32 at once gets few more', () => {
  const { requests, taken } = simulateLoad({
    server: (nowMs, inFlight) =>
      inFlight > 32 ? { atMs: nowMs + 5, status: 503 } : { atMs: nowMs + 1_000, status: 200 },
    messages: 3_000,
  })
  expect(taken).toBe(3_000)
  expect(requests / 3_000).toBeLessThanOrEqual(1.1)
})

test('a limit that is not used does not grow, and failures of the only request do not lower it', () => {
  const limit = new LearnedLimit(() => 1, 64)
  const first = limit.cap
  for (let atMs = 0; atMs < 600_000; atMs += 1_000)
    limit.ended(limit.begun(atMs), atMs, atMs % 7_000 === 0 ? 'overloaded' : 'answered', atMs + 100)
  expect(limit.cap).toBe(first)
})

test('for any history: the limit of a process is from 1 to its ceiling, and nothing is left in flight', () => {
  const steps = fc.array(
    fc.record({
      waitMs: fc.integer({ min: 0, max: 3_000 }),
      result: fc.constantFrom('answered', 'overloaded', 'throttled', 'nothing'),
      ends: fc.boolean(),
    }),
    { maxLength: 400 },
  )
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 24 }), (history, processes) => {
      const limit = new LearnedLimit(() => 1 / processes, 16)
      const open: { number: number; begunMs: number }[] = []
      let nowMs = 1_000
      for (const { waitMs, result, ends } of history) {
        nowMs += waitMs
        if (!ends) open.push({ number: limit.begun(nowMs), begunMs: nowMs })
        else {
          const one = open.shift()
          if (one !== undefined) limit.ended(one.number, one.begunMs, result, nowMs)
        }
        expect(limit.cap).toBeGreaterThanOrEqual(1)
        expect(limit.cap).toBeLessThanOrEqual(16)
        expect(limit.ofGroup).toBeGreaterThanOrEqual(1)
      }
      for (const { number, begunMs } of open) limit.ended(number, begunMs, 'answered', nowMs)
      expect(limit.inFlight).toBe(0)
    }),
    { numRuns: 300 },
  )
})
