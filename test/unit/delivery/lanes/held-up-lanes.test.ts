import { afterEach, describe, expect, test } from 'vitest'
import type { LaneLimits, LanesOptions } from '../../../../src/delivery/lanes/lanes-ports.ts'
import { standStill } from '../../../support/stand-still.ts'
import { until } from '../../../support/until.ts'
import { keysOf, openLanes, Parcel, stopLanes } from './parcel.ts'

/** Tests of lanes that must not start more deliveries now, and of the moment at which they may again. */

afterEach(stopLanes)

const lateMs = 900

describe('a process that stood still', () => {
  test('has let nothing wait: all of it has its whole time when the process goes on', async () => {
    const waitMs = 400
    const { lanes, overflowed } = openLanes({ waitMs })
    for (const name of ['in flight', 'waits']) lanes.offer(new Parcel('a', name, { laneCap: 1 }))
    standStill(lateMs)
    const onMs = performance.now()
    await until('what waits has moved on', () => overflowed.length === 1)
    expect(performance.now() - onMs).toBeGreaterThan(waitMs / 2)
  })

  test('keeps what comes before its answers are read, though a lane was over its share before', async () => {
    const { lanes, overflowed } = openLanes({ patienceMs: 500, freeRecords: () => 2 })
    for (let i = 0; i < 5; i++) lanes.offer(new Parcel('a', '', { laneCap: 1 }))
    standStill(lateMs)
    for (let i = 0; i < 5; i++) lanes.offer(new Parcel('a', '', { laneCap: 1 }))
    expect(overflowed).toEqual([])
    await until('the lane sheds when its patience is over', () => {
      lanes.offer(new Parcel('a', '', { laneCap: 1 }))
      return overflowed.length > 0
    })
  })
})

describe('a lane that holds its whole share of the requests in flight', () => {
  test('goes on when its own request ends, though another lane has waited for longer and can not', () => {
    const { lanes, started } = openLanes({ maxInFlight: 7 })
    for (const key of ['slow', 'quick'])
      for (let i = 0; i < 20; i++) lanes.offer(new Parcel(key, '', { laneCap: 100 }))
    expect(keysOf(started)).toBe('slowslowslowslowquickquick')
    for (let times = 0; times < 10; times++) {
      const done = started.findLast(({ laneKey }) => laneKey === 'quick')
      const before = started.length
      lanes.finished(done ?? new Parcel(''))
      expect(keysOf(started.slice(before))).toBe('quick')
    }
  })

  test('is never left without a request while there is room for one', () => {
    const { lanes, started } = openLanes({ maxInFlight: 20 })
    lanes.shut()
    for (const key of ['a', 'b', 'c', 'd', 'e', 'quick'])
      for (let i = 0; i < 200; i++) lanes.offer(new Parcel(key, '', { laneCap: 100 }))
    lanes.open()
    const under = new Set(started)
    for (let times = 0; times < 100; times++) {
      const quick = [...under].find(({ laneKey }) => laneKey === 'quick')
      expect(quick, `after ${times} requests`).toBeDefined()
      if (quick === undefined) return
      under.delete(quick)
      const before = started.length
      lanes.finished(quick)
      for (const parcel of started.slice(before)) under.add(parcel)
    }
  })
})

describe('lanes that fill the buffer together, though none of them holds more than its share', () => {
  const rate = { perSecond: 1, burst: 1 }

  /** Offers deliveries to each of many lanes that may start one in a second. */
  function fill(settings: Partial<LanesOptions<Parcel>>, parcel: Partial<Parcel> = {}, each = 3) {
    const all = openLanes({
      patienceMs: 300,
      isBufferFull: () => true,
      keepsOrder: () => true,
      limitsOf: () => ({ cap: 4, rate }),
      ...settings,
    })
    for (let lane = 0; lane < 20; lane++)
      for (let one = 0; one < each; one++)
        all.lanes.offer(new Parcel(`limited-${lane}`, '', { laneRate: rate, ...parcel }))
    return all
  }

  test('pass on what has waited, and what may start stays', async () => {
    const { lanes, overflowed, started } = fill({})
    await until('they have passed on what waits', () => overflowed.length === 40)
    expect([lanes.queued, started.length]).toEqual([0, 20])
    // While that goes on, further ones don't wait there first.
    lanes.offer(new Parcel('limited-0', 'next', { laneRate: { perSecond: 0.1, burst: 1 } }))
    lanes.offer(new Parcel('free', 'free'))
    expect([overflowed.at(-1)?.name, started.at(-1)?.name]).toEqual(['next', 'free'])
  })

  test.for([
    ['the buffer has room', { isBufferFull: () => false }, {}],
    ['nothing could start in their place', { maxInFlight: 20 }, {}],
    ['no queue keeps the order', { keepsOrder: () => false }, {}],
    ['the worker catches up', {}, { isLate: true }],
  ] as const)('keep it while %s', async ([, settings, parcel]) => {
    const startMs = performance.now()
    const { overflowed } = fill(settings, parcel)
    await until('four times their patience has passed', () => performance.now() - startMs > 1_200)
    expect(overflowed).toEqual([])
  })

  test('pass it on after a longer time while the worker catches up, though each takes one a second', async () => {
    const { lanes, overflowed, started } = fill({ waitMs: 1_500 }, { isLate: true }, 1)
    await until('they have passed on what waits', () => {
      // Each waits for a second at most.
      for (let lane = 0; lane < 20; lane++)
        if (lanes.queuedIn(`limited-${lane}`) === 0 && overflowed.length === 0)
          lanes.offer(new Parcel(`limited-${lane}`, '', { laneRate: rate, isLate: true }))
      return overflowed.length > 0
    })
    expect(started.length).toBeGreaterThanOrEqual(40)
  })
})

describe('a lane with deliveries from its queue in Kafka', () => {
  test('passes on the new ones behind them, which would hold up their partition', async () => {
    const { lanes, overflowed } = openLanes({ waitMs: 100, keepsOrder: () => true })
    const offer = (name: string, isFromQueue: boolean): void =>
      lanes.offer(new Parcel('slow', name, { laneCap: 1, isFromQueue }))
    for (const name of ['in flight', 'from the queue', 'from the queue too']) offer(name, true)
    for (const name of ['new', 'newer']) offer(name, false)
    await until('the new ones have moved on', () => overflowed.length === 2)
    expect(overflowed.map(({ name }) => name)).toEqual(['new', 'newer'])
    expect(lanes.queuedIn('slow')).toBe(2)
  })
})

test('a blocked lane goes on when a request of another one ends that has no token for a further request', () => {
  const { lanes, started } = openLanes({ maxInFlight: 4 })
  const laneRate = { perSecond: 0.01, burst: 2 }
  for (let i = 0; i < 4; i++) lanes.offer(new Parcel('rated', '', { laneCap: 100, laneRate }))
  for (let i = 0; i < 4; i++) lanes.offer(new Parcel('slow', '', { laneCap: 100 }))
  expect(keysOf(started)).toBe('ratedratedslow')
  lanes.finished(started[0] ?? new Parcel(''))
  expect(keysOf(started.slice(3))).toBe('slow')
})

const last = (name: string): Parcel => new Parcel('a', name, { laneCap: 1, laneClass: 'retry' })
const fresh = (name: string): Parcel => new Parcel('a', name, { laneCap: 1 })
const isNoLast = ({ name }: Parcel): boolean => !name.startsWith('last')
const namesOf = (parcels: readonly Parcel[]): string[] => parcels.map(({ name }) => name)

describe('a delivery that can wait nowhere but in its lane', () => {
  test('stays however long it waits, and keeps its turn', async () => {
    const { lanes, started, overflowed } = openLanes({ waitMs: 50, mayOverflow: isNoLast })
    for (const parcel of [fresh('in flight'), last('last'), fresh('new')]) lanes.offer(parcel)
    await until('what is new has moved on', () => overflowed.length > 0)
    for (const parcel of [fresh('newer'), last('last but later')]) lanes.offer(parcel)
    await until('this has moved on as well', () => overflowed.length > 1)
    expect(namesOf(overflowed)).toEqual(['new', 'newer'])
    expect(lanes.queued).toBe(2)
    for (let times = 0; times < 3; times++) lanes.finished(started.at(-1) ?? new Parcel(''))
    expect(namesOf(started)).toEqual(['in flight', 'last', 'last but later'])
    expect(lanes.queued).toBe(0)
  })

  test('is let go and taken out as any other', async () => {
    const { lanes, overflowed, letGo } = openLanes({ waitMs: 50, mayOverflow: isNoLast })
    const abandoned = last('last 1')
    for (const parcel of [fresh('in flight'), abandoned, last('last 2'), fresh('new')]) lanes.offer(parcel)
    await until('what is new has moved on', () => overflowed.length > 0)
    abandoned.isAbandoned = true
    lanes.letGoAbandoned()
    expect(namesOf(letGo)).toEqual(['last 1'])
    expect(namesOf(lanes.takeQueued(() => true))).toEqual(['last 2'])
    expect(lanes.queued).toBe(0)
  })

  test('takes the place of a new message in a full lane, and none if there is no such place', async () => {
    const { lanes, overflowed } = openLanes({ patienceMs: 0, freeRecords: () => 2, mayOverflow: isNoLast })
    await until('the lane sheds', () => {
      lanes.offer(fresh(`new ${lanes.queued}`))
      return overflowed.length > 0
    })
    const { queued } = lanes
    overflowed.length = 0
    for (let i = 0; i <= queued; i++) lanes.offer(last(`last ${i}`))
    expect(lanes.queued).toBe(queued)
    expect(namesOf(overflowed).at(0)).toBe('new 0')
    expect(
      namesOf(overflowed)
        .slice(0, -1)
        .every((name) => name.startsWith('new')),
    ).toBe(true)
    expect(namesOf(overflowed).at(-1)).toBe(`last ${queued}`)
  })

  test('moves on all the same while its lane holds more than its share', async () => {
    const { lanes, overflowed } = openLanes({ waitMs: 50, freeRecords: () => 3, mayOverflow: isNoLast })
    lanes.offer(fresh('in flight'))
    for (let i = 1; i <= 6; i++) lanes.offer(last(`last ${i}`))
    await until('those above its share have moved on', () => lanes.queued <= 3)
    expect(namesOf(overflowed)).toEqual(['last 1', 'last 2', 'last 3'])
    expect(lanes.queued).toBe(3)
  })
})

function lanesWith(limits: LaneLimits) {
  const now = { limits }
  return { now, ...openLanes({ limitsOf: () => now.limits }) }
}

function offerAll(lanes: ReturnType<typeof openLanes>['lanes'], { cap, rate }: LaneLimits): void {
  for (let i = 0; i < 8; i++) lanes.offer(new Parcel('a', String(i), { laneCap: cap, laneRate: rate }))
}

describe('limits that change while a lane gets nothing new', () => {
  test('let more go: a rate that is raised', async () => {
    const slow = { cap: 100, rate: { perSecond: 0.01, burst: 1 } }
    const { now, lanes, started } = lanesWith(slow)
    offerAll(lanes, slow)
    expect(started).toHaveLength(1)
    now.limits = { cap: 100, rate: undefined }
    await until('all have started', () => started.length === 8)
  })

  test('let more go: a limit on requests in flight that is raised', async () => {
    const few = { cap: 1, rate: undefined }
    const { now, lanes, started } = lanesWith(few)
    offerAll(lanes, few)
    expect(started).toHaveLength(1)
    now.limits = { cap: 5, rate: undefined }
    await until('as many have started', () => started.length === 5)
  })

  test('let fewer go: a rate that is set while a lane waits for its requests in flight', async () => {
    const some = { cap: 2, rate: undefined }
    const { now, lanes, started } = lanesWith(some)
    offerAll(lanes, some)
    now.limits = { cap: 2, rate: { perSecond: 0.01, burst: 1 } }
    const editedMs = performance.now()
    await until('it is in force', () => performance.now() - editedMs > 500)
    for (let index = 0; index < started.length; index++) lanes.finished(started[index] ?? new Parcel(''))
    expect(started).toHaveLength(3)
  })

  test('let fewer go: a limit on requests in flight that is lowered, though those in flight know the old one', async () => {
    const many = { cap: 5, rate: undefined }
    const { now, lanes, started } = lanesWith(many)
    offerAll(lanes, many)
    expect(started).toHaveLength(5)
    now.limits = { cap: 1, rate: undefined }
    const editedMs = performance.now()
    await until('it is in force', () => performance.now() - editedMs > 500)
    for (let index = 0; index < 4; index++) lanes.finished(started[index] ?? new Parcel(''))
    expect(started).toHaveLength(5)
    lanes.finished(started[4] ?? new Parcel(''))
    expect(started).toHaveLength(6)
  })
})
