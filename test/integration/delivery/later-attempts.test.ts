import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  answer,
  inTurn,
  neverAnswer,
  type ReceivedRequest,
  type Receiver,
  type Script,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import type { LogLine } from '../../support/worker-process.ts'
import { type Deployment, deploy } from './deployment.ts'

/**
 * Tests of the attempts that follow a failed first attempt. The ladder has waits of 1 s, 2 s and then 2 s,
 * and ends after 10 s.
 */

const reset: Script = (_request, response) => void response.socket?.resetAndDestroy()

/**
 * Returns a script that answers with a date in `Retry-After`, `waitMs` after the request. The date has a
 * precision of one second.
 */
const retryAfterDate =
  (status: number, waitMs: number): Script =>
  (request, response, nth) => {
    const date = new Date(request.atMs + waitMs).toUTCString()
    answer(status, { 'retry-after': date })(request, response, nth)
  }

const scripts: Record<string, Script> = {
  '/recovers': inTurn(answer(503), answer(500), answer(200)),
  '/hangs-once': inTurn(neverAnswer, answer(200)),
  '/resets-once': inTurn(reset, answer(200)),
  '/429-seconds': inTurn(answer(429, { 'retry-after': '3' }), answer(200)),
  '/503-seconds': inTurn(answer(503, { 'retry-after': '3' }), answer(200)),
  '/429-date': inTurn(retryAfterDate(429, 4_000), answer(200)),
  '/429-for-an-hour': answer(429, { 'retry-after': '3600' }),
  '/429-once': inTurn(answer(429, { 'retry-after': '3600' }), answer(200)),
  '/for-good': answer(404),
  '/asks-for-time': inTurn(answer(429, { 'retry-after': '7' }), answer(200)),
  '/asks-for-nothing': inTurn(answer(500), answer(500), answer(500)),
}

let server: Receiver
let sluice: Deployment

beforeAll(async () => {
  server = await startReceiver(scripts)
  const single = Object.keys(scripts).filter((path) => !path.startsWith('/asks'))
  const destinations = single.map((path) => destinationOf(path.slice(1), [path]))
  sluice = await deploy({
    destinations: [...destinations, destinationOf('two-hooks', ['/asks-for-time', '/asks-for-nothing'])],
    variables: {
      SLUICE_RETRY_LADDER: '1s,2s',
      SLUICE_RETRY_THEN: '2s',
      SLUICE_RETRY_LIMIT: '10s',
      SLUICE_BREAKER_OPEN_FOR: '1s',
      SLUICE_BREAKER_MAX_OPEN_FOR: '1s',
      SLUICE_METRICS_PER_DESTINATION: 'true',
    },
  })
  for (const id of [...destinations.map((destination) => destination.id), 'two-hooks']) {
    await sluice.send(id, [{ key: id, value: ping(id) }])
  }
  await until('it has been asked for an hour', () => server.requestsTo('/429-once').length === 1)
  await sluice.send('429-once', [{ value: ping('other') }])
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

function ping(messageId: string): object {
  return { type: 'track', userId: 'u1', event: 'Ping', messageId }
}

function destinationOf(id: string, paths: readonly string[]) {
  return { id, sources: [id], hooks: paths.map((path) => ({ id: path.slice(1), url: server.origin + path })) }
}

/** Returns the time between each request and the one before it, in milliseconds. */
function gapsOf(requests: readonly ReceivedRequest[]): number[] {
  return requests.slice(1).map(({ atMs }, i) => atMs - (requests[i]?.atMs ?? 0))
}

/** Waits until the delivery to this destination has ended with `verdict`. */
async function ended(destination: string, verdict: 'delivered' | 'dead_letter'): Promise<void> {
  await until(`${destination} is ${verdict}`, () =>
    sluice.worker.metric('sluice_deliveries_total', { destination, verdict }),
  )
}

/** Waits until the log has `count` lines about attempts for a destination, and returns these lines. */
function attemptLines(destination: string, count: number): Promise<readonly LogLine[]> {
  return until(`${count} attempts of ${destination} are logged`, () => {
    const lines = sluice.worker.log.filter((line) => line['destination'] === destination && 'outcome' in line)
    return lines.length < count ? undefined : lines
  })
}

test('a hook that answers 503 and 500 and then recovers gets the same bytes after each wait, and never early', async () => {
  await ended('recovers', 'delivered')
  const requests = server.requestsTo('/recovers')
  expect(requests).toHaveLength(3)
  const [first = 0, second = 0] = gapsOf(requests)
  expect(first).toBeGreaterThanOrEqual(1_000)
  expect(second).toBeGreaterThanOrEqual(2_000)
  expect(new Set(requests.map(({ body }) => body.toString())).size).toBe(1)
})

test('each attempt is one log line with its number', async () => {
  expect(await attemptLines('recovers', 3)).toMatchObject([
    { level: 'warn', attempt: 1, status: 503, verdict: 'retry', messageId: 'recovers', hook: 'recovers' },
    { level: 'warn', attempt: 2, status: 500, verdict: 'retry' },
    { level: 'info', attempt: 3, status: 200, verdict: 'delivered' },
  ])
})

test('a hook that gave no answer in 5 s is tried again after that and the wait', async () => {
  await ended('hangs-once', 'delivered')
  const [timeout] = await attemptLines('hangs-once', 2)
  const [, second, ...others] = server.requestsTo('/hangs-once')
  expect(timeout).toMatchObject({ level: 'error', outcome: 'timeout', attempt: 1 })
  expect(second?.atMs).toBeGreaterThanOrEqual(Date.parse(String(timeout?.['time'])) + 1_000)
  expect(others).toEqual([])
})

test('a hook that reset the connection is tried again later', async () => {
  await ended('resets-once', 'delivered')
  const [gap = 0, ...others] = gapsOf(server.requestsTo('/resets-once'))
  expect(gap).toBeGreaterThanOrEqual(1_000)
  expect(others).toEqual([])
})

test.each(['/429-seconds', '/503-seconds'])('%s: Retry-After in seconds is waited for', async (path) => {
  await ended(path.slice(1), 'delivered')
  const [gap = 0, ...others] = gapsOf(server.requestsTo(path))
  expect(gap).toBeGreaterThanOrEqual(3_000)
  expect(others).toEqual([])
})

test('Retry-After as a date is waited for', async () => {
  await ended('429-date', 'delivered')
  const [first, second, ...others] = server.requestsTo('/429-date')
  const askedForMs = Math.floor(((first?.atMs ?? 0) + 4_000) / 1000) * 1000
  expect(second?.atMs).toBeGreaterThanOrEqual(askedForMs)
  expect(others).toEqual([])
})

test('a hop for a Retry-After counts as no attempt', async () => {
  expect(await attemptLines('429-seconds', 2)).toMatchObject([
    { attempt: 1, retryAfterMs: 3_000 },
    { attempt: 2, verdict: 'delivered' },
  ])
  expect(await sluice.worker.metric('sluice_parked_total', { reason: 'not_before' })).toBeGreaterThan(0)
})

test('a Retry-After past the limit does not take the last try away', async () => {
  await ended('429-for-an-hour', 'dead_letter')
  const requests = server.requestsTo('/429-for-an-hour')
  expect(requests).toHaveLength(2)
  const dead = (await sluice.read('dead-letters')).find(({ key }) => key === '429-for-an-hour')
  expect(dead?.headers).toMatchObject({ reason: 'expired', attempts: '2', 'last-outcome': 'status 429' })
})

test('a Retry-After of an hour holds other messages to that hook back no longer than an open breaker', async () => {
  const other = await until('the other message has come', () =>
    server.requestsTo('/429-once').find(({ body }) => body.includes('"other"')),
  )
  const [first] = server.requestsTo('/429-once')
  expect(other.atMs - (first?.atMs ?? 0)).toBeLessThan(30_000)
})

test("one hook's Retry-After holds no other hook back", async () => {
  await ended('two-hooks', 'delivered')
  const [asking = 0] = gapsOf(server.requestsTo('/asks-for-time'))
  const [other = 0] = gapsOf(server.requestsTo('/asks-for-nothing'))
  expect(asking).toBeGreaterThanOrEqual(7_000)
  expect(other).toBeGreaterThanOrEqual(1_000)
  expect(other).toBeLessThan(7_000)
})

test('a hook that failed for good gets no second request', async () => {
  await ended('for-good', 'dead_letter')
  // These two deliveries were parked when this message had its only attempt. They have passed through the
  // tiers by now, so this message would have come again if it had been parked too.
  await ended('recovers', 'delivered')
  await ended('429-date', 'delivered')
  expect(server.requestsTo('/for-good')).toHaveLength(1)
})
