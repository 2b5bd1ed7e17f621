import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { createLanes, type Lanes } from '../../../src/delivery/lanes.ts'
import { until } from '../../support/until.ts'

type Delivery = { name: string; laneKey: string; laneCap: number; isAbandoned: boolean }

type Stage = {
  lanes: Lanes<Delivery>
  started: Delivery[]
  overflown: Delivery[]
  letGo: Delivery[]
}

const opened: Lanes<Delivery>[] = []

afterEach(() => {
  for (const lanes of opened.splice(0)) lanes.stop()
})

/** Lanes that note what they do. `onStart` may finish a delivery at once. */
function stage({
  maxInFlight = 100,
  waitMs = 60_000,
  onStart = () => {},
}: {
  maxInFlight?: number
  waitMs?: number
  onStart?: (delivery: Delivery, lanes: Lanes<Delivery>) => void
} = {}): Stage {
  const started: Delivery[] = []
  const overflown: Delivery[] = []
  const letGo: Delivery[] = []
  const lanes = createLanes<Delivery>({
    maxInFlight,
    waitMs,
    start(one) {
      started.push(one)
      onStart(one, lanes)
    },
    overflow: (one) => overflown.push(one),
    letGo: (one) => letGo.push(one),
  })
  opened.push(lanes)
  return { lanes, started, overflown, letGo }
}

/** `a1` is the first delivery of lane `a`. */
function delivery(name: string, laneCap = 100): Delivery {
  return { name, laneKey: name.replace(/\d+$/, ''), laneCap, isAbandoned: false }
}

function offerAll(lanes: Lanes<Delivery>, names: string, laneCap?: number): Delivery[] {
  const deliveries = names.split(' ').map((name) => delivery(name, laneCap))
  for (const offered of deliveries) lanes.offer(offered)
  return deliveries
}

function namesOf(deliveries: readonly Delivery[]): string {
  return deliveries.map(({ name }) => name).join(' ')
}

describe('starting', () => {
  test('a delivery starts at once where there is room', () => {
    const { lanes, started } = stage()
    offerAll(lanes, 'a1')
    expect(namesOf(started)).toBe('a1')
    expect({ inFlight: lanes.inFlight, queued: lanes.queued }).toEqual({ inFlight: 1, queued: 0 })
  })

  test('a lane has no more in flight than its cap, and goes on in order when one is over', () => {
    const { lanes, started } = stage()
    const [first] = offerAll(lanes, 'a1 a2 a3 a4', 2)
    expect(namesOf(started)).toBe('a1 a2')
    expect({ inFlight: lanes.inFlight, queued: lanes.queued }).toEqual({ inFlight: 2, queued: 2 })
    if (first !== undefined) lanes.finished(first)
    expect(namesOf(started)).toBe('a1 a2 a3')
  })

  test('a lane at its cap holds no other back', () => {
    const { lanes, started } = stage()
    offerAll(lanes, 'a1 a2 a3 b1', 1)
    expect(namesOf(started)).toBe('a1 b1')
  })

  test('a cap that is raised holds from the next delivery on', () => {
    const { lanes, started } = stage()
    offerAll(lanes, 'a1 a2', 1)
    offerAll(lanes, 'a3', 3)
    expect(namesOf(started)).toBe('a1 a2 a3')
  })

  test('all lanes together have no more in flight than the limit', () => {
    const { lanes, started } = stage({ maxInFlight: 2 })
    const [first] = offerAll(lanes, 'a1 b1 c1')
    expect(namesOf(started)).toBe('a1 b1')
    if (first !== undefined) lanes.finished(first)
    expect(namesOf(started)).toBe('a1 b1 c1')
  })

  test('lanes that have work take turns, however long one of them is', async () => {
    const { lanes, started } = stage({
      maxInFlight: 1,
      onStart: (one, all) => setImmediate(() => all.finished(one)),
    })
    offerAll(lanes, 'a1 a2 a3 a4 a5 b1 b2 c1')
    await until('all have started', () => started.length === 8)
    expect(namesOf(started)).toBe('a1 a2 b1 c1 a3 b2 a4 a5')
  })

  test('deliveries that are over as soon as they start are no trouble, nor is their number', () => {
    const { lanes, started } = stage({ maxInFlight: 1, onStart: (one, all) => all.finished(one) })
    lanes.shut()
    for (let i = 0; i < 50_000; i++) lanes.offer(delivery(`a${i}`, 1))
    lanes.open()
    expect(started).toHaveLength(50_000)
    expect({ inFlight: lanes.inFlight, queued: lanes.queued }).toEqual({ inFlight: 0, queued: 0 })
  })

  test('thousands of lanes with work are no trouble', () => {
    const { lanes, started } = stage({ maxInFlight: 1, onStart: (one, all) => all.finished(one) })
    lanes.shut()
    const names = Array.from({ length: 6_000 }, (_, i) => `lane-${i % 3_000}-${i}`)
    for (const name of names) lanes.offer({ ...delivery(name), laneKey: name.replace(/-\d+$/, '') })
    lanes.open()
    expect(started.map(({ name }) => name)).toEqual(names)
  })

  test('one whose record is not ours any more is let go instead', () => {
    const { lanes, started, letGo } = stage()
    const [, second] = offerAll(lanes, 'a1 a2 a3', 1)
    if (second !== undefined) second.isAbandoned = true
    if (started[0] !== undefined) lanes.finished(started[0])
    expect(namesOf(started)).toBe('a1 a3')
    expect(namesOf(letGo)).toBe('a2')
    expect(lanes.queued).toBe(0)
  })
})

describe('overflow', () => {
  test('what has waited too long is handed on, oldest first, and what has not stays', async () => {
    const { lanes, overflown } = stage({ waitMs: 50 })
    offerAll(lanes, 'a1 a2 a3', 1)
    await until('those that waited are handed on', () => overflown.length >= 2)
    offerAll(lanes, 'a4', 1)
    expect(namesOf(overflown)).toBe('a2 a3')
    expect(lanes.queued).toBe(1)
  })

  test('nothing is handed on before its time', async () => {
    const waitMs = 80
    const { lanes, overflown } = stage({ waitMs })
    const startedMs = performance.now()
    offerAll(lanes, 'a1 a2', 1)
    await until('it is handed on', () => overflown.length > 0, { everyMs: 1 })
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(waitMs)
  })

  test('what is in flight is not handed on, however long it takes', async () => {
    const { lanes, overflown } = stage({ waitMs: 20 })
    offerAll(lanes, 'a1 a2', 1)
    await until('the one that waited is handed on', () => overflown.length > 0)
    expect(namesOf(overflown)).toBe('a2')
    expect(lanes.inFlight).toBe(1)
  })

  test('one whose record is not ours any more is let go instead', async () => {
    const { lanes, overflown, letGo } = stage({ waitMs: 20 })
    const [, second] = offerAll(lanes, 'a1 a2 a3', 1)
    if (second !== undefined) second.isAbandoned = true
    await until('the other is handed on', () => overflown.length > 0)
    expect(namesOf(overflown)).toBe('a3')
    expect(namesOf(letGo)).toBe('a2')
  })

  test('it happens while shut, too: waiting has an end even while Kafka is away', async () => {
    const { lanes, overflown } = stage({ waitMs: 20 })
    lanes.shut()
    offerAll(lanes, 'a1')
    expect(await until('it is handed on', () => namesOf(overflown) === 'a1')).toBe(true)
  })

  test('a lane that was emptied so takes new deliveries', async () => {
    const { lanes, started, overflown } = stage({ waitMs: 20 })
    lanes.shut()
    offerAll(lanes, 'a1')
    await until('it is handed on', () => overflown.length > 0)
    lanes.open()
    offerAll(lanes, 'a2')
    expect(namesOf(started)).toBe('a2')
  })
})

describe('shutting and draining', () => {
  test('nothing starts while shut, what is in flight goes on, and all starts when it opens', () => {
    const { lanes, started } = stage()
    const [first] = offerAll(lanes, 'a1')
    lanes.shut()
    offerAll(lanes, 'a2 b1')
    if (first !== undefined) lanes.finished(first)
    expect(namesOf(started)).toBe('a1')
    expect(lanes.inFlight).toBe(0)
    lanes.open()
    expect(namesOf(started)).toBe('a1 a2 b1')
  })

  test('draining gives back what was queued, lane by lane, and nothing that is in flight', () => {
    const { lanes, started } = stage()
    offerAll(lanes, 'a1 a2 b1 a3 b2', 1)
    lanes.shut()
    expect(namesOf(lanes.takeQueued())).toBe('a2 a3 b2')
    expect({ inFlight: lanes.inFlight, queued: lanes.queued }).toEqual({ inFlight: 2, queued: 0 })
    expect(lanes.takeQueued()).toEqual([])
    expect(namesOf(started)).toBe('a1 b1')
  })

  test('draining lets go of what is not ours any more', () => {
    const { lanes, letGo } = stage()
    const [, second] = offerAll(lanes, 'a1 a2 a3', 1)
    if (second !== undefined) second.isAbandoned = true
    expect(namesOf(lanes.takeQueued())).toBe('a3')
    expect(namesOf(letGo)).toBe('a2')
  })
})

describe('whatever happens in whatever order', () => {
  type Step =
    | { kind: 'offer'; lane: string; cap: number }
    | { kind: 'finish'; nth: number }
    | { kind: 'abandon'; nth: number }
    | { kind: 'shut' | 'open' | 'drain' }

  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('offer' as const),
        lane: fc.constantFrom('a', 'b', 'c', 'd'),
        cap: fc.integer({ min: 1, max: 3 }),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('finish' as const), nth: fc.nat(20) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('abandon' as const), nth: fc.nat(20) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constantFrom('shut' as const, 'open' as const, 'drain' as const) }),
    },
  )

  /** Plays the steps, and then finishes whatever runs until nothing is left. */
  function play(steps: readonly Step[], maxInFlight: number) {
    const running: Delivery[] = []
    const offered: Delivery[] = []
    const drained: Delivery[] = []
    let isShut = false
    const excesses: string[] = []
    const { lanes, started, letGo } = stage({
      maxInFlight,
      onStart(one) {
        running.push(one)
        if (isShut) excesses.push(`${one.name} started while shut`)
        if (one.isAbandoned) excesses.push(`${one.name} started though it is not ours any more`)
        if (running.length > maxInFlight) excesses.push(`${one.name} is over the limit of all`)
        const ofLane = running.filter(({ laneKey }) => laneKey === one.laneKey)
        if (ofLane.length > one.laneCap) excesses.push(`${one.name} is over its lane's cap`)
      },
    })
    const finish = (nth: number): void => {
      const [over] = running.splice(nth % Math.max(1, running.length), 1)
      if (over !== undefined) lanes.finished(over)
    }
    // A lane's cap is that of its newest delivery: the same for all here.
    const caps = new Map<string, number>()
    for (const next of steps) {
      if (next.kind === 'offer') {
        const cap = caps.get(next.lane) ?? next.cap
        caps.set(next.lane, cap)
        const one = delivery(`${next.lane}${offered.length}`, cap)
        offered.push(one)
        lanes.offer(one)
      } else if (next.kind === 'finish') {
        finish(next.nth)
      } else if (next.kind === 'abandon') {
        const one = offered[next.nth]
        if (one !== undefined && !started.includes(one)) one.isAbandoned = true
      } else if (next.kind === 'drain') {
        drained.push(...lanes.takeQueued())
      } else if (next.kind === 'shut') {
        isShut = true
        lanes.shut()
      } else {
        isShut = false
        lanes.open()
      }
    }
    isShut = false
    lanes.open()
    while (running.length > 0) finish(0)
    lanes.stop()
    return { lanes, offered, started, drained, letGo, excesses }
  }

  const scripts = [fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 6 })] as const

  test('each delivery comes out once, and none is left behind', () => {
    fc.assert(
      fc.property(...scripts, (steps, maxInFlight) => {
        const { lanes, offered, started, drained, letGo } = play(steps, maxInFlight)
        const out = [...started, ...drained, ...letGo].map(({ name }) => name)
        expect(out.toSorted()).toEqual(offered.map(({ name }) => name).toSorted())
        expect({ inFlight: lanes.inFlight, queued: lanes.queued }).toEqual({ inFlight: 0, queued: 0 })
      }),
      { numRuns: 1_000 },
    )
  })

  test('no cap is passed, and nothing starts while shut or when it is not ours any more', () => {
    fc.assert(
      fc.property(...scripts, (steps, maxInFlight) => {
        expect(play(steps, maxInFlight).excesses).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })

  test('a lane starts its deliveries in their order', () => {
    fc.assert(
      fc.property(...scripts, (steps, maxInFlight) => {
        const { offered, started } = play(steps, maxInFlight)
        for (const lane of ['a', 'b', 'c', 'd']) {
          const order = started.filter(({ laneKey }) => laneKey === lane).map((one) => offered.indexOf(one))
          expect(order).toEqual(order.toSorted((a, b) => a - b))
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('between two starts of one lane, each other lane that waited and had room has had its turn', () => {
    const backlogs = fc.record({ a: fc.nat(8), b: fc.nat(8), c: fc.nat(8) })
    fc.assert(
      fc.property(backlogs, fc.integer({ min: 1, max: 3 }), (backlog, maxInFlight) => {
        const { lanes, started } = stage({ maxInFlight })
        lanes.shut()
        for (const [lane, count] of Object.entries(backlog))
          for (let i = 0; i < count; i++) lanes.offer(delivery(`${lane}${i}`))
        lanes.open()
        for (let next = 0; next < started.length; next++) {
          const one = started[next]
          if (one !== undefined) lanes.finished(one)
        }
        lanes.stop()
        // The first of each lane that has one, then the second of each, and so on.
        const rounds = Array.from({ length: 8 }, (_, round) =>
          Object.entries(backlog).flatMap(([lane, count]) => (round < count ? [`${lane}${round}`] : [])),
        )
        expect(namesOf(started)).toBe(rounds.flat().join(' '))
      }),
      { numRuns: 1_000 },
    )
  })
})
