import { EventEmitter, once } from 'node:events'
import { connect, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createCatalog } from '../../../../src/catalog/catalog.ts'
import { type Answer, success } from '../../../../src/gateway/calls/answer.ts'
import { GatewayDrain } from '../../../../src/gateway/http/gateway-drain.ts'
import { createGatewayServer, type GatewayServer } from '../../../../src/gateway/http/gateway-server.ts'
import { Sources } from '../../../../src/gateway/calls/sources.ts'
import { until } from '../../../support/until.ts'

const host = '127.0.0.1'
const slow = 'POST /v1/track HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'
const quick = 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n'

type Scene = {
  server: GatewayServer
  socket: Socket
  /** Opens another connection. */
  readonly connectAgain: () => Socket
  readonly answer: () => void
  /** The status of each answer that was counted. */
  readonly counted: number[]
}

/** Starts a gateway that answers messages when a test says so, and connects to it. */
async function begin(
  times: { requestTimeoutMs: number; takenWithinMs?: number } = { requestTimeoutMs: 5_000 },
): Promise<Scene> {
  const { promise, resolve } = Promise.withResolvers<Answer>()
  const catalog = createCatalog([], [], '1')
  const counted: number[] = []
  const server = createGatewayServer({
    sources: new Sources(
      () => catalog,
      () => performance.now(),
    ),
    tracking: { refusal: () => undefined, handle: () => promise },
    serverCalls: { refusal: () => success, deletion: () => promise, audienceChanges: () => promise },
    observer: {
      answered: (_call, status) => void counted.push(status),
      acknowledged() {},
      leftOut() {},
      coalesced() {},
      digitsLost() {},
      connectionRefused() {},
      failed() {},
    },
    receiveBytes: 1_000_000,
    ...times,
    maxConnections: 100,
    addIp: false,
    correctTimestamps: true,
    trustedProxies: [],
  })
  const port = await server.listen({ host, port: 0 })
  onTestFinished(() => server.stop(0))
  const open = (): Socket => {
    const socket = connect(port, host)
    socket.on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    return socket
  }
  return { server, socket: open(), connectAgain: open, counted, answer: () => resolve(success) }
}

test('a response that Node never closes is not open any more once its connection is closed', async () => {
  const drain = new GatewayDrain()
  const socket = new Socket()
  const [first, second] = [new EventEmitter(), new EventEmitter()]
  drain.opened(socket, first)
  drain.opened(socket, second)
  first.emit('close')
  expect(drain.open).toBe(1)
  socket.destroy()
  await once(socket, 'close')
  expect(drain.open).toBe(0)
  second.emit('close')
  expect(drain.open).toBe(0)
})

test('requests that are answered one after the other are each counted once', async () => {
  const { server, socket, answer } = await begin()
  let received = ''
  socket.on('data', (chunk) => (received += chunk.toString()))
  socket.write(quick + slow + quick)
  await until('two are open', () => server.open === 2)
  answer()
  await until('all are answered', () => received.split('HTTP/1.1 ').length === 4)
  await until('none is open', () => server.open <= 0)
  expect(server.open).toBe(0)
})

test('what comes in pieces and is no HTTP is answered and counted once, after the answers before it', async () => {
  const warnings: Error[] = []
  const warned = (warning: Error): void => void warnings.push(warning)
  process.on('warning', warned)
  onTestFinished(() => void process.off('warning', warned))
  const { server, socket, counted, answer } = await begin()
  let received = ''
  socket.setNoDelay(true)
  socket.on('data', (chunk) => (received += chunk.toString()))
  socket.write(slow)
  await until('it is open', () => server.open === 1)
  for (let nth = 0; nth < 30; nth++) {
    socket.write('no HTTP\r\n\r\n')
    await delay(2)
  }
  answer()
  await until('it is closed', () => server.connections === 0)
  expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
  expect(counted).toEqual([200, 400])
  expect(warnings.map(({ name }) => name)).toEqual([])
})

test('a client that never reads what it asked for loses its connection', async () => {
  const { server, socket } = await begin({ requestTimeoutMs: 1_000, takenWithinMs: 500 })
  socket.pause()
  const some = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(90)
  // The buffers of both operating systems hold the first answers.
  let heldFor = 0
  await until(
    'the gateway holds the next ones',
    () => {
      heldFor = server.open === 0 ? 0 : heldFor + 1
      if (heldFor === 0) socket.write(some)
      return heldFor === 10
    },
    // With longer pauses, the connection might be closed before the tenth look.
    { everyMs: 10 },
  )
  await until('nothing is held any more', () => server.connections === 0)
  expect(server.open).toBe(0)
})

test('where more requests are open than connections are allowed, only a connection with one goes on', async () => {
  const { server, socket, connectAgain, answer } = await begin()
  socket.write(slow.repeat(100))
  await until('the first are open', () => server.open === 100)
  const [one, many] = [connectAgain(), connectAgain()]
  one.write(slow)
  await until('the one is open', () => server.open === 101)
  let isClosed = false
  many.on('close', () => (isClosed = true)).write(slow.repeat(2))
  await until('the connection with two is closed', () => isClosed)
  expect(server.open).toBe(101)
  let received = ''
  one.on('data', (chunk: Buffer) => (received += chunk.toString()))
  answer()
  await until('the one is answered', () => received.startsWith('HTTP/1.1 200 '))
})

test('no request is answered that comes with too many others', async () => {
  const { socket, counted } = await begin()
  socket.resume()
  socket.write(quick.repeat(1_000))
  await once(socket, 'close')
  // The request that is one too many is the one that closes the connection.
  expect(counted).toHaveLength(101)
})
