import { expect, test } from 'vitest'
import { type EgressEvidence, EgressHealth, judgeEveryMs } from '../../../src/delivery/egress-health.ts'
import type { Outcome } from '../../../src/delivery/outcome.ts'

const well: Outcome = { kind: 'answer', status: 200 }
const unwell: Outcome = { kind: 'answer', status: 503 }
const timeout: Outcome = { kind: 'timeout' }
const forbidden: Outcome = { kind: 'address', address: '10.0.0.1' }
const minute = 60_000

/**
 * Starts a check of the egress on a clock that only the test moves. Each server gets one request in each
 * interval.
 */
function start() {
  const changes: { isSuspect: boolean; evidence: EgressEvidence; failingForMs: number }[] = []
  const egress = new EgressHealth((isSuspect, evidence, failingForMs) =>
    changes.push({ isSuspect, evidence, failingForMs }),
  )
  return {
    changes,
    egress,
    /** Lets this time pass. In each interval, each server has its outcome of `outcomes`. */
    pass: (ms: number, outcomes: readonly Outcome[]): void => {
      for (let passed = 0; passed < ms; passed += judgeEveryMs) {
        for (const [at, outcome] of outcomes.entries()) egress.take(`https://${at}.example`, outcome)
        egress.judge()
      }
    },
  }
}

/** Returns one outcome for each server. The first `failed` servers fail. */
function failing(failed: number, servers: number, failure: Outcome = timeout): Outcome[] {
  return Array.from({ length: servers }, (_, at) => (at < failed ? failure : well))
}

test.each([
  [3, 3, true],
  [9, 9, true],
  [10, 20, true],
  [2, 2, false],
  [8, 9, false],
  [9, 20, false],
])('if %i of %i servers that answered stop answering at once, suspect: %s', (failed, servers, isSuspect) => {
  const { changes, pass } = start()
  pass(minute, failing(0, servers))
  pass(2 * minute, failing(failed, servers))
  expect(changes.map((change) => change.isSuspect)).toEqual(isSuspect ? [true] : [])
})

test.each<Outcome>([
  timeout,
  { kind: 'connection', code: 'ECONNREFUSED' },
  { kind: 'dns', code: 'ETIMEOUT' },
  { kind: 'certificate', code: 'SELF_SIGNED_CERT_IN_CHAIN' },
])('a network fails by $kind', (failure) => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(minute, failing(20, 20, failure))
  expect(changes).toMatchObject([{ isSuspect: true, evidence: { lost: 20, dead: 0, working: 0 } }])
})

test.each<Outcome>([
  unwell,
  { kind: 'proxy', code: 'ECONNREFUSED', isDown: true },
  { kind: 'files', code: 'EMFILE' },
  { kind: 'request', detail: 'invalid header' },
])('$kind is no failure of the network', (outcome) => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(10 * minute, failing(20, 20, outcome))
  expect(changes).toEqual([])
})

test.each<[boolean, string]>([
  [true, 'that were reached before'],
  [false, 'that never were'],
])('a forbidden address is a failure: %s, for servers %s', (isFailure, which) => {
  const { changes, pass } = start()
  pass(minute, failing(which === 'that were reached before' ? 0 : 20, 20, forbidden))
  pass(5 * minute, failing(20, 20, forbidden))
  expect(changes.map(({ isSuspect }) => isSuspect)).toEqual(isFailure ? [true] : [])
})

test('an outage shorter than the time of three judgements goes unnoticed', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(2 * judgeEveryMs, failing(20, 20))
  pass(minute, failing(0, 20))
  expect(changes).toEqual([])
})

test('servers that stop answering one after the other are not a network that fails', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  for (let failed = 1; failed <= 20; failed++) pass(2 * minute, failing(failed, 30))
  expect(changes).toEqual([])
})

test('servers that have been dead for long are not counted, however many they are', () => {
  const { changes, pass } = start()
  pass(minute, failing(30, 34))
  pass(20 * minute, failing(30, 34))
  expect(changes).toEqual([])
  pass(minute, failing(34, 34))
  expect(changes).toMatchObject([{ isSuspect: true, evidence: { lost: 4, dead: 30, working: 0 } }])
})

test('quiet servers that work count as well as those that are tried again and again', () => {
  const { changes, egress, pass } = start()
  for (let hour = 0; hour < 3; hour++) {
    for (let at = 3; at < 13; at++) egress.take(`https://${at}.example`, well)
    pass(10 * minute, failing(hour === 0 ? 0 : 3, 3))
  }
  expect(changes).toEqual([])
})

test('tells since when the first of the lost servers fails', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(2 * minute, failing(9, 20))
  pass(minute, failing(20, 20))
  const [change] = changes
  expect(change?.failingForMs).toBeGreaterThanOrEqual(2 * minute)
  expect(change?.failingForMs).toBeLessThanOrEqual(3 * minute)
})

test.each([1, 3, 12])(
  'a network without which all fail stays suspect for a day, with requests each %i minutes',
  (every) => {
    const { changes, egress, pass } = start()
    const requests = (outcome: Outcome) => {
      for (let at = 0; at < 30; at++) egress.take(`https://${at}.example`, outcome)
      // This server is in the cluster, where the network works.
      egress.take('http://ops.cluster', well)
      pass(every * minute, [])
    }
    requests(well)
    for (let passed = 0; passed < 24 * 60; passed += every) requests(timeout)
    expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true])
    requests(well)
    expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true, false])
  },
)

test('half of all servers that are gone for good are to blame themselves after an hour', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(50 * minute, failing(10, 20))
  expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true])
  pass(20 * minute, failing(10, 20))
  expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true, false])
  pass(24 * 60 * minute, failing(10, 20))
  expect(changes).toHaveLength(2)
})

test('a network that has recovered in part, and fails again, is suspect again', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(10 * minute, failing(20, 20))
  pass(minute, failing(5, 20))
  pass(minute, failing(20, 20))
  expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true, false, true])
})

test('without requests a network stays suspect until its servers are forgotten', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(minute, failing(20, 20))
  pass(60 * minute, [])
  expect(changes).toHaveLength(1)
  pass(10 * minute, [])
  expect(changes.at(-1)).toMatchObject({ isSuspect: false, evidence: { lost: 0, dead: 0, working: 0 } })
})

test.each([
  [9, 9, []],
  [10, 12, []],
  [10, 10, [true]],
  [200, 201, [true]],
])(
  'at the start of a process, %i of %i servers that never answered: suspect %j',
  (failed, servers, suspect) => {
    const { changes, pass } = start()
    pass(10 * minute, failing(failed, servers))
    expect(changes.map(({ isSuspect }) => isSuspect)).toEqual(suspect)
    pass(minute, failing(Math.max(0, failed - 3), servers))
    if (suspect.length > 0) expect(changes.at(-1)?.isSuspect).toBe(false)
  },
)

test('at the start of a process, dead servers alone are suspect for a quarter of an hour at most', () => {
  const { changes, pass } = start()
  pass(24 * 60 * minute, failing(12, 12))
  expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true, false])
})

test('a few servers that fail when the others have nothing to do are not a network that fails', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 40))
  pass(12 * minute, failing(0, 4))
  pass(2 * 60 * minute, failing(4, 4))
  expect(changes).toEqual([])
})

test('dead servers that wait in the retry topics at the start are not a network that fails, if others answer', () => {
  const { changes, egress, pass } = start()
  for (let passed = 0; passed < 10; passed++) {
    if (passed === 1) for (let at = 12; at < 20; at++) egress.take(`https://${at}.example`, well)
    pass(minute, failing(12, 12))
  }
  expect(changes).toEqual([])
})

test('a thousand hooks of one server count once', () => {
  const { changes, egress, pass } = start()
  pass(minute, failing(0, 4))
  for (let hook = 0; hook < 1_000; hook++) egress.take('https://0.example', timeout)
  pass(minute, failing(1, 4))
  expect(changes).toEqual([])
})

test('more servers than are observed change nothing', () => {
  const { changes, pass } = start()
  pass(3 * judgeEveryMs, failing(0, 10_000))
  pass(minute, failing(10_000, 10_000))
  expect(changes).toMatchObject([{ isSuspect: true, evidence: { lost: 2_000, dead: 0, working: 0 } }])
})
