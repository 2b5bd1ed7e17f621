import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LanesOptions } from '../../../../src/delivery/lanes/lanes-ports.ts'
import { type LanesAtWork, openLanes, Parcel, stopLanes } from './parcel.ts'

/** Tests of the requests in flight that all lanes share, beside destinations that answer slowly. */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  stopLanes()
  vi.useRealTimers()
})

const maxInFlight = 16
const slow = 80
const answersAfterMs = 10_000
/** How many requests slow destinations have together. */
const mostSlow = 14
const keys = Array.from({ length: slow }, (_, one) => `slow-${one}`)

/** Lets the time pass in steps, because a longer one would count as a standstill of the process. */
function pass(ms: number): void {
  for (let passedMs = 0; passedMs < ms; passedMs += 100) vi.advanceTimersByTime(100)
}

function offerAll({ lanes }: LanesAtWork): void {
  for (const key of keys) lanes.offer(new Parcel(key))
}

/** Ends the requests that are in flight. */
function finishAll({ lanes, started }: LanesAtWork): void {
  for (const parcel of started.splice(0)) lanes.finished(parcel)
}

/** Lets more destinations than there are requests answer slowly, until all of them are known to be slow. */
function manySlow(settings: Partial<LanesOptions<Parcel>> = {}): LanesAtWork {
  const all = openLanes({ maxInFlight, ...settings })
  offerAll(all)
  expect(all.lanes.inFlight).toBe(maxInFlight)
  const known = new Set<string>()
  for (let rounds = 0; rounds < slow && known.size < slow; rounds++) {
    pass(answersAfterMs)
    offerAll(all)
    for (const { laneKey } of all.started) known.add(laneKey)
    finishAll(all)
  }
  expect([known.size, all.lanes.inFlight]).toEqual([slow, mostSlow])
  return all
}

/** The slow destinations without a request in flight. */
function waitingOf({ started }: LanesAtWork): string[] {
  const inFlight = new Set(started.map(({ laneKey }) => laneKey))
  return keys.filter((key) => !inFlight.has(key))
}

test('more slow destinations than requests in flight leave some of these to others', () => {
  const { lanes, started } = manySlow()
  expect(lanes.mayStartWithin('slow-0', 250)).toBe(false)
  expect(lanes.mayStartWithin('healthy', 250)).toBe(true)
  for (let messages = 0; messages < 5; messages++) {
    lanes.offer(new Parcel('healthy'))
    const parcel = started.pop() ?? new Parcel('')
    expect(parcel.laneKey).toBe('healthy')
    lanes.finished(parcel)
  }
  expect(lanes.inFlight).toBe(mostSlow)
})

test('destinations that were slow have all requests in flight once they are fast', () => {
  const all = manySlow()
  const { lanes, started } = all
  for (let round = 0; round < 20; round++) offerAll(all)
  for (let answers = 0; answers < 1_200; answers++) {
    const parcel = started.shift()
    if (parcel !== undefined) lanes.finished(parcel)
  }
  expect(lanes.inFlight).toBe(maxInFlight)
})

test('slow destinations go on though others wait before them whose messages have left their lanes', () => {
  const all = manySlow()
  const { lanes } = all
  const last = new Set(waitingOf(all).slice(-5))
  lanes.takeQueued(({ laneKey }) => !last.has(laneKey))
  expect(lanes.queued).toBeGreaterThan(0)
  for (let rounds = 0; rounds < slow; rounds++) {
    pass(answersAfterMs)
    finishAll(all)
  }
  expect([lanes.queued, lanes.inFlight]).toEqual([0, 0])
})

test('a destination that has become fast goes on at once, though slow ones wait', () => {
  const all = manySlow()
  const { lanes, started } = all
  pass(answersAfterMs)
  finishAll(all)
  let parcel = started[0]
  const key = parcel?.laneKey ?? ''
  for (let messages = 0; messages < 20; messages++) lanes.offer(new Parcel(key))
  for (let answers = 0; answers < 15 && parcel !== undefined; answers++) {
    pass(100)
    started.splice(started.indexOf(parcel), 1)
    lanes.finished(parcel)
    parcel = started.find(({ laneKey }) => laneKey === key)
  }
  expect(parcel?.laneKey).toBe(key)
})

test('slow destinations take turns', () => {
  const all = manySlow()
  const { lanes, started } = all
  const before = new Set(started.map(({ laneKey }) => laneKey))
  pass(answersAfterMs)
  finishAll(all)
  const now = started.map(({ laneKey }) => laneKey)
  expect(now.filter((key) => before.has(key))).toEqual([])
  expect(lanes.inFlight).toBe(mostSlow)
})

test('slow destinations are known to be slow though their lanes were dropped meanwhile', () => {
  const all = manySlow({ idleMs: 1_000 })
  const { lanes } = all
  lanes.takeQueued(() => true)
  pass(answersAfterMs)
  finishAll(all)
  pass(3_000)
  expect(lanes.count).toBe(0)
  offerAll(all)
  expect(lanes.inFlight).toBe(mostSlow)
})
