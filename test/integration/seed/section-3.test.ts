import kafkajs from 'kafkajs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  answer,
  inTurn,
  neverAnswer,
  type ReceivedRequest,
  type Receiver,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import type { LogLine } from '../../support/worker-process.ts'
import { type Deployment, type DestinationEntry, deploy } from '../delivery/deployment.ts'

/**
 * Tests of the specification that this folder is named after, the seed. They cover its delivery rules
 * (section 3), its rules for requests (section 2.2) and its limits (sections 2.1 and 8). The four hours for
 * retries are shortened to 30 seconds, with waits of 1, 2 and 3 seconds, and then of a minute, which no longer fits. A busy
 * machine needs some of the 30 seconds.
 */

const waitsMs = [1_000, 2_000, 3_000]
const limitMs = 30_000

let server: Receiver
let sluice: Deployment

/** Returns a destination with a hook for each path. Its source has the same id, and no other destination. */
function destination(id: string, paths: readonly string[], rest: Partial<DestinationEntry> = {}) {
  return {
    id,
    sources: [id],
    hooks: paths.map((path) => ({ id: path, url: `${server.origin}/${path}` })),
    ...rest,
  }
}

beforeAll(async () => {
  server = await startReceiver({
    '/slow': inTurn(neverAnswer, answer(200)),
    '/down': answer(500),
    '/down-as-well': answer(500),
    '/any-down-1': answer(500),
    '/any-up': answer(200),
    '/any-down-2': answer(503),
    '/late-down': answer(500),
    '/late-up': inTurn(answer(500), answer(200)),
    '/gone': answer(410),
    '/comes-back': inTurn(answer(500), answer(500), answer(200)),
    '/first-down': answer(500),
    '/second-up': answer(200),
    '/third-unasked': answer(200),
    '/order-1': answer(500),
    '/order-2': answer(404),
    '/order-3': inTurn(answer(502), answer(200)),
    '/plain': answer(200),
    '/signed': answer(200),
    '/of-crm': answer(200),
    '/of-ads': answer(200),
    '/bodies': answer(200),
    '/batches': answer(200),
  })
  sluice = await deploy({
    destinations: [
      destination('slow', ['slow']),
      destination('down', ['down']),
      destination('down-as-well', ['down-as-well']),
      destination('any', ['any-down-1', 'any-up', 'any-down-2']),
      destination('late', ['late-down', 'late-up']),
      destination('left-out', ['gone', 'comes-back']),
      destination('failover', ['first-down', 'second-up', 'third-unasked'], { strategy: 'failover' }),
      destination('order', ['order-1', 'order-2', 'order-3'], { strategy: 'failover' }),
      destination('plain', ['plain']),
      {
        id: 'signed',
        sources: ['signed'],
        sharedSecret: 'a secret',
        hooks: [
          { url: `${server.origin}/signed`, headers: { Authorization: 'Bearer abc', 'X-Team': 'crm é' } },
        ],
      },
      {
        id: 'two-hooks',
        sources: ['two-hooks'],
        hooks: [
          { url: `${server.origin}/of-crm`, headers: { Authorization: 'Bearer crm', 'X-Team': 'crm' } },
          { url: `${server.origin}/of-ads`, headers: { 'X-Team': 'ads', 'X-Ads-Key': '1' } },
        ],
      },
      destination('bodies', ['bodies']),
      destination('batches', ['batches']),
    ],
    variables: {
      SLUICE_RETRY_LADDER: '1s,2s,3s',
      SLUICE_RETRY_THEN: '1m',
      SLUICE_RETRY_LIMIT: '30s',
      SLUICE_METRICS_PER_DESTINATION: 'true',
    },
  })
})

afterAll(async () => {
  await sluice?.stop()
  await server?.stop()
})

function ping(id: string): object {
  return { type: 'track', userId: 'u1', event: 'Ping', messageId: id }
}

async function sendPing(id: string): Promise<void> {
  await sluice.send(id, [{ key: 'u1', value: ping(id) }])
}

/** Waits until `count` deliveries to this destination have ended with `verdict`. */
async function ended(id: string, verdict: 'delivered' | 'dead_letter', count = 1): Promise<void> {
  const labels = { destination: id, verdict }
  await until(
    `${count} deliveries to ${id} are ${verdict}`,
    async () => (await sluice.worker.metric('sluice_deliveries_total', labels)) >= count,
  )
}

/** Returns the body that arrived at `/bodies` for the message `body-NAME`. */
function receivedBody(name: string): unknown {
  const texts = server.requestsTo('/bodies').map(({ body }) => body.toString())
  const found = texts.filter((text) => text.includes(`"body-${name}"`))
  expect(found).toHaveLength(1)
  return JSON.parse(found[0] ?? '')
}

function cameInABatch(messageId: string): boolean {
  return server.requestsTo('/batches').some(({ body }) => body.includes(`"${messageId}"`))
}

function catalogWithHooks(count: number) {
  const hooks = Array.from({ length: count }, (_, i) => ({ url: `${server.origin}/hook-${i}` }))
  const destinations = [{ id: 'crm', sources: ['shop'], hooks }]
  return { expect: { sources: 1, destinations: 1 }, sources: [{ id: 'shop' }], destinations }
}

function timeoutLine(): Promise<LogLine> {
  return until('the timeout is logged', () =>
    sluice.worker.log.find((line) => line['destination'] === 'slow' && line['outcome'] === 'timeout'),
  )
}

function gapsOf(requests: readonly ReceivedRequest[]): number[] {
  return requests.slice(1).map(({ atMs }, i) => atMs - (requests[i]?.atMs ?? 0))
}

describe('rule 1: no response within 5 seconds is logged as a timeout error, and the event is retried later', () => {
  beforeAll(async () => {
    await sendPing('slow')
    await ended('slow', 'delivered')
  })

  test('it is logged as a timeout error, 5 seconds after the request began', async () => {
    const line = await timeoutLine()
    expect(line).toMatchObject({ level: 'error', msg: 'timeout: no response within 5000 ms', attempt: 1 })
    expect(line['durationMs']).toBeGreaterThanOrEqual(5_000)
    // If each part of an answer had the time anew, it would be at least twice as long.
    expect(line['durationMs']).toBeLessThan(2 * 5_000)
  })

  test('the event is retried after that and the wait', async () => {
    const timedOutMs = Date.parse(String((await timeoutLine())['time']))
    const [first, second, ...others] = server.requestsTo('/slow')
    expect(second?.atMs).toBeGreaterThanOrEqual(timedOutMs + 1_000)
    expect(second?.body).toEqual(first?.body)
    expect(others).toEqual([])
  })
})

describe('rule 2: a 5xx response is retried multiple times, for a maximum of 4 hours (here 30 s)', () => {
  beforeAll(async () => {
    await sendPing('down')
    await ended('down', 'dead_letter')
  })

  test('it is retried after each wait, as often as the waits fit, and never early', () => {
    const requests = server.requestsTo('/down').slice(0, 1 + waitsMs.length)
    const gaps = gapsOf(requests)
    expect(gaps).toHaveLength(waitsMs.length)
    for (const [i, waitMs] of waitsMs.entries()) expect(gaps[i]).toBeGreaterThanOrEqual(waitMs)
  })

  test('no try is made after the limit', () => {
    const [first, ...retries] = server.requestsTo('/down').slice(0, 1 + waitsMs.length)
    expect(retries.at(-1)?.atMs).toBeLessThan((first?.atMs ?? 0) + limitMs)
  })

  test('then it is a dead letter that says expired', async () => {
    // The metric counts the dead letter when it is decided. The record is written a moment later.
    const dead = await until('it is written', async () =>
      (await sluice.read('dead-letters')).find(({ headers }) => headers['message-id'] === 'down'),
    )
    expect(dead.headers).toMatchObject({ reason: 'expired', attempts: '4', 'last-outcome': 'status 500' })
    const lastTryMs = server.requestsTo('/down')[waitsMs.length]?.atMs ?? Infinity
    expect(dead.timestamp).toBeGreaterThanOrEqual(lastTryMs)
  })
})

describe('rule 3: success of sending to any one of several URLs marks the message as processed; it is not retried to the others', () => {
  beforeAll(async () => {
    const settled = ['any', 'late', 'left-out', 'failover', 'order']
    for (const id of settled) await sendPing(id)
    for (const id of settled) await ended(id, 'delivered')
    // This message has the same key, so it queues behind all parked messages. When it has been through all
    // waits, no further try of the others can be left.
    await sendPing('down-as-well')
    await ended('down-as-well', 'dead_letter')
  })

  test('the first attempt goes to every URL, one success settles it, and no other is tried again', () => {
    for (const path of ['/any-down-1', '/any-up', '/any-down-2'])
      expect(server.requestsTo(path)).toHaveLength(1)
  })

  test('a success of a later attempt settles it as well', () => {
    expect(server.requestsTo('/late-up')).toHaveLength(2)
    expect(server.requestsTo('/late-down')).toHaveLength(2)
  })

  test('a URL that failed for good is left out of later attempts, which go to the others', () => {
    expect(server.requestsTo('/gone')).toHaveLength(1)
    const tries = server.requestsTo('/comes-back').map(({ headers }) => headers['x-sluice-attempt'])
    expect(tries).toEqual(['1', '2', '3'])
  })

  test('failover: the URLs are tried in their order until one succeeds', () => {
    const paths = new Set(['/first-down', '/second-up', '/third-unasked'])
    const asked = server.requests.map(({ path }) => path).filter((path) => paths.has(path))
    expect(asked).toEqual(['/first-down', '/second-up'])
  })

  test('failover: when none succeeds all are tried again in their order, but for those that failed for good', () => {
    const paths = server.requests.map(({ path }) => path).filter((path) => path.startsWith('/order'))
    expect(paths).toEqual(['/order-1', '/order-2', '/order-3', '/order-1', '/order-3'])
  })
})

describe('section 2.2: the headers of every request', () => {
  test('User-Agent names the service with version 1.0, and without a secret there is no X-Signature', async () => {
    await sendPing('plain')
    await ended('plain', 'delivered')
    const [request] = server.requestsTo('/plain')
    expect(request?.method).toBe('POST')
    expect(request?.headers).toMatchObject({ 'user-agent': 'Sluice/1.0', 'content-type': 'application/json' })
    expect(request?.headers).toMatchObject({
      accept: '*/*',
      'x-sluice-message-id': 'plain',
      'x-sluice-attempt': '1',
    })
    expect(request?.headers).not.toHaveProperty('x-signature')
    expect(request?.headers['content-length']).toBe(String(request?.body.length))
  })

  test('with a secret there is an X-Signature, and the custom headers of the webhook are sent', async () => {
    await sendPing('signed')
    await ended('signed', 'delivered')
    const [request] = server.requestsTo('/signed')
    expect(request?.headers).toMatchObject({
      'user-agent': 'Sluice/1.0',
      'content-type': 'application/json',
      authorization: 'Bearer abc',
      'x-team': 'crm é',
    })
    expect(request?.headers['x-signature']).toMatch(/^[0-9a-f]{40}$/)
  })

  test('each webhook of a destination gets its own custom headers, and none of another one', async () => {
    await sendPing('two-hooks')
    await until(
      'both have it',
      () => server.requestsTo('/of-crm').length + server.requestsTo('/of-ads').length === 2,
    )
    const [[ofCrm], [ofAds]] = [server.requestsTo('/of-crm'), server.requestsTo('/of-ads')]
    expect(ofCrm?.body).toEqual(ofAds?.body)
    const own = new Set(['authorization', 'x-team', 'x-ads-key'])
    const [crmHeaders, adsHeaders] = [ofCrm, ofAds].map((request) =>
      Object.fromEntries(Object.entries(request?.headers ?? {}).filter(([name]) => own.has(name))),
    )
    expect(crmHeaders).toEqual({ authorization: 'Bearer crm', 'x-team': 'crm' })
    expect(adsHeaders).toEqual({ 'x-team': 'ads', 'x-ads-key': '1' })
  })

  test('they are spelled as the seed spells them', () => {
    const names = server.requestsTo('/signed')[0]?.rawHeaders.filter((_text, i) => i % 2 === 0)
    expect(names).toEqual(
      expect.arrayContaining(['User-Agent', 'Content-Type', 'X-Signature', 'Authorization', 'X-Team']),
    )
  })
})

describe('section 2.2: the body of each type', () => {
  const timestamp = '2026-03-04T05:06:07.089Z'
  const always = { version: 1, userId: 'u1', timestamp, context: {} }
  const bodies: Record<string, object> = {
    page: {
      ...always,
      type: 'page',
      properties: { path: '/x', referrer: 'https://a.example/', title: 'X', url: 'https://b.example/x' },
    },
    screen: {
      ...always,
      type: 'screen',
      name: 'Home',
      properties: {},
      context: {
        device: { model: 'iPhone', type: 'ios' },
        os: { name: 'iOS', version: '18' },
        app: { build: '1.0', name: 'App', version: '2.0' },
      },
    },
    identify: { ...always, type: 'identify', traits: { email: 'a@example.com', plan: 'pro' } },
    track: { ...always, type: 'track', event: 'Order Completed', properties: { total: 9.5 } },
    alias: { version: 1, timestamp, context: {}, type: 'alias', 'Previous ID': 'anonymous', 'User ID': 'u1' },
    group: { ...always, type: 'group', groupId: 'g1', traits: { name: 'Initech' } },
    delete: { type: 'delete', userId: 'u1', timestamp },
  }

  beforeAll(async () => {
    const messages = Object.entries(bodies).map(([type, body]) => ({
      key: 'u1',
      value: { ...body, messageId: `body-${type}` },
    }))
    await sluice.send('bodies', messages)
    await ended('bodies', 'delivered', messages.length)
  })

  test.each(Object.keys(bodies).filter((type) => type !== 'alias' && type !== 'delete'))(
    '%s: every field of the seed, as it was produced',
    (type) => {
      expect(receivedBody(type)).toEqual({ ...bodies[type], messageId: `body-${type}` })
    },
  )

  test("alias: the seed's keys with the spaces, and the Spec's beside them", () => {
    expect(receivedBody('alias')).toEqual({
      ...bodies['alias'],
      previousId: 'anonymous',
      userId: 'u1',
      messageId: 'body-alias',
    })
  })

  test('delete: without a version', () => {
    const body = receivedBody('delete')
    expect(body).toMatchObject(bodies['delete'] ?? {})
    expect(body).not.toHaveProperty('version')
  })

  test('what a producer leaves out is added: version, properties, context and a timestamp in milliseconds', async () => {
    await sluice.send('bodies', [
      { key: 'u1', value: { type: 'track', userId: 'u1', event: 'E', messageId: 'body-bare' } },
    ])
    await until('it has come', () => server.requestsTo('/bodies').length > Object.keys(bodies).length)
    const event = (await sluice.read('events')).find(({ value }) => value?.includes('"body-bare"'))
    expect(receivedBody('bare')).toEqual({
      version: 1,
      type: 'track',
      userId: 'u1',
      event: 'E',
      messageId: 'body-bare',
      properties: {},
      context: {},
      timestamp: new Date(event?.timestamp ?? 0).toISOString(),
    })
  })
})

describe('batches that producers compress are read', () => {
  const { None, GZIP, Snappy, LZ4, ZSTD } = kafkajs.CompressionTypes
  const codecs = Object.entries({ none: None, gzip: GZIP, snappy: Snappy, lz4: LZ4, zstd: ZSTD })

  test.each(codecs)('%s', async (name, compression) => {
    const ids = Array.from({ length: 50 }, (_, i) => `${name}-${i}`)
    await sluice.send(
      'batches',
      ids.map((id) => ({ key: id, value: { ...ping(id), properties: { filler: 'x'.repeat(500) } } })),
      { compression },
    )
    expect(await until('all of them came', () => ids.every(cameInABatch))).toBe(true)
  })
})

describe('section 8: webhook URLs per destination: 5', () => {
  test('a catalog with 6 is refused, and the fault says so', async () => {
    sluice.rewriteCatalog(catalogWithHooks(6))
    const line = await until('it is refused', () =>
      sluice.worker.log.find((entry) => entry['faults'] !== undefined),
    )
    expect(line).toMatchObject({
      level: 'error',
      faults: [{ path: 'destinations[0].hooks', problem: 'has too many entries', advice: 'keep at most 5' }],
    })
  })

  test('a catalog with 5 is taken', async () => {
    sluice.rewriteCatalog(catalogWithHooks(5))
    expect(
      await until(
        'it is in force',
        async () => (await sluice.worker.metric('sluice_catalog_destinations')) === 1,
      ),
    ).toBe(true)
  })
})
