import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { basic, startGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

let gateway: TestGateway

const mebi = 1_024 * 1_024
const bufferBytes = 16 * mebi

beforeAll(async () => {
  gateway = await startGateway({
    sources: [
      { id: 'shop', writeKeys: ['KEY'] },
      { id: 'slow', writeKeys: ['SLOW-KEY'], maxPerSecond: 1 },
    ],
    variables: { SLUICE_GATEWAY_BUFFER_BYTES: '16MiB', SLUICE_GATEWAY_REQUEST_TIMEOUT: '1m' },
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
