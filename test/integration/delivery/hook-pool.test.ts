import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Connection, RequestHandler } from '../../../src/delivery/send/connection.ts'
import { createConnector } from '../../../src/delivery/connect/guarded-connector.ts'
import { HookPool, TurnEnd } from '../../../src/delivery/send/hook-pool.ts'
import { OpenConnections } from '../../../src/delivery/send/open-connections.ts'
import { createResolver } from '../../../src/delivery/connect/resolver.ts'
import { createAuthority } from '../../support/certificates.ts'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { portOf } from '../../support/receiver.ts'
import type { Scheme } from '../../support/trust.ts'
import { until } from '../../support/until.ts'

const authority = createAuthority('An authority of pools')
const identity = authority.issue({ names: ['127.0.0.1'] })
setDefaultCACertificates([...getCACertificates(), authority.cert])

/**
 * A server that answers only when as many requests have arrived as were sent at once. So each of them has a
 * connection.
 */
class Gathering {
  readonly sockets: Socket[] = []
  #awaited = 0
  #waiting: ServerResponse[] = []
  readonly #scheme: Scheme
  readonly #server: Server

  constructor(scheme: Scheme) {
    const take: RequestListener = (request, response) => {
      request.resume().on('end', () => {
        this.#waiting.push(response)
        if (this.#waiting.length === this.#awaited) for (const one of this.#waiting.splice(0)) one.end()
      })
    }
    this.#scheme = scheme
    this.#server = scheme === 'http' ? createServer(take) : createSecureServer(identity, take)
    this.#server.on('connection', (socket) => this.sockets.push(socket))
  }

  async start(): Promise<string> {
    this.#server.keepAliveTimeout = 0
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `${this.#scheme}://127.0.0.1:${portOf(this.#server)}`
  }

  await(count: number): void {
    this.#awaited = count
  }

  /** The number of requests that the server has not answered yet. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** The number of open sockets. */
  get open(): number {
    return this.sockets.filter((socket) => !socket.destroyed).length
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

let server: Gathering
let pool: HookPool
/** Another pool of the same sender. */
let other: HookPool
let open: OpenConnections
let closedOverLimit = 0
/**
 * The limit on idle connections. The tests that are not about this limit stay below it, so no connection is
 * closed because of it.
 */
const maxIdle = 12
const maxOpen = 15

async function begin(scheme: Scheme): Promise<void> {
  server = new Gathering(scheme)
  const policy = createAddressPolicy(['127.0.0.1'])
  const connect = createConnector({ policy, resolver: createResolver(), timeoutMs: 30_000 })
  closedOverLimit = 0
  open = new OpenConnections({ maxIdle, maxOpen, onClosed: () => closedOverLimit++ })
  const shared = { turnEnd: new TurnEnd(), open, egress: { take: () => undefined } }
  const options = { connect, pipelining: 1, keepAliveTimeout: 60_000 }
  const url = await server.start()
  pool = new HookPool(url, options, shared)
  other = new HookPool(url, options, shared)
}

afterEach(async () => {
  await pool.destroy()
  await other.destroy()
  await server.stop()
})

/**
 * Sends `count` requests that are all in flight at the same time. Returns their connections when these are
 * free again.
 */
async function sendAtOnce(count: number, by = pool): Promise<Connection[]> {
  server.await(count)
  const carriers = await Promise.all(Array.from({ length: count }, () => send(by)))
  await turn()
  return carriers
}

async function send(by: HookPool): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let carrier: Connection
    const handler: RequestHandler = {
      request: { path: '/', method: 'POST', headers: [], body: '{}' },
      assigned(connection) {
        carrier = connection
      },
      onRequestStart() {},
      onResponseStart() {},
      onResponseData() {},
      onResponseEnd() {
        by.leave(carrier)
        resolve(carrier)
      },
      onResponseError(_controller, error) {
        by.fail(carrier)
        reject(error)
      },
    }
    by.send(handler)
  })
}

const schemes: Scheme[] = ['http', 'https']

describe.each(schemes)('the connections to a hook over %s', (scheme) => {
  beforeEach(() => begin(scheme))

  test('are as many as there were requests at once, and each carries one at a time', async () => {
    const first = await sendAtOnce(5)
    expect(new Set(first).size).toBe(5)
    expect(new Set(await sendAtOnce(5))).toEqual(new Set(first))
    expect(server.sockets).toHaveLength(5)
  })

  test('wait in a stack: the one that was used last is used next', async () => {
    await sendAtOnce(3)
    const [one] = await sendAtOnce(1)
    for (let i = 0; i < 5; i++) expect(await sendAtOnce(1)).toEqual([one])
  })

  test('are limited while they are idle: those of any pool that were idle for the longest time are closed', async () => {
    const three = await sendAtOnce(3)
    await sendAtOnce(maxIdle - 3, other)
    expect([open.idle, closedOverLimit]).toEqual([maxIdle, 0])
    // Connections in use aren't idle. Afterwards, they are the newest idle connections.
    const used = await sendAtOnce(2)
    const ofOther = await sendAtOnce(maxIdle - 2, other)
    expect([open.idle, closedOverLimit]).toEqual([maxIdle, 1])
    const unused = three.filter((one) => !used.includes(one))
    expect(three.filter(({ destroyed }) => destroyed)).toEqual(unused)
    await until('its socket is closed', () => server.sockets.filter((socket) => socket.closed).length === 1)
    await sendAtOnce(maxIdle, other)
    expect([open.idle, closedOverLimit]).toEqual([maxIdle, 3])
    expect(used.every(({ destroyed }) => destroyed)).toBe(true)
    expect(ofOther.some(({ destroyed }) => destroyed)).toBe(false)
    // The pool has no connection left, so it opens new ones.
    expect(new Set([...(await sendAtOnce(2)), ...three]).size).toBe(5)
    await pool.destroy()
    await other.destroy()
    expect(open.idle).toBe(0)
  })

  test('make room for requests: while these have connections, fewer may be idle', async () => {
    await sendAtOnce(maxIdle, other)
    server.await(maxOpen)
    const sent = Array.from({ length: maxOpen - 1 }, () => send(pool))
    await until('they have arrived', () => server.waiting === maxOpen - 1)
    expect(open.idle).toBe(1)
    expect(server.open).toBe(maxOpen)
    await Promise.all([...sent, send(pool)])
    await turn()
    expect([open.idle, closedOverLimit]).toEqual([maxIdle, maxOpen])
  })

  test('do not count as idle once their sockets are closed', async () => {
    await sendAtOnce(4)
    const kept = await sendAtOnce(6, other)
    for (const socket of server.sockets.slice(0, 4)) socket.destroy()
    await until('the ends have come', () => open.idle === 6)
    await sendAtOnce(maxIdle - 6)
    expect([open.idle, closedOverLimit]).toEqual([maxIdle, 0])
    expect(kept.some(({ destroyed }) => destroyed)).toBe(false)
  })

  test('stay closed when their pool is destroyed in the turn in which they become free', async () => {
    server.await(2)
    const sent = [send(pool), send(pool)]
    await Promise.all(sent)
    await pool.destroy()
    await turn()
    await turn()
    expect(open.idle).toBe(0)
  })

  test('are let go when they were closed and nobody has used them since the last look', async () => {
    const all = await sendAtOnce(3)
    pool.trim()
    const [used] = await sendAtOnce(1)
    for (const socket of server.sockets) socket.destroy()
    await until('the ends have come', () => all.every(({ isConnected }) => !isConnected))
    pool.trim()
    expect(all.filter(({ destroyed }) => !destroyed)).toEqual([used])
    const again = await sendAtOnce(3)
    expect(again).toContain(used)
    expect(new Set(again).size).toBe(3)
  })

  test.for([0, 1, 2, 3])('stay in use, all but the one that was let go: number %i', async (closed) => {
    const all = await sendAtOnce(4)
    pool.trim()
    server.sockets[closed]?.destroy()
    await until('its end has come', () => all.some(({ isConnected }) => !isConnected))
    pool.trim()
    const kept = all.filter(({ destroyed }) => !destroyed)
    expect(kept).toHaveLength(3)
    expect(new Set(await sendAtOnce(3))).toEqual(new Set(kept))
    expect(server.sockets).toHaveLength(4)
  })

  test('are forgotten when all are closed, even by those who still have the pool', async () => {
    const kept = (await sendAtOnce(3)).map((connection) => new WeakRef(connection))
    await pool.destroy()
    await until('nothing keeps them', () => {
      collectGarbage()
      return kept.every((connection) => connection.deref() === undefined)
    })
    expect(pool.isOpen).toBe(false)
  })
})
