import { expect, test } from 'vitest'
import {
  type EgressEvidence,
  EgressHealth,
  type EgressHook,
  judgeEveryMs,
} from '../../../../src/delivery/send/egress-health.ts'
import type { Outcome } from '../../../../src/delivery/outcomes/outcome.ts'

const well: Outcome = { kind: 'answer', status: 200 }
const unwell: Outcome = { kind: 'answer', status: 503 }
const timeout: Outcome = { kind: 'timeout' }
const forbidden: Outcome = { kind: 'address', address: '10.0.0.1' }
const minute = 60_000

/** Where requests go. The default of `destination` and `source` is `host`. */
type To = {
  host: string
  destination?: string
  source?: string
  address?: string | undefined
  wasSent?: boolean
}

const serverOf = (at: number): To => ({ host: `${at}.example` })

/**
 * Starts a check of the egress on a clock that only the test moves. Each server gets one request in each
 * interval. Unless a test says otherwise, each server belongs to another customer, and a request that is not
 * answered was not sent.
 */
function start() {
  const changes: { isSuspect: boolean; evidence: EgressEvidence; failingForMs: number }[] = []
  const egress = new EgressHealth((isSuspect, evidence, failingForMs) =>
    changes.push({ isSuspect, evidence, failingForMs }),
  )
  const hooks = new Map<string, EgressHook>()
  const take = (to: To, outcome: Outcome): void => {
    const { host, destination = host, source = host, wasSent = outcome.kind === 'answer', address } = to
    const key = JSON.stringify([source, destination, host])
    const hook = hooks.get(key) ?? { destinationId: destination, sourceId: source, host, server: undefined }
    hooks.set(key, hook)
    egress.take(hook, outcome, wasSent, wasSent ? address : undefined)
  }
  const passBy = (ms: number, requests: readonly (readonly [To, Outcome])[]): void => {
    for (let passed = 0; passed < ms; passed += judgeEveryMs) {
      for (const [to, outcome] of requests) take(to, outcome)
      egress.judge()
    }
  }
  return {
    changes,
    egress,
    take,
    /** Lets this time pass. In each interval, each request is sent once. */
    passBy,
    /** Lets this time pass. In each interval, each server has its outcome of `outcomes`. */
    pass: (ms: number, outcomes: readonly Outcome[]): void =>
      passBy(
        ms,
        outcomes.map((outcome, at) => [serverOf(at), outcome]),
      ),
  }
}

/** Returns one outcome for each server. The first `failed` servers fail. */
function failing(failed: number, servers: number, failure: Outcome = timeout): Outcome[] {
  return Array.from({ length: servers }, (_, at) => (at < failed ? failure : well))
}

test.each([
  [3, 3, true],
  [9, 9, true],
  [11, 20, true],
  [10, 20, false],
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
  const { changes, take, pass } = start()
  for (let hour = 0; hour < 3; hour++) {
    for (let at = 3; at < 13; at++) take(serverOf(at), well)
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
    const { changes, take, pass } = start()
    const requests = (outcome: Outcome) => {
      for (let at = 0; at < 30; at++) take(serverOf(at), outcome)
      // This server is in the cluster, where the network works.
      take({ host: 'ops.cluster' }, well)
      pass(every * minute, [])
    }
    requests(well)
    for (let passed = 0; passed < 24 * 60; passed += every) requests(timeout)
    expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true])
    requests(well)
    expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true, false])
  },
)

test('more than half of all servers that are gone for good are to blame themselves after an hour', () => {
  const { changes, pass } = start()
  pass(minute, failing(0, 20))
  pass(50 * minute, failing(11, 20))
  expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true])
  pass(20 * minute, failing(11, 20))
  expect(changes.map(({ isSuspect }) => isSuspect)).toEqual([true, false])
  pass(24 * 60 * minute, failing(11, 20))
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
  const { changes, take, pass } = start()
  for (let passed = 0; passed < 10; passed++) {
    if (passed === 1) for (let at = 12; at < 20; at++) take(serverOf(at), well)
    pass(minute, failing(12, 12))
  }
  expect(changes).toEqual([])
})

/** Returns requests: `failed` of `servers` fail. `toOf` says where each of them goes. */
function requestsTo(servers: number, failed: number, toOf: (at: number) => To): [To, Outcome][] {
  return Array.from({ length: servers }, (_, at) => [toOf(at), at < failed ? timeout : well])
}

/** Returns a function that says where requests go: each to another destination of one source. */
function ofSource(source: string): (at: number) => To {
  return (at) => ({ host: `${source}${at}.example`, destination: `${source}${at}`, source })
}

const behindFewAddresses = (at: number): To => ({
  host: `c${at}.example`,
  address: at < 6 ? '203.0.113.9' : `203.0.113.${at + 9}`,
})
const twoHostsEach = (at: number): To => ({
  host: `h${at}.example`,
  destination: `d${at % 10}`,
  source: `s${at % 10}`,
})

/** The customers that one customer must not sway: 21 servers, each of another source. */
const others = requestsTo(21, 0, (at) => ({ host: `shop${at}.example`, address: `198.51.100.${at}` }))

test.each<[string, (at: number) => To]>([
  ['ports of one machine', (at) => ({ host: `h${at}.example`, address: '203.0.113.9' })],
  [
    'addresses of one IPv6 network',
    (at) => ({ host: `h${at}.example`, address: `2001:db8:0:7:${at.toString(16)}::1` }),
  ],
  ['hosts of one destination', (at) => ({ host: `h${at}.example`, destination: 'evil', source: 'evil' })],
  [
    'destinations of one source at as many addresses',
    (at) => ({ host: `h${at}.example`, destination: `d${at}`, source: 'evil', address: `203.0.113.${at}` }),
  ],
])('25 servers that fail together and are %s make nobody doubt the network', (_what, toOf) => {
  const { changes, passBy } = start()
  passBy(minute, [...others, ...requestsTo(25, 0, toOf)])
  passBy(20 * minute, [...others, ...requestsTo(25, 25, toOf)])
  expect(changes).toEqual([])
})

test('two customers with a source each: the larger one does not sway the judgement about both', () => {
  const { changes, passBy } = start()
  passBy(minute, [...requestsTo(21, 0, ofSource('good')), ...requestsTo(200, 0, ofSource('evil'))])
  passBy(20 * minute, [...requestsTo(21, 0, ofSource('good')), ...requestsTo(200, 200, ofSource('evil'))])
  expect(changes).toEqual([])
})

test.each([3, 20])(
  'a broken network is recognized in half a minute by %i destinations of one source',
  (count) => {
    const { changes, passBy } = start()
    // The operator's own endpoint is in the cluster, where the network works.
    const own = [[{ host: 'ops.cluster', source: 'sluice', address: '10.0.0.7' }, well]] as const
    const inCluster = count > 3 ? own : []
    passBy(minute, [...requestsTo(count, 0, ofSource('shop')), ...inCluster])
    passBy(minute / 2, [...requestsTo(count, count, ofSource('shop')), ...inCluster])
    expect(changes).toMatchObject([{ isSuspect: true, evidence: { lost: count } }])
  },
)

test('customers behind one address fail as one, and none of them has failed while another answers there', () => {
  const { changes, egress, passBy } = start()
  passBy(minute, requestsTo(9, 0, behindFewAddresses))
  passBy(minute, requestsTo(9, 5, behindFewAddresses))
  expect(egress.evidence).toEqual({ lost: 0, dead: 0, working: 4 })
  passBy(minute, requestsTo(9, 9, behindFewAddresses))
  expect(changes).toMatchObject([{ isSuspect: true, evidence: { lost: 4, dead: 0, working: 0 } }])
})

test('a destination of several hosts is not lost while one of them answers', () => {
  const { changes, passBy } = start()
  passBy(minute, requestsTo(20, 0, twoHostsEach))
  passBy(10 * minute, requestsTo(20, 10, twoHostsEach))
  expect(changes).toEqual([])
  passBy(minute, requestsTo(20, 20, twoHostsEach))
  expect(changes).toMatchObject([{ isSuspect: true, evidence: { lost: 10 } }])
})

test.each<Outcome>([timeout, { kind: 'connection', code: 'ECONNRESET' }])(
  'a request that was sent on a connection says nothing about the network if it ends by a $kind',
  (outcome) => {
    const { changes, passBy } = start()
    passBy(minute, requestsTo(20, 0, serverOf))
    passBy(
      10 * minute,
      requestsTo(20, 0, (at) => ({ ...serverOf(at), wasSent: true })).map(([to]) => [to, outcome]),
    )
    expect(changes).toEqual([])
  },
)

test.each<[string, (at: number) => To]>([
  ['of other customers', (at) => ({ host: `dead${at}.example` })],
  ['of one destination', (at) => ({ host: `dead${at}.example`, destination: 'evil', source: 'evil' })],
  ['of the same source', (at) => ({ host: `dead${at}.example`, source: 'shop' })],
])('2,000 dead servers %s, that came first, do not hide that the network fails', (_what, deadOf) => {
  const { changes, passBy } = start()
  const dead = requestsTo(2_000, 2_000, deadOf)
  passBy(judgeEveryMs, dead)
  passBy(minute, [...dead, ...requestsTo(20, 0, ofSource('shop'))])
  passBy(20 * minute, [...dead, ...requestsTo(20, 0, ofSource('shop'))])
  expect(changes).toEqual([])
  passBy(minute, [...dead, ...requestsTo(20, 20, ofSource('shop'))])
  expect(changes).toMatchObject([{ isSuspect: true, evidence: { lost: 20, working: 0 } }])
})

test('2,000 working servers of one source leave room for those of others', () => {
  const { changes, passBy } = start()
  passBy(minute, [...requestsTo(3_000, 0, ofSource('evil')), ...others])
  passBy(minute, [...requestsTo(3_000, 3_000, ofSource('evil')), ...others])
  expect(changes).toEqual([])
})

test('a thousand hooks of one server count once', () => {
  const { changes, take, pass } = start()
  pass(minute, failing(0, 4))
  for (let hook = 0; hook < 1_000; hook++) take({ ...serverOf(0), destination: `d${hook}` }, timeout)
  pass(minute, failing(1, 4))
  expect(changes).toEqual([])
})

test('servers that were never reached have one vote for each domain', () => {
  const { egress, passBy } = start()
  const hosts = [
    'a.evil.example',
    'b.evil.example',
    'a.evil.co.uk',
    'b.evil.co.uk',
    'good.co.uk',
    'c.example',
  ]
  passBy(
    judgeEveryMs,
    requestsTo(hosts.length, hosts.length, (at) => ({ host: hosts[at] ?? '' })),
  )
  expect(egress.evidence).toEqual({ lost: 0, dead: 4, working: 0 })
})

test('more servers than are observed change nothing', () => {
  const { changes, pass } = start()
  pass(3 * judgeEveryMs, failing(0, 10_000))
  pass(minute, failing(10_000, 10_000))
  expect(changes).toMatchObject([{ isSuspect: true, evidence: { lost: 2_000, dead: 0, working: 0 } }])
})
