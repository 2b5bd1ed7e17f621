import { expect, test } from 'vitest'
import type { DeadReason } from '../../../src/message/dead-letter-reasons.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { judge } from '../../../src/delivery/outcomes/verdict.ts'
import { type EgressOutage, Watch } from '../../../src/notices/watch.ts'
import type { OpenHook } from '../../../src/pipeline/pipeline-ports.ts'
import { deliveryOf, idleRecord as record } from '../../support/idle-delivery.ts'

const minute = 60_000
/**
 * Starts the watch of one worker, on a monotonic clock that only the test moves. `aheadMs`: how far the
 * machine's clock is ahead of this monotonic clock.
 */
function startWatch() {
  const clock = { nowMs: 1_000 * minute, aheadMs: 0 }
  const network: { outage: EgressOutage | undefined } = { outage: undefined }
  const watch = new Watch({
    sourceId: 'sluice',
    failingAfterMs: 5 * minute,
    egressOutage: () => network.outage,
    monotonicMs: () => clock.nowMs,
    now: () => clock.nowMs + clock.aheadMs,
  })
  watch.isOn = true
  const { observer } = watch
  return {
    clock,
    network,
    watch,
    attempt: (outcome: Outcome, { source = 'shop', destination = 'crm' } = {}) => {
      const result = { hookId: 'main', outcome, verdict: judge(outcome), mayHaveArrived: false }
      observer.attempted(deliveryOf(source, destination), result, 1)
    },
    dies: (source = 'shop', reason: DeadReason = 'expired') =>
      observer.deadLettered(reason, '', record, deliveryOf(source, 'crm')),
    parks: (why: Parameters<typeof observer.parked>[1]) =>
      observer.parked(deliveryOf('shop', 'crm'), why, minute),
  }
}

const broken: Outcome = { kind: 'answer', status: 500 }
const well: Outcome = { kind: 'answer', status: 200 }
const openHook: OpenHook = { destinationId: 'crm', hookId: 'main', openForMs: 6 * minute }
const open: readonly OpenHook[] = [openHook]

test('an address to which Sluice refused to connect is not told', () => {
  const { clock, watch, attempt } = startWatch()
  for (let times = 0; times < 3; times++) {
    attempt({ kind: 'address', address: '10.20.30.40' })
    clock.nowMs += 3 * minute
  }
  expect(watch.take([]).failing).toMatchObject([{ lastOutcome: 'address not allowed' }])
})

test('a hook fails when nothing but failures came of it for long enough, and three at least', () => {
  const { clock, watch, attempt } = startWatch()
  const sinceMs = clock.nowMs
  attempt(broken)
  attempt({ kind: 'timeout' })
  clock.nowMs += 6 * minute
  expect(watch.take([]).failing).toEqual([])
  attempt({ kind: 'certificate', code: 'CERT_HAS_EXPIRED' })
  expect(watch.take([]).failing).toEqual([
    {
      destinationId: 'crm',
      hookId: 'main',
      sinceMs,
      lastFailedMs: clock.nowMs,
      lastOutcome: 'certificate CERT_HAS_EXPIRED',
    },
  ])
})

test('a hook does not fail because the clock was set forward', () => {
  const { clock, watch, attempt } = startWatch()
  for (let tries = 0; tries < 3; tries++) attempt(broken)
  clock.aheadMs += 60 * minute
  clock.nowMs += minute
  attempt(broken)
  expect(watch.take([]).failing).toEqual([])
})

test('where the clock was set back, a hook fails as soon as always, by the new clock', () => {
  const { clock, watch, attempt } = startWatch()
  for (let tries = 0; tries < 3; tries++) attempt(broken)
  const sinceMs = clock.nowMs
  watch.follow([{ destinationId: 'crm', hookId: 'main' }])
  clock.aheadMs -= 60 * minute
  clock.nowMs += 6 * minute
  attempt(broken)
  const times = { sinceMs: sinceMs + clock.aheadMs, lastFailedMs: clock.nowMs + clock.aheadMs }
  expect(watch.take([]).failing).toMatchObject([times])
  attempt(well)
  expect(watch.take([]).answered).toMatchObject([{ atMs: clock.nowMs + clock.aheadMs }])
})

test('a success in between begins it anew', () => {
  const { clock, watch, attempt } = startWatch()
  for (let tries = 0; tries < 20; tries++) {
    clock.nowMs += minute
    attempt(tries % 4 === 0 ? well : broken)
  }
  expect(watch.take([]).failing).toEqual([])
})

test('a hook that takes some fails too when its breaker has been open for long enough', () => {
  const { watch, attempt } = startWatch()
  attempt(broken)
  attempt(well)
  expect(watch.take([]).failing).toEqual([])
  attempt(broken)
  attempt(well)
  expect(watch.take(open).failing).toMatchObject([{ hookId: 'main' }])
})

test.each<Outcome>([
  { kind: 'answer', status: 400 },
  { kind: 'answer', status: 404 },
  { kind: 'answer', status: 429 },
])('a hook that answers %o works: it refuses a message, or asks for less', (outcome) => {
  const { clock, watch, attempt } = startWatch()
  for (let tries = 0; tries < 10; tries++) {
    clock.nowMs += minute
    attempt(outcome)
  }
  expect(watch.take([]).failing).toEqual([])
})

test('our own proxy says nothing of a hook', () => {
  const { clock, watch, attempt } = startWatch()
  for (let tries = 0; tries < 10; tries++) {
    clock.nowMs += minute
    attempt({ kind: 'proxy', code: 'ECONNREFUSED', isDown: true })
  }
  expect(watch.take([]).failing).toEqual([])
})

test('what becomes of notices themselves is never looked at', () => {
  const { clock, watch, attempt, dies } = startWatch()
  for (let tries = 0; tries < 10; tries++) {
    clock.nowMs += minute
    attempt(broken, { source: 'sluice' })
    dies('sluice')
  }
  expect(watch.take(open)).toEqual({ failing: [], answered: [], counts: [] })
})

test('a success is reported of a hook that is said to fail, and of no other', () => {
  const { clock, watch, attempt } = startWatch()
  watch.follow([{ destinationId: 'crm', hookId: 'main' }])
  attempt(well)
  attempt(well, { destination: 'erp' })
  expect(watch.take([]).answered).toEqual([{ destinationId: 'crm', hookId: 'main', atMs: clock.nowMs }])
  expect(watch.take([]).answered).toEqual([])
  watch.follow([])
  attempt(well)
  expect(watch.take([]).answered).toEqual([])
})

test('dead letters of a pause are not counted: the pause has its own notice', () => {
  const { watch, dies } = startWatch()
  dies('shop', 'auto_paused')
  expect(watch.take([]).counts).toEqual([])
})

test('dead letters and deliveries that are put off are counted by reason, each once', () => {
  const { watch, dies, parks } = startWatch()
  dies()
  dies()
  for (const why of ['overflow', 'paced', 'not_before', 'overflow'] as const) parks(why)
  for (const why of ['failed', 'paused', 'handover', 'shutdown'] as const) parks(why)
  expect(watch.take([]).counts).toEqual([
    {
      destinationId: 'crm',
      paced: { overflow: 2, paced: 1, not_before: 1 },
      dead_letters: { expired: 2 },
    },
  ])
  expect(watch.take([]).counts).toEqual([])
})

test('a destination whose rules take too long is counted by the limit that is used up', () => {
  const { watch } = startWatch()
  for (const limit of ['own', 'shared', 'shared'] as const) watch.observer.rulesTooLong?.('crm', limit)
  expect(watch.take([]).counts).toEqual([
    { destinationId: 'crm', paced: { rules: 1, rules_shared: 2 }, dead_letters: {} },
  ])
})

test('an answer of 429 puts a delivery off, whether or not it names a time', () => {
  const { watch, attempt } = startWatch()
  attempt({ kind: 'answer', status: 429 })
  attempt({ kind: 'answer', status: 429, retryAfterMs: 60_000 })
  attempt(broken)
  expect(watch.take([]).counts).toEqual([{ destinationId: 'crm', paced: { throttled: 2 }, dead_letters: {} }])
})

test('while nobody wants notices nothing is looked at', () => {
  const { clock, watch, attempt, dies } = startWatch()
  watch.isOn = false
  for (let tries = 0; tries < 10; tries++) {
    clock.nowMs += minute
    attempt(broken)
    dies()
  }
  watch.isOn = true
  expect(watch.take(open)).toEqual({ failing: [], answered: [], counts: [] })
})

test('a hook that nothing was sent to for more than an hour is not said to fail', () => {
  const { clock, watch, attempt } = startWatch()
  for (let tries = 0; tries < 3; tries++) attempt(broken)
  clock.nowMs += 66 * minute
  expect(watch.take([]).failing).toEqual([])
})

/** Returns an outage that is still going on. */
function since(sinceMs: number): EgressOutage {
  return { sinceMs, untilMs: Number.POSITIVE_INFINITY }
}

test.each(['while the network is suspect', 'only after it'])(
  'failures in an outage of the network are no failures of a hook, if reports are made %s',
  (when) => {
    const { clock, watch, attempt, network } = startWatch()
    const failures = (times: number) => Array.from({ length: times }, () => attempt(broken))
    const beganMs = clock.nowMs
    failures(3)
    clock.nowMs += minute
    network.outage = since(beganMs)
    clock.nowMs += 10 * minute
    failures(3)
    if (when === 'while the network is suspect') expect(watch.take(open).failing).toEqual([])
    network.outage = { sinceMs: beganMs, untilMs: clock.nowMs }
    if (when === 'while the network is suspect') expect(watch.take(open).failing).toEqual([])

    clock.nowMs += 1_000
    const sinceMs = clock.nowMs
    failures(1)
    expect(watch.take([{ ...openHook, openForMs: 11 * minute }]).failing).toEqual([])
    failures(2)
    clock.nowMs += 4 * minute
    expect(watch.take([]).failing).toEqual([])
    clock.nowMs += 2 * minute
    expect(watch.take([]).failing).toMatchObject([{ destinationId: 'crm', sinceMs }])
  },
)

test('a hook that failed once before an outage of the network does not fail because of the outage', () => {
  const { clock, watch, attempt, network } = startWatch()
  attempt(broken)
  clock.nowMs += minute
  const sinceMs = clock.nowMs
  attempt(broken)
  attempt(broken)
  network.outage = since(sinceMs)
  clock.nowMs += 10 * minute
  expect(watch.take([]).failing).toEqual([])
  network.outage = { sinceMs, untilMs: clock.nowMs }
  clock.nowMs += minute
  expect(watch.take([]).failing).toEqual([])
})

test('a hook that failed long before the network goes on failing, and an answer counts at any time', () => {
  const { clock, watch, attempt, network } = startWatch()
  watch.follow([{ destinationId: 'crm', hookId: 'main' }])
  const sinceMs = clock.nowMs
  for (let tries = 0; tries < 3; tries++) attempt(broken)
  clock.nowMs += 10 * minute
  network.outage = since(clock.nowMs)
  clock.nowMs += 10 * minute
  attempt(broken)
  expect(watch.take([]).failing).toMatchObject([{ sinceMs, lastFailedMs: sinceMs }])
  attempt(well)
  expect(watch.take([])).toMatchObject({ failing: [], answered: [{ atMs: clock.nowMs }] })
})

test('what is put off, or dies, because a hook or the network has just stopped working is not counted', () => {
  const { watch, attempt, parks, dies, network, clock } = startWatch()
  const taken = () => watch.take([]).counts.map(({ paced, dead_letters }) => ({ ...paced, ...dead_letters }))
  for (let tries = 0; tries < 3; tries++) attempt(broken)
  parks('paced')
  expect(taken()).toEqual([])
  attempt(well)
  parks('paced')
  dies()
  expect(taken()).toEqual([{ paced: 1, expired: 1 }])
  network.outage = since(clock.nowMs)
  parks('paced')
  dies()
  expect(taken()).toEqual([])
})

test('a report has all hooks that fail, and all that have answered, however many there are', () => {
  const { clock, watch, attempt } = startWatch()
  const destinations = Array.from({ length: 700 }, (_, n) => `crm-${n}`)
  for (const destination of destinations) for (let n = 0; n < 3; n++) attempt(broken, { destination })
  clock.nowMs += 6 * minute
  expect(watch.take([]).failing).toHaveLength(700)
  watch.follow(destinations.map((destinationId) => ({ destinationId, hookId: 'main' })))
  for (const destination of destinations) attempt(well, { destination })
  expect(watch.take([]).answered).toHaveLength(700)
})
