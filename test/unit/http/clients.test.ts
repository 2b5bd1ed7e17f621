import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type ClientLimits, Clients, type ClosedClient } from '../../../src/http/clients.ts'
import { portOf } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'

const megabyte = 1_000_000
const large = 'x'.repeat(8 * megabyte)

/** Starts a server that answers `/large` with 8 MB, if there is room, and all other paths with `ok`. */
async function serve(
  limits: ClientLimits = {},
  holderOf = (_request: IncomingMessage): string | undefined => undefined,
) {
  const closed: ClosedClient[] = []
  const held: ServerResponse[] = []
  const server = createServer((request, response) => {
    if (!clients.isAdmitted(request, response)) return
    held.push(response)
    if (request.url === '/never') return
    if (request.url !== '/large') response.end('ok')
    else if (clients.hasRoom(request, response, holderOf(request))) response.end(large)
    else response.writeHead(503).end('busy')
  })
  const clients = new Clients(server, { ...limits, onClosed: (why) => closed.push(why) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    port: portOf(server),
    closed,
    /** The bytes of answers that wait in the process. */
    unread: () =>
      held.reduce((sum, { writableLength, closed: isOver }) => sum + (isOver ? 0 : writableLength), 0),
  }
}

/** Opens a connection that never reads, and sends a text on it. */
async function neverReading(port: number, text = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').pause()
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(text)
  onTestFinished(() => void socket.destroy())
  return socket
}

const requestFor = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`

async function statusOf(port: number, path: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  await response.arrayBuffer()
  return response.status
}

test('200 clients that never read leave a bounded part of their answers in memory, and others are answered', async () => {
  const { port, closed, unread } = await serve({ maxUnreadBytes: 24 * megabyte })
  const sockets: Socket[] = []
  for (let round = 0; round < 20; round++) {
    for (let at = 0; at < 10; at++) sockets.push(await neverReading(port, requestFor('/large')))
    expect(await statusOf(port, '/other')).toBe(200)
    expect(unread()).toBeLessThan(24 * megabyte + 10 * large.length)
  }
  await until(
    'a large answer is given to a client that reads',
    async () => (await statusOf(port, '/large')) === 200,
  )
  expect(unread()).toBeLessThan(24 * megabyte + large.length)
  expect(closed).toContain('unread')
})

test('one holder takes no more than half of the room', async () => {
  const { port } = await serve({ maxUnreadBytes: 40 * megabyte }, ({ headers }) =>
    String(headers['x-holder']),
  )
  const headers = 'X-Holder: ann\r\n'
  for (let at = 0; at < 5; at++) await neverReading(port, requestFor('/large', headers))
  const asked = async (holder: string): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${port}/large`, { headers: { 'x-holder': holder } })
    await response.arrayBuffer()
    return response.status
  }
  expect(await asked('ann')).toBe(503)
  expect(await asked('bob')).toBe(200)
})

test('a client that reads slowly, but reads, is not cut off', async () => {
  const { port, closed } = await serve({ maxUnreadBytes: 24 * megabyte })
  const socket = await neverReading(port, requestFor('/large'))
  let bytes = 0
  await until('all is read', () => {
    for (let times = 0; times < 8; times++) bytes += Buffer.from(socket.read() ?? '').length
    return bytes >= large.length
  })
  expect(closed).toEqual([])
})

test('connections that send nothing make room for those that ask', async () => {
  const { port, closed } = await serve({ maxConnections: 10 })
  const waiting = await neverReading(port, requestFor('/never'))
  for (let at = 0; at < 100; at++) await neverReading(port, at % 2 === 0 ? '' : 'GET / HT')
  expect(await statusOf(port, '/other')).toBe(200)
  await until('the idle ones are closed', () => closed.length >= 91)
  expect(closed.every((why) => why === 'connections')).toBe(true)
  expect(waiting.destroyed).toBe(false)
})

test('a connection with more than 16 unanswered requests is closed', async () => {
  const { port, closed } = await serve()
  const socket = await neverReading(port, requestFor('/never').repeat(17))
  socket.resume()
  await once(socket, 'close')
  expect(closed).toEqual(['pipelining'])
})
