import { expect, test } from 'vitest'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { roomyBulkhead } from '../../support/bulkhead.ts'
import { until } from '../../support/until.ts'
import { type Destination, destinationOf, stage, type Stage, startMs, taken } from './stage.ts'
import type { OutboundRecord } from '../../../src/pipeline/pipeline-ports.ts'

/** Tests in which the catalog changes a destination while its messages wait or are under way. */

const unreachable: Outcome = { kind: 'connection', code: 'ECONNREFUSED' }

function catalogOf(destination: Destination) {
  return {
    sources: new Map([['space', { enabled: true, kind: 'audiences' as const }]]),
    destinations: new Map([[destination.id, destination]]),
    destinationsBySource: new Map([['space', [destination]]]),
  }
}

function failover(settings: Partial<Destination> = {}): Destination {
  return destinationOf('crm', {
    strategy: 'failover',
    hooks: ['first', 'second'].map((id) => ({ id, origin: `https://${id}.example`, path: '/', headers: [] })),
    ...settings,
  })
}

/** Returns the record of a delivery whose next try is its last one. */
function lastTryOf(all: Stage): OutboundRecord {
  const waiting = all.written.shift()
  if (waiting === undefined) throw new Error('nothing was written')
  return { ...waiting, headers: { ...waiting.headers, 'expires-at': String(startMs + 1_000) } }
}

test.each([
  ['switched off', { state: 'off' as const }],
  ['given another secret', { sharedSecret: 'another secret' }],
])('no further URL of a destination is asked once it was %s', async (_, edit) => {
  let catalog = catalogOf(failover())
  const all = stage({ catalog: () => catalog })
  const record = all.identify('1')
  expect(all.posted.map(({ to }) => to)).toEqual(['first'])
  catalog = catalogOf(failover(edit))
  await all.answer(unreachable)
  expect(all.posted).toEqual([])
  expect(all.told).toEqual(['parked crm 1: failed'])
  expect([record.settled, all.pipeline.held.records]).toEqual([1, 0])
})

test.each([
  ['given another secret', { sharedSecret: 'another secret' }, []],
  ['paused', { state: 'paused' as const }, ['parked crm last: paused']],
])(
  'a last try is not over while a URL is left that was not asked since the destination was %s',
  async (_, edit, told) => {
    let catalog = catalogOf(failover())
    const all = stage({ catalog: () => catalog })
    all.identify('last')
    for (let url = 0; url < 2; url++) await all.answer(unreachable)
    all.told.length = 0
    const record = all.retry(lastTryOf(all))
    await all.settle()
    catalog = catalogOf(failover(edit))
    await all.answer(unreachable)
    await until('it goes on', () => all.told.length + all.posted.length > 0)
    expect(all.told).toEqual(told)
    if (all.posted.length > 0) {
      await all.answer(unreachable)
      expect(all.posted.map(({ to }) => to)).toEqual(['second'])
      await all.answer(taken)
      expect(all.told).toEqual(['delivered crm last'])
    }
    expect([record.settled, all.pipeline.held.records, all.pipeline.inFlight]).toEqual([1, 0, 0])
    all.pipeline.stop()
  },
)

test('an edit of another destination holds up no URL of this one', async () => {
  const crm = failover()
  let catalog = catalogOf(crm)
  const all = stage({ catalog: () => catalog })
  all.identify('1')
  catalog = catalogOf(crm)
  catalog.destinations.set('other', destinationOf('other'))
  await all.answer(unreachable)
  expect(all.posted.map(({ to }) => to)).toEqual(['second'])
  await all.answer(taken)
  expect(all.told).toEqual(['delivered crm 1'])
})

test('a URL that is asked after another one gets the signature of its own time: the former secret may have ended', async () => {
  let nowMs = startMs
  const signatures: string[] = []
  const outcomes = [unreachable, taken]
  const all = stage({
    destinations: [
      failover({
        sharedSecret: 'former secret',
        nextSharedSecret: 'next secret',
        sharedSecretEndsAtMs: startMs + 1,
      }),
    ],
    now: () => nowMs,
    sender: {
      post(_target, _body, signature, exchange) {
        signatures.push(signature.join(' '))
        nowMs += 5_000
        queueMicrotask(() => {
          exchange.answered(outcomes.shift() ?? taken, false)
          exchange.released()
        })
      },
      async close() {},
    },
  })
  all.identify('1')
  await all.settle()
  expect(all.told).toEqual(['delivered crm 1'])
  const signing = stage({
    destinations: [destinationOf('crm', { sharedSecret: 'next secret' })],
    sender: {
      post(_target, _body, signature, exchange) {
        signatures.push(signature.join(' '))
        exchange.answered(taken, false)
        exchange.released()
      },
      async close() {},
    },
  })
  signing.identify('1')
  const [first, second, next] = signatures
  expect(second).toBe(next)
  expect(first).not.toBe(next)
})

test('a rate limit that the catalog removes holds up nothing of what waits, though nothing new comes', async () => {
  let catalog = catalogOf(destinationOf('crm', { rateLimit: { perSecond: 0.01, burst: 1 } }))
  const all = stage({ catalog: () => catalog })
  for (const user of ['a', 'b', 'c']) all.identify(user, { userId: user })
  expect(all.bodies()).toEqual(['a'])
  catalog = catalogOf(destinationOf('crm'))
  await until('all are under way', () => all.posted.length === 3)
  all.pipeline.stop()
})

test('a rate limit that the catalog adds holds for what waits, though nothing new comes', async () => {
  let catalog = catalogOf(destinationOf('crm', { maxInFlight: 1 }))
  const all = stage({ catalog: () => catalog })
  for (const user of ['a', 'b', 'c', 'd', 'e']) all.identify(user, { userId: user })
  catalog = catalogOf(destinationOf('crm', { maxInFlight: 1, rateLimit: { perSecond: 0.01, burst: 2 } }))
  const editedMs = performance.now()
  await until('the edit is in force', () => performance.now() - editedMs > 500)
  for (let times = 0; times < 3; times++) await all.answer(taken)
  expect(all.bodies()).toEqual([])
  expect(all.told).toEqual(['delivered crm a', 'delivered crm b', 'delivered crm c'])
  all.pipeline.stop()
})

const endings = [
  [{ state: 'paused' as const }, 'parked crm last: paused'],
  [{ state: 'auto_paused' as const }, 'parked crm last: paused'],
  [{ state: 'off' as const }, 'dead crm: destination_off'],
] as const

test.each(endings)(
  'what waits in its lane for a last try ends as its destination says, which is now %o',
  async (edit, ending) => {
    let catalog = catalogOf(destinationOf('crm', { maxInFlight: 1 }))
    const all = stage({ catalog: () => catalog, laneWaitMs: 50 })
    all.identify('last')
    await all.answer(unreachable)
    all.identify('in flight', { userId: 'other' })
    all.retry(lastTryOf(all))
    await all.settle()
    catalog = catalogOf(destinationOf('crm', { maxInFlight: 1, ...edit }))
    all.told.length = 0
    await until('it has waited too long', () => all.told.length > 0)
    expect(all.told.filter((line) => !line.startsWith('behind'))).toEqual([ending])
    all.pipeline.stop()
  },
)

test.each(endings)(
  'what waits in the bulkhead for a last try ends as its destination says, which is now %o',
  async (edit, ending) => {
    let catalog = catalogOf(destinationOf('crm'))
    const all = stage({
      catalog: () => catalog,
      bulkhead: { ...roomyBulkhead, maxInFlight: 1 },
      breaker: { failureShare: 0.5, minResults: 2, windowMs: 10_000, openMs: 60_000, maxOpenMs: 60_000 },
    })
    for (const userId of ['last', 'other']) {
      all.identify(userId, { userId })
      await all.answer(unreachable)
    }
    all.identify('in flight', { userId: 'third' })
    await until('it is under way', () => all.posted.length === 1)
    all.retry(lastTryOf(all))
    await until('it waits', () => all.pipeline.paced.queued === 1)
    catalog = catalogOf(destinationOf('crm', edit))
    all.told.length = 0
    await all.answer(taken)
    await until('it has lost its turn', () => all.told.length > 1)
    expect(all.told.filter((line) => !line.startsWith('behind'))).toEqual(['delivered crm in flight', ending])
    expect(all.pipeline.held.records).toBe(0)
    all.pipeline.stop()
  },
)
