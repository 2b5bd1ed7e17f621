import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../support/until.ts'
import { keysOf, openLanes as setup, Parcel, stopLanes } from './parcel.ts'

afterEach(stopLanes)

describe('lanes', () => {
  test('what waits and was abandoned is let go at once, and the rest keeps its order', () => {
    const { lanes, started, letGo } = setup()
    const parcels = Array.from({ length: 9 }, (_, i) => new Parcel('a', String(i)))
    for (const parcel of parcels) lanes.offer(parcel)
    for (const parcel of parcels) parcel.isAbandoned = Number(parcel.name) % 2 === 1
    lanes.letGoAbandoned()
    expect(letGo.map(({ name }) => name)).toEqual(['5', '7'])
    expect({ queued: lanes.queued, inFlight: lanes.inFlight }).toEqual({ queued: 3, inFlight: 4 })
    for (const parcel of parcels.slice(0, 4)) lanes.finished(parcel)
    expect(started.map(({ name }) => name)).toEqual(['0', '1', '2', '3', '4', '6', '8'])
  })

  test('a lane has no more in flight than its cap, and goes on as its places become free', () => {
    const { lanes, started } = setup()
    for (let i = 0; i < 10; i++) lanes.offer(new Parcel('a', String(i)))
    expect(started.map(({ name }) => name)).toEqual(['0', '1', '2', '3'])
    lanes.finished(started[1] ?? new Parcel(''))
    expect(started.map(({ name }) => name)).toEqual(['0', '1', '2', '3', '4'])
  })

  test('lanes with work take turns, whatever the length of their queues', () => {
    const { lanes, started } = setup()
    lanes.shut()
    for (let i = 0; i < 50; i++) lanes.offer(new Parcel('a'))
    for (let i = 0; i < 2; i++) lanes.offer(new Parcel('b'))
    for (let i = 0; i < 2; i++) lanes.offer(new Parcel('c'))
    lanes.open()
    expect(keysOf(started)).toBe('abcabcaa')
  })

  test('a busy lane leaves half of the requests in flight to the others, two leave a third', () => {
    const { lanes, started } = setup({ maxInFlight: 90 })
    for (let i = 0; i < 200; i++) lanes.offer(new Parcel('a', '', { laneCap: 1_000 }))
    expect(started.length).toBe(45)
    for (let i = 0; i < 200; i++) lanes.offer(new Parcel('b', '', { laneCap: 1_000 }))
    for (let i = 0; i < 2_000; i++) {
      const first = started.shift()
      if (first === undefined) break
      lanes.finished(first)
      lanes.offer(new Parcel(first.laneKey, '', { laneCap: 1_000 }))
    }
    expect(lanes.inFlight).toBeGreaterThanOrEqual(58)
    expect(lanes.inFlight).toBeLessThanOrEqual(61)
  })

  test('while all classes wait, of ten turns seven are fresh, two retries and one a backfill', () => {
    const { lanes, started } = setup()
    lanes.shut()
    for (const laneClass of ['fresh', 'retry', 'backfill'] as const) {
      for (let i = 0; i < 50; i++) lanes.offer(new Parcel('a', laneClass, { laneClass, laneCap: 20 }))
    }
    lanes.open()
    const count = (name: string): number => started.filter((parcel) => parcel.name === name).length
    expect([count('fresh'), count('retry'), count('backfill')]).toEqual([14, 4, 2])
  })

  test('new messages that a lane has had no room for longer than its patience move on, and the others stay', async () => {
    const { lanes, overflowed } = setup({ patienceMs: 20, freeRecords: () => 10 })
    for (let i = 0; i < 14; i++) lanes.offer(new Parcel('a'))
    expect(overflowed.length).toBe(0)
    lanes.offer(new Parcel('a', 'first beyond'))
    await until('the lane sheds', () => {
      lanes.offer(new Parcel('a', 'later'))
      return overflowed.length > 0
    })
    lanes.offer(new Parcel('b'))
    expect(overflowed.every(({ laneKey }) => laneKey === 'a')).toBe(true)
  })

  test('a lane that sheds is as any other again once it is below half its share', async () => {
    const { lanes, started, overflowed } = setup({ patienceMs: 0, freeRecords: () => 10 })
    for (let i = 0; i < 30; i++) lanes.offer(new Parcel('a'))
    await until('the lane sheds', () => {
      lanes.offer(new Parcel('a'))
      return overflowed.length > 0
    })
    for (let i = 0; i < started.length; i++) lanes.finished(started[i] ?? new Parcel(''))
    expect(lanes.queued).toBe(0)
    const before = overflowed.length
    lanes.offer(new Parcel('a'))
    expect(overflowed.length).toBe(before)
  })

  test('late messages are waited for: the lane asks that fetching stops, and says when it can go on', () => {
    const { lanes, started, overflowed, congestion } = setup({ patienceMs: 0, freeRecords: () => 10 })
    for (let i = 0; i < 40; i++) lanes.offer(new Parcel('a', '', { isLate: true }))
    expect(congestion).toEqual([true])
    expect(overflowed).toEqual([])
    for (let i = 0; i < started.length; i++) lanes.finished(started[i] ?? new Parcel(''))
    expect(congestion).toEqual([true, false])
    expect(started.length).toBe(40)
  })

  test('nothing waits in a lane longer than the limit', async () => {
    const { lanes, overflowed, congestion } = setup({ waitMs: 50, freeRecords: () => 10 })
    for (let i = 0; i < 24; i++) lanes.offer(new Parcel('a', '', { isLate: true }))
    await until('all that waited has moved on', () => overflowed.length === 20)
    expect(congestion).toEqual([true, false])
  })

  test('a rate limit lets its burst through at once and the rest at its pace', async () => {
    const { lanes, started } = setup()
    const startedMs = performance.now()
    const laneRate = { perSecond: 50, burst: 5 }
    for (let i = 0; i < 15; i++) lanes.offer(new Parcel('a', '', { laneRate, laneCap: 100 }))
    expect(started.length).toBe(5)
    await until('all have started', () => started.length === 15)
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(199)
  })

  test('a delivery for which nothing is sent after all uses nothing of the rate limit', () => {
    const sent: string[] = []
    const { lanes } = setup({
      start(parcel) {
        if (parcel.name === 'nothing') lanes.sentNothing(parcel)
        else sent.push(parcel.name)
      },
    })
    const laneRate = { perSecond: 0.01, burst: 1 }
    for (const name of ['nothing', 'nothing', 'first', 'second'])
      lanes.offer(new Parcel('a', name, { laneRate }))
    expect(sent).toEqual(['first'])
  })

  test('a lane that has sent its burst and run empty does not begin with a new one', () => {
    const { lanes, started } = setup()
    const laneRate = { perSecond: 1, burst: 2 }
    for (let i = 0; i < 2; i++) lanes.offer(new Parcel('a', '', { laneRate }))
    for (const parcel of started.slice(0, 2)) lanes.finished(parcel)
    lanes.offer(new Parcel('a', '', { laneRate }))
    expect(started.length).toBe(2)
  })

  test.each([
    ['raised', { perSecond: 1_000, burst: 1_000 }],
    ['removed', undefined],
  ])('what waits for a rate limit does not wait its old time after the limit is %s', async (_, laneRate) => {
    const { lanes, started } = setup()
    const slow = { perSecond: 0.01, burst: 1 }
    for (const name of ['first', 'waits']) lanes.offer(new Parcel('a', name, { laneRate: slow }))
    expect(started.map(({ name }) => name)).toEqual(['first'])
    lanes.offer(new Parcel('a', 'after the edit', { laneRate }))
    await until('all have started', () => started.length === 3)
    expect(started.map(({ name }) => name)).toEqual(['first', 'waits', 'after the edit'])
  })

  test('a lane is spare while nothing of it waits and its whole burst is there', () => {
    const { lanes } = setup()
    const laneRate = { perSecond: 0.01, burst: 2 }
    expect(lanes.isSpare('a')).toBe(true)
    lanes.offer(new Parcel('a', '', { laneRate }))
    expect([lanes.isSpare('a'), [...lanes.rated()]]).toEqual([false, []])
    for (let i = 0; i < 2; i++) lanes.offer(new Parcel('a', '', { laneRate }))
    for (let i = 0; i < 9; i++) lanes.offer(new Parcel('unlimited'))
    expect([...lanes.rated()]).toEqual(['a'])
  })

  test('a lower rate counts at once, so that nothing of the former rate is left over', () => {
    let rate = { perSecond: 1_000, burst: 100 }
    const { lanes, started } = setup({ limitsOf: () => ({ cap: 1_000, rate }) })
    const offer = () => lanes.offer(new Parcel('a', '', { laneRate: rate, laneCap: 1_000 }))
    offer()
    rate = { perSecond: 0.01, burst: 1 }
    lanes.renewLimits('a')
    for (let i = 0; i < 9; i++) offer()
    expect(started).toHaveLength(2)
  })

  test('a postponed delivery is started again when its time has come, and its lane starts nothing before', async () => {
    const { lanes, started } = setup()
    const parcel = new Parcel('a', 'postponed', { laneCap: 1 })
    lanes.offer(parcel)
    const atMs = performance.now()
    lanes.postpone(parcel, 50)
    lanes.offer(new Parcel('a', 'next', { laneCap: 1 }))
    expect(started.length).toBe(1)
    await until('it is started again', () => started.length === 2)
    expect(performance.now() - atMs).toBeGreaterThanOrEqual(49)
  })

  test('a lane starts a postponed delivery again within a second after its pause was ended', async () => {
    const { lanes, started } = setup()
    const parcel = new Parcel('a', 'postponed')
    lanes.offer(parcel)
    lanes.postpone(parcel, 1_000_000)
    lanes.endPause('a')
    lanes.endPause('unknown')
    await until('it is started again', () => started.length === 2)
    expect(started).toEqual([parcel, parcel])
  })

  test('a postponed delivery is started before those that came later', async () => {
    const { lanes, started } = setup()
    const parcels = ['first', 'second', 'third'].map((id) => new Parcel('a', id, { laneCap: 1 }))
    for (const parcel of parcels) lanes.offer(parcel)
    lanes.postpone(parcels[0] ?? new Parcel('a'), 20)
    for (const parcel of parcels) {
      await until('the next one is started', () => started.at(-1) === parcel && lanes.inFlight === 1)
      lanes.finished(parcel)
    }
    expect(started.slice(1)).toEqual(parcels)
  })

  test.each([
    ['in line', { maxInFlight: 4 }, 4],
    ['blocked', { maxInFlight: 6 }, 100],
  ])('a lane that is %s starts nothing while a postponed delivery waits', async (_place, limits, laneCap) => {
    const { lanes, started } = setup(limits)
    lanes.shut()
    for (let i = 0; i < 8; i++) lanes.offer(new Parcel('a', String(i), { laneCap }))
    lanes.open()
    const before = started.length
    const atMs = performance.now()
    for (const parcel of started.slice(0, before)) lanes.postpone(parcel, 50)
    expect(started.length).toBe(before)
    lanes.offer(new Parcel('b'))
    expect(keysOf(started.slice(before))).toBe('b')
    await until('it starts again', () => started.length > before + 1)
    expect(performance.now() - atMs).toBeGreaterThanOrEqual(49)
  })

  test('deliveries that are postponed at their start wait, however many there are', async () => {
    let starts = 0
    const { lanes } = setup({
      start(parcel) {
        starts++
        if (starts > 1_000) throw new Error('it goes round without a pause')
        // After the second start, the wait is so long that nothing goes on after the end of the test.
        lanes.postpone(parcel, starts === 1 ? 50 : 1_000_000)
      },
    })
    for (let i = 0; i < 20; i++) lanes.offer(new Parcel('a', String(i)))
    expect(starts).toBe(1)
    expect(lanes.queued).toBe(20)
    await until('one is tried again', () => starts === 2)
  })

  test('what is abandoned is let go when its turn comes', () => {
    const { lanes, started, letGo } = setup()
    lanes.shut()
    const parcel = new Parcel('a')
    lanes.offer(parcel)
    lanes.offer(new Parcel('a', 'kept'))
    parcel.isAbandoned = true
    lanes.open()
    expect(letGo).toEqual([parcel])
    expect(started.map(({ name }) => name)).toEqual(['kept'])
  })

  test('draining gives back what is queued, and nothing that is in flight', () => {
    const { lanes, started, letGo } = setup()
    for (let i = 0; i < 6; i++) lanes.offer(new Parcel('a', String(i)))
    const gone = new Parcel('a', 'gone', { isAbandoned: true })
    lanes.offer(gone)
    lanes.shut()
    expect(lanes.takeQueued(() => true).map(({ name }) => name)).toEqual(['4', '5'])
    expect(letGo).toEqual([gone])
    expect([started.length, lanes.inFlight, lanes.queued]).toEqual([4, 4, 0])
  })

  test('while shut nothing has waited too long, and after it what is still held up has its whole time', async () => {
    const { lanes, started, overflowed } = setup({ waitMs: 100 })
    lanes.offer(new Parcel('other', '', { laneCap: 1 }))
    lanes.offer(new Parcel('other', 'moves on while open', { laneCap: 1 }))
    await until('a sweep has passed', () => overflowed.length === 1)
    lanes.shut()
    const shutMs = performance.now()
    for (const name of ['begins', 'waits']) lanes.offer(new Parcel('a', name, { laneCap: 1 }))
    await until('it was shut for longer than the limit', () => performance.now() - shutMs > 250)
    expect(overflowed).toHaveLength(1)
    lanes.open()
    const openedMs = performance.now()
    expect(started.map(({ name }) => name)).toEqual(['', 'begins'])
    await until('what waits has moved on', () => overflowed.length === 2)
    expect(performance.now() - openedMs).toBeGreaterThanOrEqual(100)
  })

  test('a lane that only waits for its turn is not to blame: nothing of it moves on', async () => {
    const { lanes, overflowed } = setup({ maxInFlight: 3, waitMs: 30, patienceMs: 0, freeRecords: () => 2 })
    for (const lane of ['a', 'b', 'c']) lanes.offer(new Parcel(lane, 'in flight', { laneCap: 1 }))
    for (let i = 0; i < 5; i++) lanes.offer(new Parcel('waits for its turn', String(i)))
    lanes.offer(new Parcel('a', 'held up by its cap', { laneCap: 1 }))
    await until('what is held up has moved on', () => overflowed.length > 0)
    expect(overflowed.map(({ name }) => name)).toEqual(['held up by its cap'])
    expect(lanes.queued).toBe(5)
  })

  test('a cap that changes with the catalog holds from the next delivery on', () => {
    const { lanes, started } = setup()
    for (let i = 0; i < 8; i++) lanes.offer(new Parcel('a', '', { laneCap: 2 }))
    lanes.offer(new Parcel('a', '', { laneCap: 5 }))
    expect(started.length).toBe(5)
  })

  test('idle lanes are let go, and those with work are kept', async () => {
    const { lanes, started } = setup({ idleMs: 20 })
    for (let i = 0; i < 100; i++) lanes.offer(new Parcel(`lane ${i}`))
    expect(lanes.count).toBe(100)
    for (const parcel of started.slice(1)) lanes.finished(parcel)
    await until('the idle lanes are let go', () => lanes.count === 1)
    lanes.offer(new Parcel('lane 0'))
    expect(lanes.inFlight).toBe(2)
  })

  test('a lane that has nothing to do is kept for a while: its next message needs none made', async () => {
    const idleMs = 50
    const { lanes, started } = setup({ idleMs })
    lanes.offer(new Parcel('lane'))
    const idleSinceMs = performance.now()
    for (const parcel of started) lanes.finished(parcel)
    await until('it is let go', () => lanes.count === 0)
    expect(performance.now() - idleSinceMs).toBeGreaterThanOrEqual(idleMs)
  })

  test('for any traffic: caps hold, nothing is lost, and all is started in the end', () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({
          kind: fc.constant('offer' as const),
          lane: fc.integer({ min: 0, max: 5 }),
          late: fc.boolean(),
          retry: fc.boolean(),
        }),
        fc.record({ kind: fc.constant('finish' as const), pick: fc.nat() }),
      ),
      { maxLength: 400 },
    )
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 20 }),
        (history, maxInFlight, room) => {
          let held = 0
          const { lanes, started, overflowed } = setup({
            maxInFlight,
            patienceMs: 0,
            freeRecords: () => room * 2 - held,
          })
          const flying: Parcel[] = []
          let offered = 0
          let seen = 0
          const check = (): void => {
            for (; seen < started.length; seen++) flying.push(started[seen] ?? new Parcel(''))
            held = offered - overflowed.length - (started.length - flying.length)
            expect(flying.length).toBe(lanes.inFlight)
            expect(flying.length).toBeLessThanOrEqual(maxInFlight)
            for (const key of '012345') {
              expect(flying.filter(({ laneKey }) => laneKey === key).length).toBeLessThanOrEqual(4)
            }
            expect(lanes.queued + started.length + overflowed.length).toBe(offered)
          }
          for (const step of history) {
            if (step.kind === 'offer') {
              offered++
              const laneClass = step.retry ? 'retry' : 'fresh'
              lanes.offer(new Parcel(String(step.lane), '', { isLate: step.late, laneClass }))
            } else if (flying.length > 0) {
              const [parcel] = flying.splice(step.pick % flying.length, 1)
              if (parcel !== undefined) lanes.finished(parcel)
            }
            check()
          }
          while (flying.length > 0) {
            const parcel = flying.shift()
            if (parcel !== undefined) lanes.finished(parcel)
            check()
          }
          expect(lanes.queued).toBe(0)
          expect(lanes.inFlight).toBe(0)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
