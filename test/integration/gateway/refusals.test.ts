import { connect, type Socket } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { basic, type Reply, startGateway, type TestGateway } from '../../support/gateway.ts'
import { Random } from '../../support/random.ts'
import { until } from '../../support/until.ts'

let gateway: TestGateway

const mebi = 1_024 * 1_024
const bufferBytes = 16 * mebi

beforeAll(async () => {
  gateway = await startGateway({
    sources: [
      { id: 'shop', writeKeys: ['KEY'] },
      { id: 'slow', writeKeys: ['SLOW-KEY'], maxPerSecond: 1 },
      { id: 'other', writeKeys: ['OTHER'] },
    ],
    variables: {
      SLUICE_GATEWAY_BUFFER_BYTES: '16MiB',
      SLUICE_GATEWAY_REQUEST_TIMEOUT: '1m',
      // The tests choose their addresses with `X-Forwarded-For`.
      SLUICE_GATEWAY_TRUSTED_PROXIES: '127.0.0.1/32',
    },
  })
})

afterAll(() => gateway.stop())

const damaged = gzipSync('{"batch":[]}').subarray(0, 12)
const message = { type: 'track', userId: 'u1', event: 'E' }

describe('what a body says does not matter where', () => {
  test('the key is unknown: 401, though the gzip is damaged', async () => {
    const reply = await gateway.post('/v1/batch', damaged, basic('NOPE'))
    expect([reply.status, reply.body['code']]).toEqual([401, 'unknown_write_key'])
  })

  test('the source is over its rate: 429, though the gzip is damaged, and the body is too large', async () => {
    const batch = Array.from({ length: 100 }, () => message)
    expect((await gateway.post('/v1/batch', { batch }, basic('SLOW-KEY'))).status).toBe(200)
    for (const body of [damaged, 'x'.repeat(600_000)]) {
      const reply = await gateway.post('/v1/batch', body, basic('SLOW-KEY'))
      expect([reply.status, reply.body['code']]).toEqual([429, 'rate_limited'])
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(50)
    }
  })

  test('a server key is unknown: 401, though the gzip is damaged', async () => {
    const reply = await gateway.post('/v1/deletions', damaged, basic('NOPE'))
    expect([reply.status, reply.body['code']]).toEqual([401, 'unknown_server_key'])
  })

  test('and a key that only the body says is looked for before it is read', async () => {
    const reply = await gateway.post('/v1/batch', '{"writeKey":"NOPE","batch":[', {})
    expect([reply.status, reply.body['code']]).toEqual([401, 'unknown_write_key'])
    const known = await gateway.post('/v1/batch', '{"writeKey":"KEY","batch":[', {})
    expect([known.status, known.body['code']]).toEqual([400, 'malformed_json'])
  })

  test('and what is refused so is not kept while it comes', async () => {
    const socket = connect(gateway.process.gatewayPort, '127.0.0.1')
    const head = 'POST /v1/batch HTTP/1.1\r\nHost: gateway\r\nAuthorization: Basic Tk9QRTo=\r\n'
    socket.write(`${head}Content-Length: 400000\r\n\r\n${'x'.repeat(300_000)}`)
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    await until('all of it is read', () => socket.writableLength === 0)
    expect(await gateway.process.metric('sluice_gateway_receiving_bytes')).toBe(0)
    socket.write('x'.repeat(100_000))
    await until('it is answered', () => answer !== '')
    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
    socket.destroy()
  })
})

test.each([
  ['an unknown key', 'Authorization: Basic Tk9QRTo=\r\n', '{}', '401'],
  ['a key of no server', 'Authorization: Basic Tk9QRTo=\r\n', '{}', '401', '/v1/deletions'],
  ['a source that is over its rate', 'Authorization: Basic U0xPVy1LRVk6\r\n', '{"batch":[]}', '429'],
  ['a body that is too large', 'Authorization: Basic S0VZOg==\r\n', 'x'.repeat(600_000), '400'],
])(
  'the connection is kept after %s, for the next request',
  async (_, authorization, body, status, path = '/v1/batch') => {
    const batch = Array.from({ length: 100 }, () => message)
    await gateway.post('/v1/batch', { batch }, basic('SLOW-KEY'))
    const socket = connect(gateway.process.gatewayPort, '127.0.0.1')
    let answers = ''
    socket.on('data', (chunk) => (answers += chunk.toString()))
    const request = `POST ${path} HTTP/1.1\r\nHost: gateway\r\n${authorization}Content-Length: ${body.length}\r\n\r\n${body}`
    for (let count = 1; count <= 3; count++) {
      socket.write(request)
      await until('it is answered', () => answers.split('HTTP/1.1 ').length > count || socket.destroyed)
    }
    expect(answers.match(/(?<=HTTP\/1\.1 )\d+/g)).toEqual([status, status, status])
    expect(answers.toLowerCase()).not.toContain('connection: close')
    socket.destroy()
  },
)

/** Sends a request as it is, and returns the whole answer. */
async function answerTo(request: string): Promise<string> {
  const socket = connect(gateway.process.gatewayPort, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => (answer += chunk.toString()))
  socket.write(request)
  await until('it is answered', () => answer.includes('\r\n\r\n{') || socket.destroyed)
  socket.destroy()
  return answer
}

describe('what Node itself would answer without a body', () => {
  test('a request without Host is answered 400, with a body that says so', async () => {
    const answer = await answerTo('POST /v1/batch HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}')
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toContain('"code":"malformed_request"')
    expect(answer.toLowerCase()).toContain('access-control-allow-origin: *')
  })

  test('a request with an unknown Expect is answered like any other', async () => {
    const head = 'POST /v1/batch HTTP/1.1\r\nHost: gateway\r\nExpect: the-unexpected\r\n'
    expect(await answerTo(`${head}Content-Length: 2\r\n\r\n{}`)).toContain('"code":"unknown_write_key"')
  })
})

describe('bodies in chunks of a byte, without a key', () => {
  const chunk = '1\r\nx\r\n'
  const head = 'POST /v1/batch HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n'

  /**
   * Opens connections that send `chunks` chunks each. Waits until everything is sent or the connections are
   * closed. Returns the highest resident memory of the gateway in this time.
   */
  async function flood(
    connections: number,
    chunks: number,
  ): Promise<{ peakBytes: number; sockets: Socket[] }> {
    const sockets = Array.from({ length: connections }, () => {
      const socket = connect(gateway.process.gatewayPort, '127.0.0.1')
      socket.on('error', () => {})
      socket.resume()
      socket.write(head + chunk.repeat(chunks))
      return socket
    })
    let peakBytes = 0
    await until(
      'all of it has come',
      async () => {
        peakBytes = Math.max(peakBytes, await gateway.process.metric('process_resident_memory_bytes'))
        return sockets.every(({ writableLength, destroyed }) => writableLength === 0 || destroyed)
      },
      { everyMs: 100 },
    )
    return { peakBytes, sockets }
  }

  test.each([
    [4, 500_000],
    [1_000, 4_000],
    [1_000, 12_000],
  ])('from %i connections, %i each: memory stays where it is', async (connections, chunks) => {
    for (const socket of (await flood(20, 4_000)).sockets) socket.destroy()
    const before = await gateway.process.metric('process_resident_memory_bytes')
    const { peakBytes, sockets } = await flood(connections, chunks)
    expect(await gateway.process.metric('sluice_gateway_receiving_bytes')).toBeLessThanOrEqual(bufferBytes)
    for (const socket of sockets) socket.destroy()
    expect((peakBytes - before) / mebi).toBeLessThan(150)
    const reply = await gateway.post('/v1/track', message, basic('KEY'))
    expect(reply.status).toBe(200)
  })
})

const from = (address: string) => ({ 'x-forwarded-for': address })
const large = { batch: Array.from({ length: 200 }, (_, index) => ({ ...message, messageId: `m${index}` })) }
/** A body without an end, which the gateway has to read until then. */
const expensive = `{"batch":[{"x":[1.0${',{}'.repeat(160_000)}`

type Call = readonly [body: unknown, headers: Record<string, string>, path?: string]

/** How many requests that are charged are under way at once. */
const chargedAtOnce = 8

/**
 * Sends `charged` until `refused` is answered 429, and then `others`. The client's budget grows meanwhile, so
 * `refused` is sent once more: if it isn't answered 429, all is repeated. Returns the last reply to `refused`
 * and the replies to `others`.
 */
async function whileRefused({
  charged,
  refused,
  others = [],
}: {
  charged: Call
  refused: Call
  others?: readonly Call[]
}): Promise<{ refusal: Reply; replies: readonly Reply[] }> {
  const send = ([body, headers, path = '/v1/batch']: Call) => gateway.post(path, body, headers)
  return until(
    'the client was refused too often',
    async () => {
      // On a busy machine, one after the other would be charged no more than the budget grows meanwhile.
      await Promise.all(Array.from({ length: chargedAtOnce }, () => send(charged)))
      if ((await send(refused)).status !== 429) return undefined
      const replies: Reply[] = []
      for (const other of others) replies.push(await send(other))
      const refusal = await send(refused)
      return refusal.status === 429 ? { refusal, replies } : undefined
      // A pause would let the budget grow.
    },
    { everyMs: 0 },
  )
}

describe('a client whose requests were refused too often', () => {
  test('is answered 429 for large requests to the same source, until its budget has grown', async () => {
    const headers = { ...basic('KEY'), ...from('203.0.113.1') }
    const { refusal } = await whileRefused({ charged: [expensive, headers], refused: [large, headers] })
    expect(refusal.body['code']).toBe('refused_too_often')
    expect(Number(refusal.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(
      await gateway.process.metric('sluice_gateway_refused_requests_total{reason="refused_too_often"}'),
    ).toBeGreaterThan(1)
    await until(
      'its budget has grown',
      async () => (await gateway.post('/v1/batch', large, headers)).status === 200,
    )
  })

  test('keeps nobody else from sending: other addresses, other sources at its address, single calls', async () => {
    const headers = { ...basic('KEY'), ...from('203.0.113.2') }
    const { replies } = await whileRefused({
      charged: [expensive, headers],
      refused: [large, headers],
      others: [
        [large, { ...basic('KEY'), ...from('203.0.113.3') }],
        [large, { ...basic('OTHER'), ...from('203.0.113.2') }],
        [{ ...large, writeKey: 'OTHER' }, from('203.0.113.2')],
        [message, headers, '/v1/track'],
      ],
    })
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  })

  test('without a known key is answered 429 for gzip, and others at its address only if theirs begins with no known key', async () => {
    const keys = gzipSync(`{${'"writeKey":"a","writeKey":"b",'.repeat(4_000)}"x":1}`)
    const network = '2001:db8:1:2'
    const packed = gzipSync(JSON.stringify({ ...large, writeKey: 'OTHER' }))
    const { replies } = await whileRefused({
      charged: [keys, from(`${network}::1`)],
      refused: [packed, from(`${network}::2`)],
      others: [
        [packed, from('2001:db8:1:3::2')],
        [packed, { ...basic('OTHER'), ...from(`${network}::1`) }],
        [gzipSync(JSON.stringify({ writeKey: 'OTHER', ...large })), from(`${network}::1`)],
        [{ ...large, writeKey: 'OTHER' }, from(`${network}::1`)],
      ],
    })
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  })
})

test.each([
  ['deflate', deflateSync],
  ['brotli', brotliCompressSync],
  ['zstd', zstdCompressSync],
  ['gzip of gzip', (text: Buffer) => gzipSync(gzipSync(text))],
])('a body in %s is refused with the compression that it may have', async (_, pack) => {
  const reply = await gateway.post('/v1/track', pack(Buffer.from(JSON.stringify(message))), basic('OTHER'))
  expect([reply.status, reply.body['code']]).toEqual([400, 'malformed_json'])
  expect(reply.body['message']).toContain('in gzip, once')
})

describe('a request whose body is dense', () => {
  const texts = {
    'write keys': `{${'"writeKey":"a","writeKey":"b",'.repeat(17_000)}"x":1}`,
    NaN: `{"batch":[${'NaN,'.repeat(127_000)}NaN]}`,
    'empty objects': `{"batch":[{"x":[${'{},'.repeat(160_000)}{}]}]}`,
    'many messages of the same text': JSON.stringify({ batch: Array.from({ length: 2_500 }, () => message) }),
    'a context for many messages': JSON.stringify({
      context: { pad: 'x'.repeat(30_000) },
      batch: Array.from({ length: 260 }, () => message),
    }),
  }

  test.each(Object.entries(texts))('with 2 KB of gzip, is refused before it is read: %s', async (_, text) => {
    const body = gzipSync(text)
    expect(body.length).toBeLessThan(2_048)
    const reply = await gateway.post('/v1/batch', body, basic('OTHER'))
    expect([reply.status, reply.body['code']]).toEqual([400, 'too_dense'])
  })

  test('without a key in its head, is refused while it is searched for one', async () => {
    const body = gzipSync(`{${'"w\\u0072iteKey":"a",'.repeat(24_000)}"x":1}`)
    expect(body.length).toBeLessThan(2_048)
    const reply = await gateway.post('/v1/batch', body)
    expect([reply.status, reply.body['code']]).toEqual([400, 'too_dense'])
  })

  test('is taken if it is honest: 500 KB that gzip makes a hundred times shorter', async () => {
    const properties = { text: 'Please ring twice. '.repeat(48) }
    const batch = Array.from({ length: 500 }, (_, index) => ({
      ...message,
      messageId: `m-${index}`,
      properties,
    }))
    const text = JSON.stringify({ batch })
    const body = gzipSync(text)
    expect(text.length).toBeGreaterThan(490_000)
    expect(text.length / body.length).toBeGreaterThan(100)
    const reply = await gateway.post('/v1/batch', body, basic('OTHER'))
    expect(reply.body).toEqual({ success: true })
  })

  test('is taken if its messages share a long text with escapes, as Python writes it', async () => {
    // Words in any order, so that the batch is a hundred times shorter in gzip, and not three hundred times.
    const random = new Random(1)
    const words = Array.from({ length: 1_000 }, () => `${random.below(90) + 10} trees. `).join('')
    const text = words + 'x'.repeat(29_500 - words.length) + '\\ud83d\\ude00'.repeat(200)
    const batch = Array.from(
      { length: 15 },
      (_, index) =>
        `{"properties": {"text": "${text}"}, "userId": "u${index}", "event": "Large", "type": "track", "messageId": "large-${index}"}`,
    )
    const packed = `{"batch": [${batch.join(', ')}], "sentAt": "2026-01-01T00:00:00Z"}`
    const body = gzipSync(packed)
    expect(packed.length / body.length).toBeGreaterThan(100)
    const reply = await gateway.post('/v1/batch', body, basic('OTHER'))
    expect(reply.body).toEqual({ success: true })
  })
})
