import { expect, test } from 'vitest'
import { type EgressEvidence, EgressHealth, judgeEveryMs } from '../../../src/delivery/egress-health.ts'
import type { Outcome } from '../../../src/delivery/outcome.ts'

const well: Outcome = { kind: 'answer', status: 200 }
const unwell: Outcome = { kind: 'answer', status: 503 }
const timeout: Outcome = { kind: 'timeout' }
const minute = 60_000

/** Servers with a request in each interval, on a clock that only the test moves. */
function start() {
  const changes: { isSuspect: boolean; evidence: EgressEvidence }[] = []
  const egress = new EgressHealth((isSuspect, evidence) => changes.push({ isSuspect, evidence }))
  return {
    changes,
    egress,
    /** The outcome of each server, in each interval of this time. */
    pass: (ms: number, outcomes: readonly Outcome[]): void => {
      for (let passed = 0; passed < ms; passed += judgeEveryMs) {
        for (const [at, outcome] of outcomes.entries()) egress.take(`https://${at}.example`, outcome)
        egress.judge()
      }
    },
  }
}

/** As many outcomes as servers, of which the first ones fail. */
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
  expect(changes).toEqual([{ isSuspect: true, evidence: { lost: 20, dead: 0, working: 0 } }])
})

test.each<Outcome>([
  unwell,
  { kind: 'proxy', code: 'ECONNREFUSED', isDown: true },
  { kind: 'files', code: 'EMFILE' },
  { kind: 'address', address: '10.0.0.1' },
  { kind: 'request', detail: 'invalid header' },
])('$kind is no failure of the network', (outcome) => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(10 * minute, failing(20, 20, outcome))
  expect(changes).toEqual([])
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
  for (let failed = 1; failed <= 20; failed++) pass(2 * minute, failing(failed, 23))
  expect(changes).toEqual([])
})

test('servers that have been dead for long are not counted, however many they are', () => {
  const { changes, pass } = start()
  pass(minute, failing(30, 34))
  expect(changes).toEqual([])
  pass(minute, failing(34, 34))
  expect(changes).toEqual([{ isSuspect: true, evidence: { lost: 4, dead: 30, working: 0 } }])
})

test('a network stays suspect for hours, and is well again when most servers answer', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(5 * 60 * minute, failing(18, 20))
  expect(changes).toHaveLength(1)
  pass(minute, failing(4, 20))
  expect(changes.at(-1)).toEqual({ isSuspect: false, evidence: { lost: 4, dead: 0, working: 16 } })
})

test('without requests a network stays suspect until its servers are forgotten', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(minute, failing(20, 20))
  pass(14 * minute, [])
  expect(changes).toHaveLength(1)
  pass(2 * minute, [])
  expect(changes.at(-1)).toEqual({ isSuspect: false, evidence: { lost: 0, dead: 0, working: 0 } })
})

test('a process that starts without a network recognizes it by ten servers, until one answers', () => {
  const { changes, pass } = start()
  pass(10 * minute, failing(9, 9))
  expect(changes).toEqual([])
  pass(minute, failing(10, 10))
  expect(changes).toHaveLength(1)
  pass(minute, failing(10, 11))
  expect(changes.at(-1)?.isSuspect).toBe(false)
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
  expect(changes).toEqual([{ isSuspect: true, evidence: { lost: 2_000, dead: 0, working: 0 } }])
})
