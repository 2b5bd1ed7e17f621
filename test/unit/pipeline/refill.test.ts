import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { createEndpoints } from '../../../src/delivery/endpoint.ts'
import type { LaneLimits } from '../../../src/delivery/lanes/lanes-ports.ts'
import { Logins } from '../../../src/delivery/login/logins.ts'
import type { Exchange } from '../../../src/delivery/send/sender.ts'
import { BufferAccount } from '../../../src/pipeline/buffer-account.ts'
import { Refill } from '../../../src/pipeline/refill.ts'
import { standStill } from '../../support/stand-still.ts'
import { until } from '../../support/until.ts'
import { type Destination, destinationOf, TestRecord } from './stage.ts'

const breaker = { failureShare: 1, minResults: 10, windowMs: 10_000, openMs: 0, maxOpenMs: 0 }
let refill: Refill | undefined

afterEach(() => refill?.stop())

/** What is known of a lane with small messages. */
const known = { inFlight: 0, usualBytes: 1 }

type Options = ConstructorParameters<typeof Refill>[0]

type Refilled = {
  readonly state?: Destination['state']
  readonly limitsOf?: () => LaneLimits | undefined
  readonly mayStartWithin?: (destinationId: string) => boolean
}

/**
 * Refills the lanes of many destinations, each with `each` messages in its queue in Kafka. No message is read
 * meanwhile, because a read takes longer. Returns how many were pulled of each destination.
 */
function refillMany(
  destinations: number,
  each: number,
  buffer: number,
  { state = 'on', limitsOf = () => undefined, mayStartWithin = () => true }: Refilled = {},
): number[] {
  const account = new BufferAccount({
    buffer: { records: buffer, bytes: Infinity },
    detached: { records: 0, bytes: 0 },
    onPressure: () => undefined,
  })
  const ids = Array.from({ length: destinations }, (_, index) => `d${index}`)
  const catalog = {
    destinations: new Map(ids.map((id) => [id, destinationOf(id, { state, maxInFlight: 64 })])),
  }
  const pulled = new Map<string, number>()
  let wanted = 0
  refill = new Refill({
    account,
    catalog: () => catalog,
    endpoints: createEndpoints({ breaker, shareOfGroup: () => 1, isNamed: false }),
    whileAutoPaused: 'wait',
    now: Date.now,
    lanes: { queuedIn: () => 0, sizesOf: () => known, setFed: () => undefined, mayStartWithin },
    limitsOf,
    queue: {
      get wanted() {
        return wanted
      },
      wantedOf: (id: string) => pulled.get(id) ?? 0,
      oldestOf: () => undefined,
      countOf: (id: string) => each - (pulled.get(id) ?? 0),
      waiting: () => ids,
      pull(id: string, _class: string, most: number) {
        const count = Math.min(most, each - (pulled.get(id) ?? 0))
        pulled.set(id, (pulled.get(id) ?? 0) + count)
        wanted += count
        return count
      },
    },
    isDraining: () => false,
  })
  for (const id of ids) refill.refill(id)
  return ids.map((id) => pulled.get(id) ?? 0)
}

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0)

test.for(['on', 'off'] as const)(
  'destinations that resume together pull no more messages than the buffer holds, and a quarter of it (%s)',
  (state) => {
    expect(sum(refillMany(5_000, 100, 10_000, { state }))).toBeLessThanOrEqual(12_500)
  },
)

test('when the buffer is full, each further destination still gets a message', () => {
  const counts = refillMany(1_500, 100, 1_000)
  expect(counts.filter((count) => count === 1).length).toBeGreaterThanOrEqual(200)
})

test('thousands of queues leave half of the buffer to new messages, and get no more than a part of that above it', () => {
  expect(sum(refillMany(5_000, 100, 10_000))).toBeLessThanOrEqual(6_250)
})

test('a destination with a rate limit holds ready what it sends in two seconds', () => {
  const rate = { perSecond: 3, burst: 3 }
  expect(refillMany(1, 1_000, 10_000, { limitsOf: () => ({ cap: 64, rate }) })).toEqual([6])
})

test('when room is scarce, it goes to those that may start soon', () => {
  const counts = refillMany(1_500, 100, 1_000, { mayStartWithin: (id) => Number(id.slice(1)) >= 1_000 })
  expect(counts.slice(0, 1_000).filter((count) => count > 0).length).toBeLessThan(100)
  expect(counts.slice(1_000).filter((count) => count === 1).length).toBeGreaterThanOrEqual(200)
})

test('a destination that is alone gets twice the messages that it may have in flight', () => {
  expect(refillMany(1, 1_000, 10_000)).toEqual([128])
})

const smallLanes = {
  queuedIn: () => 0,
  sizesOf: () => known,
  setFed: () => undefined,
  mayStartWithin: () => true,
}

/** A refill of destinations, of which only the queues have to be said. */
function openRefill(
  queue: Options['queue'],
  ids: readonly string[],
  account: Options['account'],
  others: Partial<Pick<Options, 'limitsOf' | 'lanes'>> = {},
) {
  const catalog = { destinations: new Map(ids.map((id) => [id, destinationOf(id, { maxInFlight: 64 })])) }
  refill = new Refill({
    account,
    catalog: () => catalog,
    endpoints: createEndpoints({ breaker, shareOfGroup: () => 1, isNamed: false }),
    whileAutoPaused: 'wait',
    now: Date.now,
    lanes: smallLanes,
    limitsOf: () => undefined,
    ...others,
    queue,
    isDraining: () => false,
  })
  return refill
}

test('what has no room in a look is among the first in the next one, so no destination is left out', async () => {
  const ids = Array.from({ length: 500 }, (_, index) => `d${index}`)
  const pulled = new Map<string, number>()
  const held = new Map<string, number>()
  const sumOf = (): number => sum([...held.values()])
  const queue = {
    get wanted() {
      return sumOf()
    },
    wantedOf: (id: string) => held.get(id) ?? 0,
    oldestOf: () => undefined,
    countOf: () => 1_000,
    waiting() {
      // Until the next look, all that was pulled is sent.
      held.clear()
      return ids
    },
    pull(id: string, queueClass: string, most: number) {
      if (queueClass !== 'fresh') return 0
      held.set(id, (held.get(id) ?? 0) + most)
      pulled.set(id, (pulled.get(id) ?? 0) + most)
      return most
    },
  }
  openRefill(queue, ids, { freePulled: 100, freePulledBytes: Infinity, maxPulled: 100 })
  await until('each destination has got some', () => pulled.size === ids.length)
  expect(pulled.get('d0')).toBeLessThan(100)
})

describe('the bytes of what a destination gets', () => {
  const mebi = 1024 ** 2

  /** Refills the lanes of destinations with large messages, until none of them gets more. */
  function fill(destinations: number, usualBytes: number): { counts: number[]; bytes: number } {
    const account = new BufferAccount({
      buffer: { records: 2_000, bytes: 64 * mebi },
      detached: { records: 0, bytes: 0 },
      onPressure: () => undefined,
    })
    const ids = Array.from({ length: destinations }, (_, index) => `d${index}`)
    const counts = new Map(ids.map((id) => [id, 0]))
    const lanes = {
      queuedIn: (id: string) => counts.get(id) ?? 0,
      sizesOf: (id: string) => (counts.get(id) === 0 ? undefined : { inFlight: 0, usualBytes }),
      setFed: () => undefined,
      mayStartWithin: () => true,
    }
    const queue = {
      wanted: 0,
      wantedOf: () => 0,
      oldestOf: () => undefined,
      countOf: () => 1_000,
      waiting: () => [],
      pull(id: string, queueClass: string, most: number) {
        if (queueClass !== 'fresh') return 0
        counts.set(id, (counts.get(id) ?? 0) + most)
        for (let one = 0; one < most; one++) account.hold(new TestRecord('waiting', one), 1, usualBytes, true)
        return most
      },
    }
    const opened = openRefill(queue, ids, account, { lanes })
    for (let rounds = 0; rounds < 20; rounds++) for (const id of ids) opened.refill(id)
    const all = [...counts.values()]
    return { counts: all, bytes: sum(all) * usualBytes }
  }

  test('one with large messages takes half of the room for pulled ones, and leaves the rest to others', () => {
    const { counts, bytes } = fill(1, 0.9 * mebi)
    expect(counts[0]).toBeGreaterThan(8)
    expect(bytes).toBeLessThanOrEqual(16 * mebi)
  })

  test('several of them leave room, and each has one', () => {
    const { counts, bytes } = fill(10, 0.9 * mebi)
    expect(Math.min(...counts)).toBeGreaterThan(0)
    expect(bytes).toBeLessThan(40 * mebi)
  })

  test('small messages are limited by their number', () => {
    expect(fill(1, 300).counts).toEqual([128])
  })
})

test('a look at a million queues does a little of it in each turn of the event loop', async () => {
  let inTurn = 0
  let isOver = false
  function* waiting(): Generator<string> {
    for (let one = 0; one < 1e6; one++) {
      inTurn++
      yield 'd0'
    }
    isOver = true
  }
  const queue = {
    wanted: 0,
    wantedOf: () => 0,
    oldestOf: () => undefined,
    countOf: () => 0,
    pull: () => 0,
    waiting,
  }
  openRefill(queue, ['d0'], { freePulled: 1_000, freePulledBytes: Infinity, maxPulled: 1_000 })
  const ofTurns: number[] = []
  const look = (): void => {
    ofTurns.push(inTurn)
    inTurn = 0
    if (!isOver) setImmediate(look)
  }
  look()
  await until('the look is over', () => isOver)
  expect(Math.max(...ofTurns)).toBeLessThan(5e5)
})

test('a look in which the process stood still does not put off the next one', async () => {
  const looksMs: number[] = []
  const queue = {
    wanted: 0,
    wantedOf: () => 0,
    oldestOf: () => undefined,
    countOf: () => 0,
    pull: () => 0,
    waiting() {
      looksMs.push(performance.now())
      if (looksMs.length === 1) standStill(1_000)
      return ['d0']
    },
  }
  openRefill(queue, ['d0'], { freePulled: 1_000, freePulledBytes: Infinity, maxPulled: 1_000 })
  await until('there was another look', () => looksMs.length === 2)
  const [first = 0, second = Infinity] = looksMs
  expect(second - first).toBeLessThan(15_000)
})

/** Pulls again and again with room for `room` deliveries, from queues with so many of each class. */
function pullFrom(left: Record<string, number>, room: number, times: number) {
  const order: string[] = []
  const queue = {
    wanted: 0,
    wantedOf: () => 0,
    oldestOf: () => undefined,
    countOf: () => 1,
    waiting: () => [],
    pull(_id: string, queueClass: string, most: number) {
      const count = Math.min(most, left[queueClass] ?? 0)
      left[queueClass] = (left[queueClass] ?? 0) - count
      order.push(...Array.from({ length: count }, () => queueClass))
      return count
    },
  }
  const rate = { perSecond: room / 2, burst: 1 }
  const opened = openRefill(
    queue,
    ['a'],
    { freePulled: 1_000, freePulledBytes: Infinity, maxPulled: 1_000 },
    { limitsOf: () => ({ cap: 64, rate }) },
  )
  for (let count = 0; count < times; count++) opened.refill('a')
  return order
}

describe('the classes of a queue', () => {
  test.for([1, 2, 3, 8, 20])('have their turns, however little room there is: %s', (room) => {
    const order = pullFrom({ fresh: 1e6, retry: 1e6, backfill: 1e6 }, room, 1_000)
    expect(order).toHaveLength(1_000 * room)
    const partOf = (queueClass: string): number =>
      order.filter((one) => one === queueClass).length / order.length
    expect([partOf('fresh'), partOf('retry'), partOf('backfill')].map((part) => part.toFixed(2))).toEqual([
      '0.70',
      '0.20',
      '0.10',
    ])
  })

  test('none of the newer messages overtakes the older ones', () => {
    const order = pullFrom({ front: 100, fresh: 1_000, retry: 1_000 }, 10, 50)
    expect(order.lastIndexOf('front')).toBeLessThan(order.indexOf('fresh'))
  })

  test('leave what they do not want to the others', () => {
    expect(pullFrom({ fresh: 0, retry: 3, backfill: 100 }, 10, 1).toSorted()).toEqual([
      ...Array.from({ length: 7 }, () => 'backfill'),
      ...Array.from({ length: 3 }, () => 'retry'),
    ])
  })
})

describe('while the login of a destination fails', () => {
  const login = {
    kind: 'oauth2',
    tokenOrigin: 'https://login.example',
    tokenPath: '/',
    clientId: 'sluice',
    clientSecret: 'secret',
    clientAuth: 'basic',
  } as const
  const hook = { id: 'hook', origin: 'https://crm.example', path: '/', headers: [], login }
  const crm = destinationOf('crm', { hooks: [hook] })

  /** `waitedMs`: since when the oldest message waits. Returns what was pulled of each class. */
  async function pulledAfter(failingMs: number, waitedMs: number, status = 503) {
    let nowMs = 1_000_000
    const body = Buffer.from(JSON.stringify({ access_token: 'token', expires_in: 3_600_000 }))
    const sender = {
      post: (_: unknown, _body: unknown, _own: unknown, exchange: Exchange) =>
        exchange.answered({ kind: 'answer', status, body }, false),
    }
    const logins = new Logins({ sender, now: () => nowMs })
    const endpoints = createEndpoints({ breaker, shareOfGroup: () => 1, isNamed: false, logins })
    const pulled: string[] = []
    refill = new Refill({
      account: { freePulled: 1_000, freePulledBytes: Infinity, maxPulled: 1_000 },
      catalog: () => ({ destinations: new Map([['crm', crm]]) }),
      endpoints,
      loginWaitMs: 60_000,
      now: () => nowMs,
      lanes: { queuedIn: () => 0, sizesOf: () => known, setFed: () => undefined, mayStartWithin: () => true },
      limitsOf: () => undefined,
      queue: {
        wanted: 0,
        wantedOf: () => 0,
        countOf: () => 100,
        oldestOf: () => nowMs - waitedMs,
        waiting: () => ['crm'],
        pull(_id: string, queueClass: string, most: number) {
          pulled.push(`${most} ${queueClass}`)
          return most
        },
      },
      isDraining: () => false,
    })
    endpoints.of(crm).hooks[0]?.login?.state()
    await turn()
    nowMs += failingMs
    refill.refill('crm')
    return pulled
  }

  test('nothing is pulled', async () => {
    expect(await pulledAfter(30_000, 90_000)).toEqual([])
    expect(await pulledAfter(90_000, 30_000)).toEqual([])
  })

  test('a few of each class are pulled to be given up, once it has lasted for delivery.loginWait', async () => {
    expect(await pulledAfter(60_000, 60_000)).toEqual(['2 front', '2 fresh', '2 retry', '2 backfill'])
  })

  test('not any more, as much is pulled as of others', async () => {
    expect((await pulledAfter(60_000, 60_000, 200)).length).toBeGreaterThan(0)
  })
})
