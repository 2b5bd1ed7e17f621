import { writeFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDnsServer, zone } from '../../support/dns-server.ts'
import type { SeenRecord } from '../../support/kafka.ts'
import {
  answer,
  isWholeRequest,
  neverAnswer,
  type RawReceiver,
  type RawScript,
  type Receiver,
  startRawReceiver,
  startReceiver,
} from '../../support/receiver.ts'
import { parseMetrics, type Series } from '../../support/metrics-text.ts'
import { until } from '../../support/until.ts'
import type { LogLine } from '../../support/worker-process.ts'
import { type Deployment, deploy } from './deployment.ts'
import {
  authority,
  type DeliveredRow,
  type FinalRow,
  here,
  type RetriedRow,
  type Row,
  selfSignedRow,
  untrusted,
} from './verdict-rows.ts'

/**
 * Tests of the verdict table. Each row sends one event from Kafka through a worker to a real socket, and says
 * what has to become of the event. One worker handles all rows at the same time.
 */

const minuteMs = 60_000

/** The server that redirects point to. It must get no request. */
const elsewhere = await startReceiver()
/** A server that accepts connections and sends nothing, not even a TLS handshake. */
const silent = await startRawReceiver()

const http = (status: number, rest: { headers?: Record<string, string> } = {}) => ({
  hook: { answers: answer(status, rest.headers) },
  outcome: 'answer',
  statusClass: `${Math.floor(status / 100)}xx`,
  lastOutcome: `status ${status}`,
})

/** Returns a script that writes `text` when a whole request has arrived. */
const replies = (text: string, { thenEnds = false } = {}): RawScript => ({
  data(socket, received) {
    if (!isWholeRequest(received)) return
    socket.write(text)
    if (thenEnds) socket.end()
  },
})

const delivered: DeliveredRow[] = [
  ...[200, 201, 202, 204, 226, 299].map((status) => ({
    name: `status ${status}`,
    verdict: 'delivered' as const,
    ...http(status),
  })),
  {
    name: 'an announcement (103), then 200',
    verdict: 'delivered',
    hook: {
      raw: replies(
        'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
      ),
    },
    outcome: 'answer',
    statusClass: '2xx',
  },
  {
    name: '200 with a body that never ends',
    verdict: 'delivered',
    hook: { raw: replies('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<') },
    outcome: 'answer',
    statusClass: '2xx',
  },
  {
    name: '200 with a body of a megabyte',
    verdict: 'delivered',
    hook: { answers: answer(200, {}, 'x'.repeat(2 ** 20)) },
    outcome: 'answer',
    statusClass: '2xx',
  },
  {
    name: 'a certificate of a trusted authority',
    verdict: 'delivered',
    hook: { answers: answer(200), identity: authority.issue({ names: here }) },
    outcome: 'answer',
    statusClass: '2xx',
  },
]

const timeout = { verdict: 'retry', outcome: 'timeout', lastOutcome: 'timeout' } as const

const timeouts: RetriedRow[] = [
  { name: 'no answer in 5 s', ...timeout, hook: { answers: neverAnswer } },
  {
    name: 'half a response head in 5 s',
    ...timeout,
    hook: { raw: replies('HTTP/1.1 200 OK\r\nserver: slow') },
  },
  {
    name: 'only an announcement (102) in 5 s',
    ...timeout,
    hook: { raw: replies('HTTP/1.1 102 Processing\r\n\r\n') },
  },
  {
    name: 'no answer to a TLS handshake',
    ...timeout,
    hook: { url: `https://127.0.0.1:${silent.port}/` },
  },
  { name: 'a response head that drips', ...timeout, hook: { raw: { data: drip } } },
]

const retried: RetriedRow[] = [
  ...[500, 501, 502, 503, 504, 599, 408, 423, 425, 429].map((status) => ({
    name: `status ${status}`,
    verdict: 'retry' as const,
    ...http(status),
  })),
  ...[429, 503].flatMap((status) => [
    {
      name: `status ${status} with a Retry-After of 5 minutes`,
      verdict: 'retry' as const,
      ...http(status, { headers: { 'retry-after': '300' } }),
      tier: '10m',
      askedWaitMs: 5 * minuteMs,
    },
    {
      name: `status ${status} with a Retry-After that is no time`,
      verdict: 'retry' as const,
      ...http(status, { headers: { 'retry-after': 'soon' } }),
    },
  ]),
  {
    name: 'status 500 with a Retry-After, which holds for 429 and 503 alone',
    verdict: 'retry',
    ...http(500, { headers: { 'retry-after': '300' } }),
  },
  {
    name: 'a connection that is refused',
    verdict: 'retry',
    // Nobody listens on port 2, and the catalog accepts this port.
    hook: { url: 'http://127.0.0.1:2/' },
    outcome: 'connection',
    lastOutcome: 'connection ECONNREFUSED',
  },
  {
    name: 'a connection that is reset after the request',
    verdict: 'retry',
    hook: { raw: { data: (socket, received) => isWholeRequest(received) && socket.resetAndDestroy() } },
    outcome: 'connection',
    lastOutcome: 'connection ECONNRESET',
  },
  {
    name: 'a connection that is reset at once',
    verdict: 'retry',
    hook: { raw: { connected: (socket) => socket.resetAndDestroy() } },
    outcome: 'connection',
    lastOutcome: /^connection /,
  },
  {
    name: 'a connection that is closed without an answer',
    verdict: 'retry',
    hook: { raw: { data: (socket, received) => isWholeRequest(received) && socket.end() } },
    outcome: 'connection',
    lastOutcome: /^connection /,
  },
  {
    name: 'a connection that is closed within the response head',
    verdict: 'retry',
    hook: { raw: replies('HTTP/1.1 200 OK\r\nserv', { thenEnds: true }) },
    outcome: 'connection',
    lastOutcome: /^connection /,
  },
  {
    name: 'an answer that is not HTTP',
    verdict: 'retry',
    hook: { raw: replies('SSH-2.0-OpenSSH_9.9\r\n') },
    outcome: 'connection',
    lastOutcome: 'connection HTTPParserError',
  },
  {
    name: 'a response head of 64 KB',
    verdict: 'retry',
    hook: { raw: replies(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(2 ** 16)}\r\n\r\n`) },
    outcome: 'connection',
    lastOutcome: /^connection (UND_ERR_HEADERS_OVERFLOW|HPE_HEADER_OVERFLOW)/,
  },
  {
    name: 'a server without TLS behind an https URL',
    verdict: 'retry',
    hook: { url: elsewhere.origin.replace('http:', 'https:') },
    outcome: 'connection',
    lastOutcome: /^connection ERR_SSL_/,
  },
  {
    name: 'a name that does not exist',
    verdict: 'retry',
    hook: { url: 'http://hooks.sluice.invalid/' },
    outcome: 'dns',
    lastOutcome: 'dns ENOTFOUND',
  },
]

const refused: FinalRow[] = [
  ...[301, 302, 303, 307, 308].map((status) => ({
    name: `status ${status}`,
    verdict: 'final' as const,
    ...http(status, { headers: { location: `${elsewhere.origin}/redirected` } }),
  })),
  ...[300, 304, 400, 401, 403, 404, 405, 409, 413, 422, 451, 499].map((status) => ({
    name: `status ${status}`,
    verdict: 'final' as const,
    ...http(status),
  })),
]

/** Sends one byte of a header every 300 ms, until the client closes the connection. */
function drip(socket: Parameters<NonNullable<RawScript['connected']>>[0], received: Buffer): void {
  if (!isWholeRequest(received)) return
  socket.write('HTTP/1.1 200 OK\r\nx: ')
  const timer = setInterval(() => socket.write('x'), 300)
  socket.once('close', () => clearInterval(timer))
}

/** A receiver at a forbidden address. It must get no connection. */
const forbidden = await startRawReceiver()

/** The addresses of names. Hooks have names here, because the catalog refuses forbidden addresses. */
const names: Record<string, string[]> = {}
const dns = await startDnsServer((question) => zone(names)(question))

const address = (name: string, seen: string): FinalRow => {
  const host = `private${Object.keys(names).length}.test`
  names[host] = [seen]
  return {
    name,
    verdict: 'final',
    hook: { url: `http://${host}:${forbidden.port}/` },
    outcome: 'address',
    lastOutcome: `address not allowed: ${seen}`,
  }
}

const addresses: FinalRow[] = [
  // Linux and macOS connect to this machine, where the server does listen.
  address('the unspecified address', '0.0.0.0'),
  address('a loopback address next to the allowed one', '127.0.0.2'),
  address('a private network', '10.0.0.1'),
  address('a private network inside of IPv6', '::ffff:10.0.0.1'),
  address('the metadata service of a cloud', '169.254.169.254'),
  address('the IPv6 loopback', '::1'),
]

const rows = [...delivered, ...timeouts, ...retried, ...untrusted, selfSignedRow, ...refused, ...addresses]
const idOf = (row: Row): string => `row-${rows.indexOf(row)}`

/** Returns an event. Its JSON is already in canonical form, so every later record has the same bytes. */
const eventFor = (id: string) => ({
  version: 1,
  type: 'track',
  messageId: `message-${id}`,
  userId: `user-${id}`,
  event: 'Order Completed',
  properties: { total: 9.5, text: 'é😀' },
  timestamp: '2026-01-02T03:04:05.006Z',
  context: {},
})

const servers = new Map<Row, Receiver | RawReceiver>()
const folder = mkdtempSync(join(tmpdir(), 'sluice-authority-'))
let sluice: Deployment
/** The metrics and the log of the worker when every row had been attempted. */
let series: readonly Series[] = []
let log: readonly LogLine[] = []
let events: SeenRecord[]
let parked: Record<string, SeenRecord[]>
let dead: SeenRecord[]

beforeAll(async () => {
  const authorityFile = join(folder, 'authority.pem')
  writeFileSync(authorityFile, authority.cert)
  for (const row of rows) if (!('url' in row.hook)) servers.set(row, await serve(row.hook))
  sluice = await deploy({
    destinations: rows.map((row) => ({
      id: idOf(row),
      sources: [idOf(row)],
      hooks: [
        { id: 'hook', url: 'url' in row.hook ? row.hook.url : `${servers.get(row)?.origin}/${idOf(row)}` },
      ],
    })),
    variables: {
      SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.1/32',
      SLUICE_DELIVERY_DNS_SERVERS: dns.address,
      SLUICE_METRICS_PER_DESTINATION: 'true',
      NODE_EXTRA_CA_CERTS: authorityFile,
    },
  })
  await Promise.all(
    rows.map((row) => sluice.send(idOf(row), [{ key: `user-${idOf(row)}`, value: eventFor(idOf(row)) }])),
  )
  await until('every row has been attempted, and what follows from it is in Kafka', async () => {
    // All are counted at one moment, because those that are tried again after a minute are then counted twice.
    series = parseMetrics(await sluice.worker.metrics()).series
    log = [...sluice.worker.log]
    return counted('sluice_attempts_total') >= rows.length && counted('sluice_held_records') === 0
  })
  events = await sluice.read('events')
  parked = {
    '1m': await sluice.read('retry.1m'),
    '10m': await sluice.read('retry.10m'),
    '1h': await sluice.read('retry.1h'),
  }
  dead = await sluice.read('dead-letters')
})

afterAll(async () => {
  await sluice?.stop()
  await Promise.all([elsewhere, silent, forbidden, dns, ...servers.values()].map((server) => server.stop()))
  rmSync(folder, { recursive: true, force: true })
})

function serve(hook: Exclude<Row['hook'], { url: string }>): Promise<Receiver | RawReceiver> {
  const options = hook.identity === undefined ? {} : { identity: hook.identity }
  return 'answers' in hook ? startReceiver(hook.answers, options) : startRawReceiver(hook.raw, options)
}

function recordOf(records: readonly SeenRecord[] | undefined, row: Row): SeenRecord | undefined {
  return records?.find(({ headers }) => headers['destination-id'] === idOf(row))
}

/** Returns the names of the topics that hold the row's event now. */
function whereabouts(row: Row): string[] {
  const topics = { ...parked, dead }
  return Object.keys(topics).filter(
    (name) => recordOf(name === 'dead' ? dead : parked[name], row) !== undefined,
  )
}

/** Returns the sum of a metric's series with these labels, when every row had been attempted. */
function counted(name: string, labels: Record<string, string> = {}): number {
  return series
    .filter((one) => one.name === name)
    .filter((one) => Object.entries(labels).every(([label, value]) => one.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0)
}

function expectOneAttempt(row: Row): void {
  const destination = idOf(row)
  const labels = {
    destination,
    outcome: row.outcome,
    status_class: row.statusClass ?? 'none',
    verdict: row.verdict,
  }
  expect(counted('sluice_attempts_total', labels)).toBe(1)
  expect(counted('sluice_attempts_total', { destination })).toBe(1)
}

/** Checks that a record has the unchanged message, its origin, and the state after one attempt. */
function expectRetryState(record: SeenRecord | undefined, row: Row): void {
  const id = idOf(row)
  const event = events.find(({ headers }) => headers['source-id'] === id)
  expect(record).toMatchObject({
    key: `user-${id}`,
    partition: event?.partition,
    headers: {
      'source-id': id,
      'destination-id': id,
      'message-id': `message-${id}`,
      'message-type': 'track',
      attempts: '1',
      'first-seen': String(event?.timestamp),
      origin: `${sluice.prefix}events/${event?.partition}/${event?.offset}`,
    },
  })
  expect(record?.value?.toString()).toBe(JSON.stringify(eventFor(id)))
}

function expectDelivered(row: DeliveredRow): void {
  expectOneAttempt(row)
  expect(whereabouts(row)).toEqual([])
  expect(counted('sluice_deliveries_total', { verdict: 'delivered', destination: idOf(row) })).toBe(1)
}

function expectParked(row: RetriedRow): void {
  expectOneAttempt(row)
  const { tier = '1m', askedWaitMs = 0 } = row
  expect(whereabouts(row)).toEqual([tier])
  const record = recordOf(parked[tier], row)
  expectRetryState(record, row)
  expect(record?.headers['last-outcome']).toMatch(row.lastOutcome)
  expect(record?.headers).toMatchObject({ rung: tier === '1m' ? '1' : '2' })
  expect(record?.headers).not.toHaveProperty('failed-hooks')
  const { timestamp = 0, headers = {} } = record ?? {}
  const firstAttemptMs = Number(headers['expires-at']) - 4 * 60 * minuteMs
  expect(firstAttemptMs).toBeGreaterThanOrEqual(Number(headers['first-seen']))
  expect(firstAttemptMs).toBeLessThanOrEqual(timestamp)
  const notBefore: [string, number][] = JSON.parse(headers['not-before'] ?? '[]')
  expect(notBefore.map(([hook]) => hook)).toEqual(askedWaitMs === 0 ? [] : ['hook'])
  for (const [, atMs] of notBefore) {
    expect(atMs).toBeGreaterThanOrEqual(firstAttemptMs + askedWaitMs)
    expect(atMs).toBeLessThanOrEqual(timestamp + askedWaitMs)
  }
}

function expectFinal(row: FinalRow): void {
  expectOneAttempt(row)
  expect(whereabouts(row)).toEqual(['dead'])
  const record = recordOf(dead, row)
  expectRetryState(record, row)
  expect(record?.headers).toMatchObject({ reason: 'failed_for_good', 'failed-hooks': '["hook"]' })
  expect(record?.headers['last-outcome']).toMatch(row.lastOutcome)
  expect(counted('sluice_deliveries_total', { verdict: 'dead_letter', destination: idOf(row) })).toBe(1)
}

describe('delivered', () => {
  test.each(delivered)('$name', expectDelivered)
})

describe('tried again after a minute', () => {
  test.each(retried.filter(({ tier }) => tier === undefined))('$name', expectParked)
})

describe('tried again not before the time that was asked for', () => {
  test.each(retried.filter(({ tier }) => tier !== undefined))('$name', expectParked)
})

describe('no complete answer in 5 s: a timeout error is logged, and it is tried again after a minute', () => {
  test.each(timeouts)('$name', (row) => {
    expectParked(row)
    const lines = log.filter(({ destination, outcome }) => destination === idOf(row) && outcome !== undefined)
    expect(lines).toMatchObject([{ level: 'error', msg: 'timeout: no response within 5000 ms', attempt: 1 }])
    const tookMs = Number(lines[0]?.['durationMs'])
    expect(tookMs).toBeGreaterThanOrEqual(5_000)
    // If each part of an answer had the time anew, it would be at least twice as long.
    expect(tookMs).toBeLessThan(2 * 5_000)
  })
})

describe('failed for good', () => {
  test.each(refused)('$name', expectFinal)

  test('no redirect was followed', () => {
    expect(elsewhere.requests).toEqual([])
  })
})

describe('a certificate that is not trusted: no byte of a request is sent', () => {
  const nothingSent = { connections: 1, bytes: 0 }

  test.each(untrusted)('$name: tried again after a minute', (row) => {
    expectParked(row)
    expect(servers.get(row)).toMatchObject(nothingSent)
  })

  test('a self-signed certificate: failed for good', () => {
    expectFinal(selfSignedRow)
    expect(servers.get(selfSignedRow)).toMatchObject(nothingSent)
  })
})

describe('failed for good: an address that is not allowed', () => {
  test.each(addresses)('$name', (row) => {
    expectFinal(row)
    const lines = log.filter(({ destination, outcome }) => destination === idOf(row) && outcome !== undefined)
    expect(lines).toMatchObject([
      { level: 'error', outcome: 'address', msg: expect.stringContaining('delivery.allowAddresses') },
    ])
  })

  test('no connection was made', () => {
    expect(forbidden.connections).toBe(0)
  })
})

test('the record of each row is settled', async () => {
  const topic = `${sluice.prefix}events`
  const lag = () => sluice.worker.metric('sluice_consumer_lag_records', { topic })
  expect(await until('nothing of events is left to settle', async () => (await lag()) === 0)).toBe(true)
})
