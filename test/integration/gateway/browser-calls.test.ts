import { connect } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keySetOf, newSigningKey, publicKeysOf } from '../../../src/catalog/features/signing-keys.ts'
import { basic, startGateway, type TestGateway } from '../../support/gateway.ts'

let gateway: TestGateway
const keys = [newSigningKey(), newSigningKey()]
/** The longest write key that the catalog allows. */
const longestKey = 'k'.repeat(200)

beforeAll(async () => {
  gateway = await startGateway({
    sources: [{ id: 'shop', writeKeys: ['KEY', longestKey] }],
    destinations: [
      { id: 'crm', sources: [], signing: { ed25519: keys }, hooks: [{ url: 'https://crm.example/' }] },
      { id: 'mail', sources: [], sharedSecret: 's', hooks: [{ url: 'https://mail.example/' }] },
    ],
    variables: { SLUICE_GATEWAY_TRUSTED_PROXIES: '127.0.0.1' },
  })
})

afterAll(() => gateway.stop())

/** Sends texts on a new connection, and returns everything that comes back. */
async function say(...texts: readonly string[]): Promise<string> {
  const socket = connect(gateway.process.gatewayPort, '127.0.0.1')
  for (const text of texts) socket.write(text)
  return readText(socket)
}

async function written(messageId: string): Promise<Record<string, unknown>[]> {
  const records = await gateway.read('events')
  return records.map(({ value }) => value).filter((value) => value['messageId'] === messageId)
}

describe('GET /v1/signing-keys/DESTINATION', () => {
  test('has the public keys of a destination, for everybody', async () => {
    const response = await fetch(`${gateway.origin}/v1/signing-keys/crm`)
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('public, max-age=300')
    const text = await response.text()
    expect(JSON.parse(text)).toEqual(keySetOf(publicKeysOf(keys)))
    expect(text).not.toContain('"d"')
    expect(
      await gateway.process.metric('sluice_gateway_requests_total', { call: 'signing_keys', status: '200' }),
    ).toBe(1)
  })

  test.each(['mail', 'of-nobody', '%00'])('is 404 for %s, which has none', async (id) => {
    expect((await fetch(`${gateway.origin}/v1/signing-keys/${id}`)).status).toBe(404)
  })
})

describe('GET /v1/projects/KEY/settings', () => {
  const path = '/v1/projects/KEY/settings'

  test('has what analytics.js needs, and sends it to where it came from', async () => {
    const response = await fetch(`${gateway.origin}${path}`, { headers: { origin: 'https://shop.example' } })
    expect(response.status).toBe(200)
    expect(response.headers.get('access-control-allow-origin')).toBe('https://shop.example')
    expect(response.headers.get('vary')).toBe('origin')
    expect(response.headers.get('cache-control')).toBe('public, max-age=120')
    const { host } = new URL(gateway.origin)
    expect(await response.json()).toEqual({
      integrations: { 'Segment.io': { apiKey: 'KEY', apiHost: `${host}/v1`, protocol: 'http' } },
      plan: {},
      metrics: { sampleRate: 0 },
    })
  })

  test.each([
    ['', 'https'],
    ['X-Forwarded-Proto: http\r\n', 'http'],
    ['X-Forwarded-Proto: ftp\r\n', 'https'],
  ])('of a public host, with %j, has the protocol %s', async (header, protocol) => {
    const answer = await say(
      `GET ${path} HTTP/1.1\r\nHost: sluice.example\r\nConnection: close\r\n${header}\r\n`,
    )
    const settings: unknown = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))
    const segment = { apiKey: 'KEY', apiHost: 'sluice.example/v1', protocol }
    expect(settings).toMatchObject({ integrations: { 'Segment.io': segment } })
  })

  test('of the longest key is there too', async () => {
    const response = await fetch(`${gateway.origin}/v1/projects/${longestKey}/settings`)
    expect(response.status).toBe(200)
  })

  test.each(['OTHER', 'KEY%00', '%7B', 'K'.repeat(300)])('of the key %s is 404', async (key) => {
    const response = await fetch(`${gateway.origin}/v1/projects/${key}/settings`)
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([404, '*'])
    expect(await response.json()).toMatchObject({ code: 'not_found' })
  })
})

async function show(
  call: string,
  data: string,
): Promise<{ status: number; type: string | null; bytes: Buffer }> {
  const response = await fetch(`${gateway.origin}/v1/pixel/${call}${data === '' ? '' : `?data=${data}`}`)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, type: response.headers.get('content-type'), bytes }
}

const of = (message: object): string =>
  encodeURIComponent(Buffer.from(JSON.stringify(message)).toString('base64'))

function expectImage({ status, type, bytes }: Awaited<ReturnType<typeof show>>): void {
  expect([status, type, bytes.subarray(0, 6).toString(), bytes.readUInt16LE(6)]).toEqual([
    200,
    'image/gif',
    'GIF89a',
    1,
  ])
}

describe('GET /v1/pixel/CALL', () => {
  test.each(['base64', 'base64url'] as const)(
    'takes a message in %s, and answers with an image',
    async (encoding) => {
      const messageId = `pixel-${encoding}`
      const message = {
        writeKey: 'KEY',
        userId: 'u1',
        event: 'Mail Opened',
        messageId,
        properties: { text: 'ÿþ?>~ü' },
      }
      expectImage(await show('track', Buffer.from(JSON.stringify(message)).toString(encoding)))
      expect(await written(messageId)).toMatchObject([
        {
          type: 'track',
          userId: 'u1',
          event: 'Mail Opened',
          properties: { text: 'ÿþ?>~ü' },
          context: { ip: '127.0.0.1' },
        },
      ])
    },
  )

  test.each([
    ['track', of({ writeKey: 'OTHER', userId: 'u1', event: 'E' }), '401'],
    ['track', of({ userId: 'u1', event: 'E' }), '401'],
    ['track', of({ writeKey: 'KEY' }), '200'],
    // These data can't be read, so they have no key. The gateway checks the key first.
    ['track', '%%%', '401'],
    ['track', '', '401'],
    ['delete', of({ writeKey: 'KEY', userId: 'u1' }), '404'],
    ['batch', of({ writeKey: 'KEY', batch: [] }), '404'],
  ])('shows an image for %s with %s too, and is counted as %s', async (call, data, status) => {
    const count = (): Promise<number> =>
      gateway.process.metric('sluice_gateway_requests_total', { call: 'pixel', status })
    const before = await count()
    expectImage(await show(call, data))
    expect(await count()).toBe(before + 1)
  })

  test('takes nothing of a HEAD', async () => {
    const response = await fetch(`${gateway.origin}/v1/pixel/track`, { method: 'HEAD' })
    expect(response.status).toBe(404)
  })
})

async function allowed(asked: string): Promise<string | null> {
  const response = await fetch(`${gateway.origin}/v1/t`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://shop.example',
      'access-control-request-method': 'POST',
      ...(asked !== '' && { 'access-control-request-headers': asked }),
    },
  })
  expect([response.status, response.headers.get('access-control-allow-methods')]).toEqual([
    204,
    'GET, POST, OPTIONS',
  ])
  return response.headers.get('access-control-allow-headers')
}

describe('a preflight', () => {
  test('allows what it asks for, also headers that nobody here knows', async () => {
    expect(await allowed('content-type,x-request-id, x_trace.id')).toBe(
      'content-type,x-request-id, x_trace.id',
    )
  })

  test.each(['', 'a b', 'a;b', '"a"', ',', `x-${'y'.repeat(1_000)}`])(
    'that asks for %j is told the usual ones',
    async (asked) => {
      expect(await allowed(asked)).toBe('authorization, content-type, x-retry-count')
    },
  )
})

function trackOf(messageId: string): string {
  const text = JSON.stringify({ writeKey: 'KEY', type: 'track', userId: 'u1', event: 'E', messageId })
  return `POST /v1/track HTTP/1.1\r\nHost: g\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}

describe('a good request before garbage on one connection', () => {
  test('gets its own answer, before that to the garbage', async () => {
    const answer = await say(`${trackOf('piped-1')}${trackOf('piped-2')}\u0000\u0001 garbage\r\n\r\n`)
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
    expect(statuses).toEqual(['200', '200', '400'])
    expect([await written('piped-1'), await written('piped-2')].map(({ length }) => length)).toEqual([1, 1])
  })
})

test('a page may send beacons of JSON, with credentials, and read every answer to them', async () => {
  for (const origin of ['https://shop.example', 'http://localhost:3000', 'null']) {
    const replies = [
      await gateway.post('/v1/t', { userId: 'u1', event: 'E' }, { ...basic('KEY'), origin }),
      await gateway.post('/v1/t', '{', { ...basic('KEY'), origin }),
      await gateway.post('/v1/t', {}, { ...basic('NOPE'), origin }),
      await gateway.post('/v1/nothing', {}, { origin }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 400, 401, 404])
    for (const { headers } of replies) {
      expect(headers.get('access-control-allow-origin')).toBe(origin)
      expect(headers.get('access-control-allow-credentials')).toBe('true')
      expect(headers.get('vary')).toBe('origin')
    }
  }
})

test('what PHP writes, and a phone whose stored messages were damaged between, is taken', async () => {
  const item = { type: 'track', event: 'E', userId: 'u1' }
  const batch = [
    { ...item, messageId: 'of-php', context: [], properties: [] },
    { ...item, messageId: 'of-phone' },
  ]
  const texts = batch.map((one) => JSON.stringify(one))
  const reply = await gateway.post(
    '/v1/batch',
    `{"writeKey":"KEY","context":[],"integrations":[],"batch":[,${texts.join(',,')}]}`,
  )
  expect(reply.body).toEqual({ success: true })
  expect(await written('of-php')).toMatchObject([{ properties: {}, context: { ip: '127.0.0.1' } }])
  expect(await written('of-phone')).toHaveLength(1)
})

describe('browsers', () => {
  test('may ask first, on every path', async () => {
    for (const path of ['/v1/t', '/v1/batch', '//v1/m/']) {
      const response = await fetch(`${gateway.origin}${path}`, {
        method: 'OPTIONS',
        redirect: 'manual',
        headers: {
          origin: 'https://shop.example',
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type,x-retry-count',
        },
      })
      expect(response.status).toBe(204)
      expect(response.headers.get('access-control-allow-origin')).toBe('https://shop.example')
      expect(response.headers.get('access-control-allow-credentials')).toBe('true')
      expect(response.headers.get('access-control-allow-methods')).toContain('POST')
      expect(response.headers.get('access-control-allow-headers')?.split(/, */)).toEqual(
        expect.arrayContaining(['authorization', 'content-type', 'x-retry-count']),
      )
    }
  })

  test('may read every answer', async () => {
    const replies = [
      await gateway.post('/v1/t', { userId: 'u1', event: 'E' }, { ...basic('KEY'), 'x-retry-count': '2' }),
      await gateway.post('/v1/t', '{', basic('KEY')),
      await gateway.post('/v1/t', {}, basic('NOPE')),
      await gateway.post('/v1/nothing', {}),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 400, 401, 404])
    for (const { headers } of replies) expect(headers.get('access-control-allow-origin')).toBe('*')
  })
})
