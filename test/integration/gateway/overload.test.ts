import { connect, type Socket } from 'node:net'
import process from 'node:process'
import { setTimeout as passTime } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { basic, startGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { newIds } from '../../e2e/scene.ts'

/** Gives clients so much time that only those end who do what a test is about. */
let gateway: TestGateway
/** Gives clients little time. */
let hurried: TestGateway

const requestTimeoutMs = 2_000
/** What `gateway.requestTimeout` is where nobody sets it. */
const defaultTimeoutMs = 10_000
const maxConnections = 60

beforeAll(async () => {
  hurried = await startGateway({ variables: { SLUICE_GATEWAY_REQUEST_TIMEOUT: `${requestTimeoutMs}ms` } })
  gateway = await startGateway({
    sources: [
      { id: 'shop', writeKeys: ['KEY'] },
      { id: 'slow', writeKeys: ['SLOW-KEY'], maxPerSecond: 10 },
    ],
    variables: {
      SLUICE_GATEWAY_REQUEST_TIMEOUT: '5m',
      SLUICE_GATEWAY_MAX_CONNECTIONS: String(maxConnections),
      SLUICE_GATEWAY_BUFFER_BYTES: '16MiB',
    },
  })
})

afterAll(() => Promise.all([gateway, hurried].map((one) => one.stop())))

function messages(ids: readonly string[]): object[] {
  return ids.map((messageId) => ({ type: 'track', userId: messageId, event: 'E', messageId }))
}

/** A connection, and everything that was received over it. */
class Line {
  readonly socket: Socket
  received = ''
  isClosed = false
  readonly #startMs = performance.now()
  closedAfterMs = 0

  /** If `keepsOn` is true, the connection stays open after the gateway has ended its side. */
  constructor(to: TestGateway, texts: readonly string[], { keepsOn = false } = {}) {
    const { gatewayPort: port } = to.process
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: keepsOn })
    this.socket.on('data', (chunk) => (this.received += chunk.toString()))
    this.socket.on('error', () => {})
    this.socket.on('close', () => {
      this.isClosed = true
      this.closedAfterMs = performance.now() - this.#startMs
    })
    for (const text of texts) this.socket.write(text)
  }

  async closed(): Promise<void> {
    await until('the connection is closed', () => this.isClosed)
  }

  /**
   * Sends `piece` again and again, as fast as the connection accepts it. Stops when `isEnough` returns true
   * or the connection is closed.
   */
  async feed(piece: string, isEnough: () => boolean): Promise<void> {
    while (!isEnough() && !this.isClosed) {
      if (this.socket.write(piece)) await new Promise(setImmediate)
      else await this.#drained()
    }
  }

  async #drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.socket.once('drain', resolve).once('close', resolve)
    await promise
    this.socket.off('drain', resolve).off('close', resolve)
  }
}

function openLine(...texts: string[]): Line {
  return new Line(gateway, texts)
}

function head(length: number, ...more: string[]): string {
  const lines = ['POST /v1/batch HTTP/1.1', 'Host: gateway', `Content-Length: ${length}`, ...more]
  return `${lines.join('\r\n')}\r\n\r\n`
}

describe('a source that is over its rate', () => {
  test('is answered 429 with Retry-After, nothing of it is written, and others are not concerned', async () => {
    // The rate makes room again in a second, so that a busy machine may need several tries.
    const { first, reply } = await until('it is over its rate', async () => {
      const [next = '', ...ids] = newIds(22)
      await gateway.post('/v1/batch', { batch: messages(ids) }, basic('SLOW-KEY'))
      const refusal = await gateway.post('/v1/track', messages([next])[0], basic('SLOW-KEY'))
      return refusal.status === 429 ? { first: next, reply: refusal } : undefined
    })
    expect(reply.body).toMatchObject({ success: false, code: 'rate_limited', message: expect.any(String) })
    const waitS = Number(reply.headers.get('retry-after'))
    expect(waitS).toBeGreaterThanOrEqual(1)
    expect(waitS).toBeLessThanOrEqual(3)
    const other = await gateway.post('/v1/batch', { batch: messages(newIds(50)) }, basic('KEY'))
    expect(other.status).toBe(200)

    await passTime(waitS * 1_000)
    expect((await gateway.post('/v1/track', messages([first])[0], basic('SLOW-KEY'))).status).toBe(200)
    const written = (await gateway.read('events')).filter(({ value }) => value['messageId'] === first)
    expect(written).toHaveLength(1)
  })
})

describe('a client that is too slow', () => {
  test('with its head loses its connection', async () => {
    const line = new Line(hurried, ['POST /v1/batch HTTP/1.1\r\nHost: gateway\r\n'])
    await line.closed()
    expect(line.received).toMatch(/^HTTP\/1\.1 408 /)
    expect(line.closedAfterMs).toBeLessThan(defaultTimeoutMs)
  })

  test('with its body loses its connection', async () => {
    const line = new Line(hurried, [head(1_000), '{"batch":'])
    await line.closed()
    expect(line.received).toMatch(/^HTTP\/1\.1 408 /)
    expect(line.received).toContain('"code":"request_too_slow"')
    expect(line.closedAfterMs).toBeLessThan(defaultTimeoutMs)
  })

  test('holds up nobody', async () => {
    const lines = Array.from({ length: 20 }, () => new Line(hurried, [head(1_000), '{"batch":']))
    const reply = await hurried.post('/v1/batch', { batch: messages(newIds(10)) }, basic('KEY'))
    expect(reply.status).toBe(200)
    for (const line of lines) await line.closed()
  })
})

describe('a request that is too much', () => {
  test('by its head is 431', async () => {
    const line = openLine(head(2, `X-Large: ${'x'.repeat(17_000)}`), '{}')
    await line.closed()
    expect(line.received).toMatch(/^HTTP\/1\.1 431 /)
  })

  test('by its URL is 431', async () => {
    const line = openLine(`POST /v1/batch?${'x'.repeat(17_000)} HTTP/1.1\r\nHost: gateway\r\n\r\n`)
    await line.closed()
    expect(line.received).toMatch(/^HTTP\/1\.1 431 /)
  })

  test('by its body is 400, which its client can read', async () => {
    for (const bytes of [600_000, 5_000_000]) {
      const reply = await gateway.post('/v1/batch', 'x'.repeat(bytes), basic('KEY'))
      expect([reply.status, reply.body['code']]).toEqual([400, 'payload_too_large'])
    }
  })

  test('that isn’t HTTP is 400, and the gateway goes on', async () => {
    for (const text of ['\u0000\u0001\u0002\r\n\r\n', 'GET\r\n\r\n', 'POST /v1/batch HTTP/9.9\r\n\r\n']) {
      const line = openLine(text)
      await line.closed()
      expect(line.received).toMatch(/^HTTP\/1\.1 (400|505) /)
    }
    expect((await gateway.post('/v1/t', messages(newIds(1))[0], basic('KEY'))).status).toBe(200)
  })
})

describe('a client that goes on sending what is too much', () => {
  const mebi = 1_024 * 1_024
  const endless = 'POST /v1/batch HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n'
  const piece = `10000\r\n${'x'.repeat(65_536)}\r\n`

  const tooLarge = /^HTTP\/1\.1 400 [^]*\r\nconnection: close\r\n[^]*"code":"payload_too_large"/

  test('has its answer, and loses its connection', async () => {
    const line = new Line(gateway, [endless])
    await line.feed(piece, () => line.received !== '')
    await line.closed()
    expect(line.received).toMatch(tooLarge)
  })

  test('has its answer though it looks for it only when it has sent much more', async () => {
    const line = new Line(gateway, [endless])
    line.socket.pause()
    // The buffers of both operating systems hold less than half of this.
    await line.feed(piece, () => line.socket.bytesWritten > 30 * mebi)
    line.socket.resume()
    await line.closed()
    expect(line.received).toMatch(tooLarge)
  })

  test('loses its connection all the same when it never stops', async () => {
    const line = new Line(gateway, [endless], { keepsOn: true })
    await line.feed(piece, () => line.socket.bytesWritten > 200 * mebi)
    await line.closed()
    expect(line.socket.bytesWritten).toBeLessThan(100 * mebi)
    expect(line.received).toMatch(tooLarge)
  })

  test('and when it goes on slowly', async () => {
    const line = new Line(gateway, [endless], { keepsOn: true })
    await line.feed(piece, () => line.received !== '')
    const dripping = setInterval(() => line.socket.write('x'), 100)
    await line.closed()
    clearInterval(dripping)
    expect(line.received).toMatch(tooLarge)
  })

  test('and then another request gets no answer to that, and it is not taken', async () => {
    const [messageId = ''] = newIds(1)
    const body = JSON.stringify({ writeKey: 'KEY', ...messages([messageId])[0] })
    const next = `POST /v1/track HTTP/1.1\r\nHost: gateway\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const line = new Line(gateway, [endless], { keepsOn: true })
    await line.feed(piece, () => line.received !== '')
    line.socket.end(`0\r\n\r\n${next}`)
    await line.closed()
    expect(line.received).toMatch(tooLarge)
    expect(line.received.match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect((await gateway.read('events')).filter(({ value }) => value['messageId'] === messageId)).toEqual([])
  })

  test('in its head has its answer too', async () => {
    const line = new Line(gateway, ['POST /v1/batch HTTP/1.1\r\nHost: gateway\r\nX-Large: '])
    line.socket.pause()
    await line.feed('x'.repeat(65_536), () => line.socket.bytesWritten > 20 * mebi)
    line.socket.resume()
    await line.closed()
    expect(line.received).toMatch(/^HTTP\/1\.1 431 /)
    expect(line.received).toContain('"code":"head_too_large"')
  })
})

describe('a client that sends requests without waiting for answers', () => {
  const request = 'GET /nothing HTTP/1.1\r\nHost: gateway\r\n\r\n'

  test('has its answers, if there are few', async () => {
    const line = openLine(request.repeat(50))
    await until('all are answered', () => line.received.match(/HTTP\/1\.1 /g)?.length === 50)
    expect(line.received.match(/HTTP\/1\.1 404 /g)).toHaveLength(50)
    line.socket.destroy()
  })

  test('and never reads one loses its connection, and what it sent is not held', async () => {
    const connections = await gateway.process.metric('sluice_gateway_connections')
    const lines = Array.from({ length: 10 }, () => openLine())
    for (const { socket } of lines) socket.pause().write(request.repeat(1_500))
    await until('all have been sent', () => lines.every(({ socket }) => socket.writableLength === 0))
    await until('nothing is held', async () => {
      return (await gateway.process.metric('sluice_gateway_connections')) <= connections
    })
    expect(await gateway.process.metric('sluice_gateway_open_requests')).toBe(0)
    for (const { socket } of lines) socket.destroy()
  })
})

describe('more than may be received at once', () => {
  test('is answered 503 with Retry-After, and memory stays where it is', async () => {
    const lines = Array.from({ length: 50 }, () => openLine(head(500_000), 'x'.repeat(490_000)))
    let before = 0
    await until(
      'no more is received',
      async () => {
        const bytes = await gateway.process.metric('sluice_gateway_receiving_bytes')
        const isSame = bytes > 16_000_000 && bytes === before
        before = bytes
        return isSame
      },
      { everyMs: 300 },
    )
    expect(await gateway.process.metric('sluice_gateway_receiving_bytes')).toBeLessThanOrEqual(16 * 1024 ** 2)
    for (const { socket } of lines) socket.write('x'.repeat(10_000))
    await until('all are answered', () => lines.every(({ received }) => received !== ''))
    const refused = lines.filter(({ received }) => received.startsWith('HTTP/1.1 503 '))
    expect(refused.length).toBeGreaterThan(10)
    for (const { received } of refused) expect(received.toLowerCase()).toContain('\r\nretry-after: ')
    for (const { socket } of lines) socket.destroy()
    await until('nothing is held', async () => {
      return (await gateway.process.metric('sluice_gateway_receiving_bytes')) === 0
    })
  })

  test('by connections is refused, and there is room again when some are closed', async () => {
    const lines = Array.from({ length: maxConnections + 20 }, () => openLine())
    await until('some are closed', () => lines.filter(({ isClosed }) => isClosed).length >= 20)
    expect(await gateway.process.metric('sluice_gateway_connections')).toBe(maxConnections)
    expect(await gateway.process.metric('sluice_gateway_connections_limit')).toBe(maxConnections)
    await until('all that are closed are counted', async () => {
      const refused = await gateway.process.metric('sluice_gateway_connections_refused_total')
      return refused === lines.filter(({ isClosed }) => isClosed).length
    })
    await until('the log tells it', () =>
      gateway.process.log.some(({ connections }) => connections !== undefined),
    )
    for (const { socket } of lines) socket.destroy()
    const reply = await until('there is room', () =>
      gateway.post('/v1/t', messages(newIds(1))[0], basic('KEY')),
    )
    expect(reply.status).toBe(200)
  })
})

test('a thousand clients that connect while the gateway is paused are all answered when it goes on', async () => {
  const paused = await startGateway({ variables: { SLUICE_GATEWAY_MAX_CONNECTIONS: '2000' } })
  onTestFinished(() => paused.stop())
  const { pid, gatewayPort } = paused.process
  process.kill(pid, 'SIGSTOP')
  const lines = Array.from({ length: 1_000 }, () => connect(gatewayPort, '127.0.0.1'))
  const seen = { connected: 0, answered: 0, failed: 0 }
  for (const socket of lines) {
    socket.on('connect', () => seen.connected++).on('error', () => seen.failed++)
    socket.once('data', (answer) => (seen.answered += answer.toString().startsWith('HTTP/1.1 404') ? 1 : 0))
    socket.write('GET /nothing HTTP/1.1\r\nHost: g\r\n\r\n')
  }
  try {
    // Where `net.core.somaxconn` is under 1,000, this fails.
    await until('all are connected', () => seen.connected === lines.length)
    process.kill(pid, 'SIGCONT')
    await until('all are answered', () => seen.answered === lines.length)
    expect(seen.failed).toBe(0)
  } finally {
    process.kill(pid, 'SIGCONT')
    for (const socket of lines) socket.destroy()
  }
})
