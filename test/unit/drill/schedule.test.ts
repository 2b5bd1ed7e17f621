import { expect, test } from 'vitest'
import { lanes, scheduleOf } from '../../../drill/schedule.ts'

const minute = 60_000

test('the same seed gives the same faults, another one others', () => {
  const first = scheduleOf({ seed: 7, lengthMs: 10 * minute })
  expect(scheduleOf({ seed: 7, lengthMs: 10 * minute })).toEqual(first)
  expect(scheduleOf({ seed: 8, lengthMs: 10 * minute })).not.toEqual(first)
})

test('ten minutes have more than twenty kills of workers, and every kind of fault', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const kinds = scheduleOf({ seed, lengthMs: 10 * minute }).map(({ fault }) => fault.kind)
    expect(kinds.filter((kind) => kind === 'kill worker').length).toBeGreaterThan(20)
    expect(new Set(kinds).size).toBe(16)
  }
})

test('the shortest drill kills a worker and a broker too, and all lanes have something', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const schedule = scheduleOf({ seed, lengthMs: minute })
    const kinds = schedule.map(({ fault }) => fault.kind)
    expect(kinds).toContain('kill worker')
    expect(kinds).toContain('kill broker')
    expect(new Set(schedule.map(({ lane }) => lane))).toEqual(new Set(lanes))
  }
})

test('nothing begins while all starts, or too late to be over at the end', () => {
  const schedule = scheduleOf({ seed: 3, lengthMs: 2 * minute })
  expect(Math.min(...schedule.map(({ atMs }) => atMs))).toBeGreaterThanOrEqual(6_000)
  for (const { atMs, fault } of schedule) expect(atMs + fault.forMs).toBeLessThan(2 * minute)
  expect(schedule.map(({ atMs }) => atMs)).toEqual(schedule.map(({ atMs }) => atMs).toSorted((a, b) => a - b))
})
