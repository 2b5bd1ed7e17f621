import { expect, test } from 'vitest'
import { Breaker, type TryClass } from '../../../../src/delivery/lanes/breaker.ts'
import { SickLoad } from '../../../../src/delivery/lanes/sick-load.ts'

const room = { hasRoom: () => true, readyAtMs: () => 0 }
const settings = { failureShare: 0.5, minResults: 10, windowMs: 10_000, openMs: 5_000, maxOpenMs: 60_000 }

/** Counts requests at even rates for a time, and returns the time after it. */
function pass(
  load: SickLoad,
  fromMs: number,
  seconds: number,
  rates: { sound: number; sick: number },
): number {
  for (let at = 0; at < seconds * 10; at++) {
    const nowMs = fromMs + at * 100
    for (let count = 0; count < rates.sound / 10; count++) load.sound(nowMs)
    if (rates.sick > 0) load.sick(nowMs, rates.sick / 10)
  }
  return fromMs + seconds * 1_000
}

test('the load is low at few requests a second, and at a small share of many', () => {
  const load = new SickLoad({ share: 0.1, perSecond: 100 })
  let nowMs = pass(load, 0, 20, { sound: 0, sick: 90 })
  expect(load.isLow(nowMs)).toBe(true)
  nowMs = pass(load, nowMs, 20, { sound: 2_000, sick: 200 })
  expect(load.isLow(nowMs)).toBe(true)
  nowMs = pass(load, nowMs, 20, { sound: 1_000, sick: 200 })
  expect(load.isLow(nowMs)).toBe(false)
})

test('a burst is noticed within a second, and the load counts as high for ten more', () => {
  const load = new SickLoad({ share: 0.1, perSecond: 100 })
  const endMs = pass(load, 0, 1, { sound: 0, sick: 500 })
  expect(load.isLow(endMs)).toBe(false)
  expect(load.isLow(endMs + 8_000)).toBe(false)
  expect(load.isLow(endMs + 11_000)).toBe(true)
})

/** A breaker that is open, and whose hook has accepted nothing. */
function openBreaker(load: SickLoad): Breaker {
  const breaker = new Breaker(settings, room, load)
  for (let count = 0; count < 10; count++) breaker.ended(breaker.begun(1, 'first'), 'failure', 1)
  expect(breaker.state).toBe('open')
  return breaker
}

const classes: readonly TryClass[] = ['only', 'first', 'last', 'between', 'again', 'probe']

test('while the load is low, an open breaker lets every try through, except probes of failover', () => {
  const load = new SickLoad({ share: 0.1, perSecond: 100 })
  const breaker = openBreaker(load)
  expect(classes.map((tryClass) => breaker.advise(tryClass, 2))).toEqual([
    'go',
    'go',
    'go',
    'go',
    'go',
    'skip',
  ])
  load.sick(2, 1_000)
  expect(classes.map((tryClass) => breaker.advise(tryClass, 3))).toEqual([
    'go',
    'go',
    'go',
    'skip',
    'skip',
    'skip',
  ])
})

test('tries that are refused count, so the load does not become low by refusing them', () => {
  const load = new SickLoad({ share: 0.1, perSecond: 100 })
  const breaker = openBreaker(load)
  let nowMs = pass(load, 0, 2, { sound: 0, sick: 500 })
  for (const endMs = nowMs + 60_000; nowMs < endMs; nowMs += 5) {
    expect(breaker.advise('again', nowMs)).toBe('skip')
    breaker.skipped(nowMs)
    if (nowMs % 1_000 === 0) breaker.begun(nowMs, 'first')
  }
})
