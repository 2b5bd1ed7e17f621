import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

let gateway: TestGateway
let nextId = 0

/**
 * Posts a message for each of `contexts`. Returns the `context.ip` of each message, as the gateway has
 * written it.
 */
async function ipsOf(
  of: TestGateway,
  contexts: readonly unknown[],
  { headers = {}, shared }: { headers?: Record<string, string>; shared?: object } = {},
): Promise<unknown[]> {
  const ids = contexts.map(() => `m${nextId++}`)
  const batch = contexts.map((context, index) => ({
    type: 'track',
    event: 'E',
    userId: 'u1',
    messageId: ids[index],
    context,
  }))
  const reply = await of.post('/v1/batch', { writeKey: 'KEY', batch, context: shared }, headers)
  expect(reply.status).toBe(200)
  const written = new Map(
    (await of.read('events')).map(({ value }) => [value['messageId'], value['context']]),
  )
  return ids.map((id) => Object(written.get(id))['ip'])
}

/**
 * Sends a message by a client whose clock is an hour late. Returns by how much the gateway has corrected the
 * time of the message, in milliseconds.
 */
async function correctionMs(of: TestGateway, path: string): Promise<number> {
  const messageId = `m${nextId++}`
  const timestamp = '2020-02-03T04:05:06.789Z'
  const sentAt = new Date(Date.now() - 3_600_000).toISOString()
  const item = { type: 'page', userId: 'u1', messageId, timestamp }
  await of.post(path, { writeKey: 'KEY', sentAt, batch: [item] })
  const found = (await of.read('events')).find(({ value }) => value['messageId'] === messageId)
  expect(found?.value).toMatchObject({ originalTimestamp: timestamp, sentAt })
  return Date.parse(String(found?.value['timestamp'])) - Date.parse(timestamp)
}

describe('where no proxy is trusted', () => {
  beforeAll(async () => {
    gateway = await startGateway()
  })

  afterAll(() => gateway.stop())

  test('the time of a message is corrected, and that of an import is kept', async () => {
    expect(await correctionMs(gateway, '/v1/batch')).toBeGreaterThan(3_500_000)
    expect(await correctionMs(gateway, '/v1/import')).toBe(0)
  })

  test('a message without an address gets that of the connection', async () => {
    expect(await ipsOf(gateway, [undefined, {}, { page: { path: '/' } }, null])).toEqual(
      Array.from({ length: 4 }, () => '127.0.0.1'),
    )
  })

  test('an address that is given stays, in the message and in the batch', async () => {
    expect(
      await ipsOf(gateway, [{ ip: '203.0.113.7' }, { ip: 'hidden' }, {}], { shared: { ip: '203.0.113.8' } }),
    ).toEqual(['203.0.113.7', 'hidden', '203.0.113.8'])
  })

  test('a single call gets it too', async () => {
    const messageId = `m${nextId++}`
    await gateway.post('/v1/identify', {
      writeKey: 'KEY',
      userId: 'u1',
      messageId,
      context: { locale: 'de' },
    })
    const found = (await gateway.read('events')).find(({ value }) => value['messageId'] === messageId)
    expect(found?.value['context']).toEqual({ ip: '127.0.0.1', locale: 'de' })
  })

  test('headers of the client change nothing', async () => {
    const headers = {
      'x-forwarded-for': '203.0.113.9',
      forwarded: 'for=203.0.113.9',
      'x-real-ip': '203.0.113.9',
    }
    expect(await ipsOf(gateway, [{}], { headers })).toEqual(['127.0.0.1'])
  })

  test('a client that names another address in each request is charged for its refused requests all the same', async () => {
    const authorization = `Basic ${Buffer.from('KEY:').toString('base64')}`
    /** A body without an end, which the gateway has to read until then. */
    const expensive = `{"batch":[{"x":[1.0${',{}'.repeat(160_000)}`
    const large = {
      batch: Array.from({ length: 200 }, () => ({ type: 'page', userId: 'u1', messageId: `m${nextId++}` })),
    }
    let host = 0
    const post = (body: unknown) =>
      gateway.post('/v1/batch', body, { authorization, 'x-forwarded-for': `198.51.100.${++host % 256}` })
    const refusal = await until('it was refused too often', async () => {
      await post(expensive)
      const reply = await post(large)
      return reply.status === 429 ? reply : undefined
    })
    expect(refusal.body['code']).toBe('refused_too_often')
  })
})

describe('behind trusted proxies', () => {
  beforeAll(async () => {
    gateway = await startGateway({
      variables: { SLUICE_GATEWAY_TRUSTED_PROXIES: '127.0.0.0/8,10.0.0.0/8,2001:db8::/32' },
    })
  })

  afterAll(() => gateway.stop())

  test.each([
    ['203.0.113.9', '203.0.113.9', 'the one that the proxy has written'],
    ['1.1.1.1, 203.0.113.9', '203.0.113.9', 'nothing that the client has written before it'],
    ['10.1.1.1, 203.0.113.9, 10.2.2.2, 2001:db8::2', '203.0.113.9', 'the one before the proxies of ours'],
    ['::ffff:203.0.113.9', '203.0.113.9', 'IPv4 as such'],
    ['203.0.113.9:50000', '203.0.113.9', 'without its port'],
    ['[2a00::1]:443, 10.2.2.2', '2a00::1', 'IPv6 without its brackets'],
    ['10.3.3.3', '10.3.3.3', 'the first of them where all are proxies'],
    ['1.1.1.1, unknown', undefined, 'none where the proxy does not know it'],
    ['', '127.0.0.1', 'that of the connection where the proxy says nothing'],
  ])('X-Forwarded-For %j gives %s: %s', async (header, ip, _why) => {
    expect(await ipsOf(gateway, [{}], { headers: { 'x-forwarded-for': header } })).toEqual([ip])
  })
})

describe('with the settings off', () => {
  beforeAll(async () => {
    const variables = { SLUICE_GATEWAY_ADD_IP: 'false', SLUICE_GATEWAY_CORRECT_TIMESTAMPS: 'false' }
    gateway = await startGateway({ variables })
  })

  afterAll(() => gateway.stop())

  test('no address is filled in', async () => {
    expect(await ipsOf(gateway, [{}, { ip: '203.0.113.7' }])).toEqual([undefined, '203.0.113.7'])
  })

  test('no time is corrected', async () => {
    expect(await correctionMs(gateway, '/v1/batch')).toBe(0)
  })
})

describe('where it listens on :: as in a cluster with IPv6', () => {
  beforeAll(async () => {
    gateway = await startGateway({ variables: { SLUICE_GATEWAY_HOST: '::', SLUICE_HTTP_HOST: '::' } })
  })

  afterAll(() => gateway.stop())

  test('a message that came by IPv4 has that address', async () => {
    expect(await ipsOf(gateway, [undefined])).toEqual(['127.0.0.1'])
  })

  test('a message that came by IPv6 has that one, and probes are answered there', async () => {
    const messageId = `m${nextId++}`
    const reply = await fetch(`${gateway.origin.replace('127.0.0.1', '[::1]')}/v1/track`, {
      method: 'POST',
      body: JSON.stringify({ writeKey: 'KEY', event: 'E', userId: 'u1', messageId }),
    })
    expect(reply.status).toBe(200)
    const found = (await gateway.read('events')).find(({ value }) => value['messageId'] === messageId)
    expect(found?.value['context']).toEqual({ ip: '::1' })
    const probes = [`127.0.0.1`, '[::1]'].map((host) =>
      fetch(`http://${host}:${gateway.process.httpPort}/livez`),
    )
    expect((await Promise.all(probes)).map(({ status }) => status)).toEqual([200, 200])
  })
})
