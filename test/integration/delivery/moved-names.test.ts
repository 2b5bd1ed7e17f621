import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { createProxy } from '../../../src/delivery/connect/proxy.ts'
import { createResolver } from '../../../src/delivery/connect/resolver.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import {
  createSender,
  type Sender,
  type SenderOptions,
  type Target,
} from '../../../src/delivery/send/sender.ts'
import { createAuthority, type Identity } from '../../support/certificates.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { startDnsServer } from '../../support/dns-server.ts'
import { answer, type Receiver, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { watchDials } from './dials.ts'

/**
 * Tests of what happens to open connections when their name gets other addresses, and of how requests are
 * shared among several addresses. The servers listen at several addresses of this machine.
 */

const authority = createAuthority('An authority of moved names')
const identity = authority.issue({ names: ['moved.test'] })
setDefaultCACertificates([...getCACertificates(), authority.cert])

const [here, there, nowhere] = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const
const ok: Outcome = { kind: 'answer', status: 200 }
const ttlSeconds = 1
const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  vi.restoreAllMocks()
  for (const end of ended.splice(0).toReversed()) await end()
})

type Host = {
  /** The present addresses of the name. */
  addresses: readonly string[]
  by: Sender
  /** Starts a server at an address. All servers of a host have the same port. */
  serve(at: string, options?: { script?: Script; identity?: Identity }): Promise<Receiver>
  /** Returns the hook. It is the same object in each call, because a target has its own connections. */
  to(scheme?: 'http' | 'https'): Target
}

async function host(addresses: readonly string[], options: Partial<SenderOptions> = {}): Promise<Host> {
  let port = 0
  const targets = new Map<string, Target>()
  const dns = await startDnsServer(({ type }) => ({
    addresses: type === 'A' ? made.addresses : [],
    ttlSeconds,
  }))
  const resolver = createResolver({ servers: [dns.address] })
  const policy = createAddressPolicy(['127.0.0.0/8'])
  const by = createSender({ policy, resolver, timeoutMs: 5_000, poolIdleMs: 30_000, ...options })
  ended.push(async () => {
    await by.close()
    resolver.close()
    await dns.stop()
  })
  const made: Host = {
    addresses,
    by,
    async serve(at, { script = answer(200), identity: own } = {}) {
      const server = await startReceiver(script, { host: at, port, ...(own && { identity: own }) })
      port = server.port
      ended.push(() => server.stop())
      return server
    },
    to(scheme = 'http') {
      const known = targets.get(scheme)
      if (known !== undefined) return known
      const target = { origin: `${scheme}://moved.test:${port}`, path: '/', headers: [] }
      targets.set(scheme, target)
      return target
    },
  }
  return made
}

async function post(by: Sender, to: Target): Promise<Outcome> {
  const outcome = Promise.withResolvers<Outcome>()
  const released = Promise.withResolvers<void>()
  by.post(to, Buffer.from('{}'), [], { answered: outcome.resolve, released: () => released.resolve() })
  await released.promise
  return outcome.promise
}

/** Posts requests one after the other. Each must be answered with 200. */
async function postMany(count: number, by: Sender, to: Target): Promise<void> {
  for (let nth = 0; nth < count; nth++) expect(await post(by, to)).toEqual(ok)
}

describe('a name that moves to another address', () => {
  test('is followed within half a minute of the end of its TTL, and no request fails', async () => {
    const moved = await host([here])
    const [old, next] = [await moved.serve(here), await moved.serve(there)]
    const to = moved.to()
    await postMany(5, moved.by, to)
    moved.addresses = [there]
    const movedMs = performance.now()
    await until(
      'the new address gets requests',
      async () => {
        expect(await post(moved.by, to)).toEqual(ok)
        return next.requests.length > 0
      },
      { everyMs: 500 },
    )
    expect(performance.now() - movedMs).toBeLessThan(30_000 + ttlSeconds * 1_000)
    const before = old.requests.length
    await postMany(5, moved.by, to)
    expect(old.requests).toHaveLength(before)
    await until('the old connection is closed', () => old.open === 0)
    expect([old.connections, next.connections]).toEqual([1, 1])
  })

  test('lets a request end on its connection, which is then closed', async () => {
    const moved = await host([here], { timeoutMs: 30_000 })
    const held = Promise.withResolvers<void>()
    const slow: Script = (_request, response, nth) => {
      if (nth === 1) void held.promise.then(() => response.end())
      else response.end()
    }
    const [old, next] = [await moved.serve(here, { script: slow }), await moved.serve(there)]
    const to = moved.to()
    const long = post(moved.by, to)
    await until('it is under way', () => old.requests.length === 1)
    moved.addresses = [there]
    await until(
      'the new address gets requests',
      async () => {
        expect(await post(moved.by, to)).toEqual(ok)
        return next.requests.length > 0
      },
      { everyMs: 100 },
    )
    held.resolve()
    expect(await long).toEqual(ok)
    await postMany(3, moved.by, to)
    await until('the old connections are closed', () => old.open === 0)
  })

  test.each([
    ['does not exist for a while', 'NXDOMAIN'],
    ['is not known by the server for a while', 'SERVFAIL'],
    ['has only addresses that are not allowed for a while', { addresses: ['10.0.0.1'], ttlSeconds }],
  ] as const)('keeps its connection while it %s', async (_, reply) => {
    let answers = 0
    const dns = await startDnsServer(({ type }) => {
      answers++
      if (answers > 2) return reply
      return { addresses: type === 'A' ? [here] : [], ttlSeconds }
    })
    const resolver = createResolver({ servers: [dns.address] })
    const kept = await host([here], { resolver })
    ended.push(async () => {
      resolver.close()
      await dns.stop()
    })
    const server = await kept.serve(here)
    await until(
      'it was looked up again',
      async () => {
        await postMany(1, kept.by, kept.to())
        return answers > 2
      },
      { everyMs: 200 },
    )
    await postMany(20, kept.by, kept.to())
    expect(server.connections).toBe(1)
  })
})

describe('a name with two addresses', () => {
  test.each(['http', 'https'] as const)(
    'shares the requests of a steady sender among them, over %s',
    async (scheme) => {
      const shared = await host([here, there])
      const own = scheme === 'https' ? { identity } : {}
      const servers = [await shared.serve(here, own), await shared.serve(there, own)]
      await postMany(150, shared.by, shared.to(scheme))
      for (const { requests, connections } of servers) {
        expect(requests.length).toBeGreaterThanOrEqual(60)
        expect(requests.length).toBeLessThanOrEqual(90)
        expect(connections).toBe(1)
      }
    },
  )

  test('shares the requests of many senders at once among them', async () => {
    const shared = await host([here, there])
    const servers = [await shared.serve(here), await shared.serve(there)]
    await Promise.all(Array.from({ length: 20 }, () => postMany(50, shared.by, shared.to())))
    for (const { requests } of servers) {
      expect(requests.length).toBeGreaterThanOrEqual(400)
      expect(requests.length).toBeLessThanOrEqual(600)
    }
  })

  test('has one connection while the hook gets few messages', async () => {
    const shared = await host([here, there])
    const servers = [await shared.serve(here), await shared.serve(there)]
    await postMany(7, shared.by, shared.to())
    expect(servers.reduce((sum, { connections }) => sum + connections, 0)).toBe(1)
  })

  test('one of which refuses connections: all requests go to the other one, over one connection', async () => {
    const shared = await host([here, nowhere])
    const server = await shared.serve(here)
    const dialled = watchDials()
    await postMany(150, shared.by, shared.to())
    expect(dialled.filter((address) => address === nowhere).length).toBeLessThanOrEqual(1)
    expect(server.connections).toBeLessThanOrEqual(2)
  })

  test('one of which has a certificate that is not trusted: few requests are lost to it', async () => {
    const shared = await host([here, there])
    const good = await shared.serve(here, { identity })
    await shared.serve(there, { identity: createAuthority('Nobody').issue({ names: ['moved.test'] }) })
    const outcomes: Outcome[] = []
    for (let nth = 0; nth < 150; nth++) outcomes.push(await post(shared.by, shared.to('https')))
    expect(outcomes.filter(({ kind }) => kind !== 'answer').length).toBeLessThanOrEqual(1)
    expect(good.requests.length).toBeGreaterThanOrEqual(149)
  })
})

describe('a connection that has reached its age', () => {
  const maxAgeMs = 200

  test.each(['http', 'https'] as const)(
    'is replaced by a new one, and no request fails, over %s',
    async (scheme) => {
      const aged = await host([here], { maxAgeMs })
      const server = await aged.serve(here, scheme === 'https' ? { identity } : {})
      const startedMs = performance.now()
      let posted = 0
      while (server.connections < 5) {
        await postMany(1, aged.by, aged.to(scheme))
        posted++
      }
      // Four connections before it got as old as they may.
      expect(performance.now() - startedMs).toBeGreaterThan(4 * 0.8 * maxAgeMs)
      expect(server.requests).toHaveLength(posted)
      await until('only the last one is open', () => server.open === 1)
    },
  )

  test('is replaced although it always has a next request', async () => {
    const aged = await host([here], { maxAgeMs })
    const server = await aged.serve(here)
    let posted = 0
    const deadlineMs = performance.now() + 30_000
    async function postInTurn(): Promise<void> {
      while (server.connections <= 4 * 5 && performance.now() < deadlineMs) {
        await postMany(1, aged.by, aged.to())
        posted++
      }
    }
    await Promise.all(Array.from({ length: 4 }, postInTurn))
    expect(server.requests).toHaveLength(posted)
    expect(server.connections).toBeGreaterThan(4 * 5)
  })

  test('is replaced by a new tunnel, if there is a proxy', async () => {
    const server = await startReceiver(answer(200))
    const front = await startConnectProxy(() => ({ port: server.port }))
    const resolver = createResolver()
    const proxy = createProxy({ url: `http://127.0.0.1:${front.port}`, resolver, timeoutMs: 5_000 })
    const aged = await host([here], { maxAgeMs, proxy })
    ended.push(async () => {
      await proxy.close()
      resolver.close()
      await front.stop()
      await server.stop()
    })
    const to = { origin: 'http://elsewhere.example', path: '/', headers: [] }
    let posted = 0
    while (server.connections < 4) {
      await postMany(1, aged.by, to)
      posted++
    }
    expect(server.requests).toHaveLength(posted)
    expect(front.requests).toHaveLength(4)
  })
})
