import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freePorts } from '../../../src/development/free-ports.ts'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { type ConnectOutcome, createProxy, type ProxyOptions } from '../../../src/delivery/connect/proxy.ts'
import { createResolver } from '../../../src/delivery/connect/resolver.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { createAuthority, selfSigned } from '../../support/certificates.ts'
import {
  type ConnectProxy,
  type ConnectReply,
  type ConnectRequest,
  startConnectProxy,
} from '../../support/connect-proxy.ts'
import { type DnsServer, startDnsServer, zone } from '../../support/dns-server.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runSluice } from '../../support/worker-process.ts'
import { type Deployment, deploy } from './deployment.ts'

/** Tests of a proxy that resolves the names of hooks. Sluice itself resolves only the name of the proxy. */

/** The deadline where a test waits for it, in milliseconds. */
const shortMs = 1_000
const ended: (() => Promise<void>)[] = []
const authority = createAuthority('An authority behind the proxy')
let dns: DnsServer

beforeAll(async () => {
  setDefaultCACertificates([...getCACertificates(), authority.cert])
  dns = await startDnsServer(zone({ 'proxy.test': ['127.0.0.1'] }))
})

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

afterAll(async () => {
  await dns.stop()
})

async function proxyThat(
  reply: (request: ConnectRequest) => ConnectReply,
  options?: { port: number },
): Promise<ConnectProxy> {
  const proxy = await startConnectProxy(reply, options)
  ended.push(() => proxy.stop())
  return proxy
}

/** Starts a receiver as a hook. The proxy connects to it under any name. */
async function hookBehind(...[scripts, options]: Parameters<typeof startReceiver>): Promise<Receiver> {
  const server = await startReceiver(scripts, options)
  ended.push(() => server.stop())
  return server
}

type Sending = {
  by: Sender
  connects: ConnectOutcome[]
  downs: [isDown: boolean, reason: string][]
}

function sendThrough(
  url: string,
  { allowed = [], timeoutMs = 30_000, ...rest }: Partial<ProxyOptions> & { allowed?: string[] } = {},
): Sending {
  const resolver = createResolver({ servers: [dns.address] })
  const connects: ConnectOutcome[] = []
  const downs: [boolean, string][] = []
  const proxy = createProxy({
    url,
    resolver,
    timeoutMs,
    onConnect: (outcome) => connects.push(outcome),
    onDown: (isDown, reason) => downs.push([isDown, reason]),
    ...rest,
  })
  const by = createSender({
    policy: createAddressPolicy(allowed),
    resolver,
    proxy,
    timeoutMs,
    poolIdleMs: 2_000,
  })
  ended.push(async () => {
    await by.close()
    await proxy.close()
    resolver.close()
  })
  return { by, connects, downs }
}

const target = (origin: string): Target => ({
  origin,
  path: '/hook?a=b',
  headers: ['Content-Type', 'application/json'],
})

const body = '{"secret":"of the customer"}'

async function post(by: Sender, to: Target): Promise<Outcome> {
  const outcome = Promise.withResolvers<Outcome>()
  const released = Promise.withResolvers<void>()
  by.post(to, Buffer.from(body), [], { answered: outcome.resolve, released: () => released.resolve() })
  await released.promise
  return outcome.promise
}

const ok = { kind: 'answer', status: 204 }

describe('a tunnel', () => {
  test('carries HTTP to the hook as if there were none', async () => {
    const server = await hookBehind(answer(204))
    const proxy = await proxyThat(() => ({ port: server.port }))
    const { by, connects } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    expect(await post(by, target('http://hooks.test:8080'))).toEqual(ok)
    expect(proxy.requests).toMatchObject([
      { authority: 'hooks.test:8080', headers: { host: 'hooks.test:8080' } },
    ])
    expect(proxy.requests[0]?.headers).not.toHaveProperty('proxy-authorization')
    expect(server.requests).toMatchObject([
      {
        method: 'POST',
        path: '/hook?a=b',
        headers: { host: 'hooks.test:8080', 'content-type': 'application/json' },
      },
    ])
    expect(server.requests[0]?.body.toString()).toBe(body)
    expect(connects).toEqual(['tunnel'])
    expect(dns.questions).toEqual([])
  })

  test('is used again for the next request', async () => {
    const server = await hookBehind(answer(204))
    const proxy = await proxyThat(() => ({ port: server.port }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    const to = target('http://hooks.test')
    for (let i = 0; i < 5; i++) expect(await post(by, to)).toEqual(ok)
    expect(proxy.requests).toHaveLength(1)
    expect(server.requests).toHaveLength(5)
  })

  test('has TLS in it from end to end, with the name of the hook', async () => {
    const server = await hookBehind(answer(204), { identity: authority.issue({ names: ['hooks.test'] }) })
    const proxy = await proxyThat(() => ({ port: server.port }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    expect(await post(by, target('https://hooks.test'))).toEqual(ok)
    expect(server.requests[0]?.body.toString()).toBe(body)
    expect(proxy.requests).toMatchObject([{ authority: 'hooks.test:443' }])
    // The handshake contains the name of the hook. Everything after the handshake is encrypted for the hook.
    expect(proxy.sent().includes('hooks.test')).toBe(true)
    expect(proxy.sent().includes('POST')).toBe(false)
    expect(proxy.sent().includes('customer')).toBe(false)
  })

  test.each([
    ['for another name', () => authority.issue({ names: ['other.test'] }), 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['that is self-signed', () => selfSigned({ names: ['hooks.test'] }), 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ])('to a hook with a certificate %s: nothing is sent', async (_name, identity, code) => {
    const server = await hookBehind(answer(204), { identity: identity() })
    const proxy = await proxyThat(() => ({ port: server.port }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    expect(await post(by, target('https://hooks.test'))).toEqual({ kind: 'certificate', code })
    expect(server.requests).toEqual([])
  })

  test.each([
    ['http://hooks.test', 'hooks.test:80'],
    ['https://hooks.test', 'hooks.test:443'],
    ['https://hooks.test:8443', 'hooks.test:8443'],
    ['http://8.8.8.8', '8.8.8.8:80'],
    ['https://[2606:4700::1]', '[2606:4700::1]:443'],
    ['http://[2606:4700::1]:8080', '[2606:4700::1]:8080'],
  ])('to %s is asked for as %s', async (origin, asked) => {
    const proxy = await proxyThat(() => ({ status: 502 }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    await post(by, target(origin))
    expect(proxy.requests.map(({ authority: one }) => one)).toEqual([asked])
  })

  test('is asked for at a proxy with a name, which is resolved here', async () => {
    const server = await hookBehind(answer(204))
    const proxy = await proxyThat(() => ({ port: server.port }))
    const { by } = sendThrough(`http://proxy.test:${proxy.port}`)
    expect(await post(by, target('http://hooks.test'))).toEqual(ok)
    expect(new Set(dns.questions.map(({ name }) => name))).toEqual(new Set(['proxy.test']))
  })

  test('that is cut off is a broken connection of the hook', async () => {
    const server = await hookBehind((_request, response) => void response.socket?.resetAndDestroy())
    const proxy = await proxyThat(() => ({ port: server.port }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    expect(await post(by, target('http://hooks.test'))).toMatchObject({ kind: 'connection' })
  })

  test('to a hook that does not answer is a timeout', async () => {
    const server = await hookBehind(() => undefined)
    const proxy = await proxyThat(() => ({ port: server.port }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`, { timeoutMs: shortMs })
    expect(await post(by, target('http://hooks.test'))).toEqual({ kind: 'timeout' })
  })
})

describe('the login', () => {
  test('goes to the proxy, and not to the hook', async () => {
    const server = await hookBehind(answer(204))
    const proxy = await proxyThat(({ headers }) =>
      headers['proxy-authorization'] === undefined ? { status: 407 } : { port: server.port },
    )
    const { by } = sendThrough(`http://slu%C3%AFce:p%40ss%3Aword@127.0.0.1:${proxy.port}`)
    expect(await post(by, target('http://hooks.test'))).toEqual(ok)
    const login = Buffer.from('sluïce:p@ss:word').toString('base64')
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(`Basic ${login}`)
    expect(JSON.stringify(server.requests[0]?.rawHeaders)).not.toContain(login)
    expect(server.requests[0]?.headers).not.toHaveProperty('proxy-authorization')
  })
})

describe('what a URL says by itself is checked here', () => {
  test.each(['http://127.0.0.1', 'https://10.0.0.1', 'http://[::1]:8080', 'http://[::ffff:169.254.169.254]'])(
    '%s is refused, and the proxy not asked',
    async (origin) => {
      const proxy = await proxyThat(() => ({ status: 502 }))
      const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`)
      expect(await post(by, target(origin))).toMatchObject({ kind: 'address' })
      expect(proxy.connections).toBe(0)
    },
  )

  test.each(['http://localhost:8080', 'https://api.localhost'])('%s is refused as well', async (origin) => {
    const proxy = await proxyThat(() => ({ status: 502 }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    expect(await post(by, target(origin))).toMatchObject({ kind: 'address' })
    expect(proxy.connections).toBe(0)
  })

  test('and goes through where it is allowed', async () => {
    const server = await hookBehind(answer(204))
    const proxy = await proxyThat(() => ({ port: server.port }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`, { allowed: ['10.1.0.0/16'] })
    expect(await post(by, target('http://10.1.2.3'))).toEqual(ok)
  })

  test('what the proxy says of an address is believed', async () => {
    const proxy = await proxyThat(() => ({
      status: 502,
      headers: { 'Proxy-Status': 'proxy.test; error=destination_ip_prohibited' },
    }))
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    expect(await post(by, target('http://hooks.test'))).toEqual({ kind: 'address', address: 'hooks.test:80' })
  })
})

describe('a fault of the proxy', () => {
  const replies: [name: string, reply: ConnectReply, outcome: Outcome][] = [
    ['503', { status: 503 }, { kind: 'proxy', code: 'CONNECT_503', isDown: false }],
    ['500', { status: 500 }, { kind: 'proxy', code: 'CONNECT_500', isDown: false }],
    ['407', { status: 407 }, { kind: 'proxy', code: 'CONNECT_407', isDown: true }],
    ['a connection that it closes', 'close', { kind: 'proxy', code: 'CLOSED', isDown: false }],
    ['silence', 'silence', { kind: 'proxy', code: 'TIMEOUT', isDown: false }],
  ]

  test.each(replies)('%s is told as that, and asked for once', async (_name, reply, outcome) => {
    const proxy = await proxyThat(({ authority: asked }) =>
      asked === 'hooks.test:80' ? reply : { status: 502 },
    )
    const { by } = sendThrough(
      `http://127.0.0.1:${proxy.port}`,
      reply === 'silence' ? { timeoutMs: shortMs } : {},
    )
    const to = target('http://hooks.test')
    for (let i = 1; i <= 2; i++) {
      expect(await post(by, to)).toEqual(outcome)
      expect(proxy.requests.filter(({ authority: asked }) => asked === 'hooks.test:80')).toHaveLength(i)
    }
  })

  test('a proxy that is not there', async () => {
    const { by, downs, connects } = sendThrough('http://127.0.0.1:2')
    expect(await post(by, target('http://hooks.test'))).toEqual({
      kind: 'proxy',
      code: 'ECONNREFUSED',
      isDown: true,
    })
    expect(downs).toEqual([[true, 'ECONNREFUSED']])
    expect(connects).toEqual(['down'])
  })

  test('a proxy whose name does not exist', async () => {
    const { by, downs } = sendThrough('http://nowhere.test:3128')
    expect(await post(by, target('http://hooks.test'))).toEqual({
      kind: 'proxy',
      code: 'ENOTFOUND',
      isDown: true,
    })
    expect(downs).toEqual([[true, 'ENOTFOUND']])
  })

  test('what is no proxy', async () => {
    const server = await hookBehind(answer(204))
    const { by } = sendThrough(server.origin)
    expect(await post(by, target('http://hooks.test'))).toMatchObject({ kind: 'proxy', isDown: false })
  })
})

describe('a target that the proxy can not reach', () => {
  test.each<[ConnectReply, Outcome]>([
    [{ status: 502 }, { kind: 'connection', code: 'CONNECT_502' }],
    [{ status: 504 }, { kind: 'connection', code: 'CONNECT_504' }],
    [{ status: 403 }, { kind: 'connection', code: 'CONNECT_403' }],
    [
      { status: 503, headers: { 'X-Squid-Error': 'ERR_CONNECT_FAIL 111' } },
      { kind: 'connection', code: 'ERR_CONNECT_FAIL' },
    ],
    [
      { status: 503, headers: { 'Proxy-Status': 'p; error=dns_error' } },
      { kind: 'connection', code: 'dns_error' },
    ],
  ])('%j', async (reply, outcome) => {
    const proxy = await proxyThat(() => reply)
    const { by, connects, downs } = sendThrough(`http://127.0.0.1:${proxy.port}`)
    expect(await post(by, target('http://hooks.test'))).toEqual(outcome)
    expect({ connects, downs }).toEqual({ connects: ['target'], downs: [] })
  })

  test('and says nothing of it, while it answers others, is timed out', async () => {
    const server = await hookBehind(answer(204))
    const proxy = await proxyThat(({ authority: asked }) =>
      asked === 'hooks.test:80' ? 'silence' : { port: server.port },
    )
    const { by } = sendThrough(`http://127.0.0.1:${proxy.port}`, { timeoutMs: 5_000 })
    const silent = post(by, target('http://hooks.test'))
    await until('it is asked for', () => proxy.requests.length === 1)
    expect(await post(by, target('http://other.test'))).toEqual(ok)
    expect(await silent).toEqual({ kind: 'timeout' })
  })
})

describe('a proxy that is down', () => {
  test('is said to be once, and to be up again once it is; no customer is asked for meanwhile', async () => {
    const [port = 0] = await freePorts(1)
    const { by, downs } = sendThrough(`http://127.0.0.1:${port}`)
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post(by, target(`http://hook${index}.test`))),
    )
    expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set(['proxy']))
    expect(downs).toEqual([[true, 'ECONNREFUSED']])

    const proxy = await proxyThat(() => ({ status: 502 }), { port })
    await until('it is up again', () => downs.length === 2)
    expect(downs).toEqual([
      [true, 'ECONNREFUSED'],
      [false, ''],
    ])
    expect(proxy.requests.map(({ authority: asked }) => asked)).toEqual(['sluice.invalid:443'])
  })

  test('for a wrong password is so until it takes the login', async () => {
    let isTaken = false
    const proxy = await proxyThat(() => (isTaken ? { status: 502 } : { status: 407 }))
    const { by, downs } = sendThrough(`http://user:wrong@127.0.0.1:${proxy.port}`)
    expect(await post(by, target('http://hooks.test'))).toMatchObject({ kind: 'proxy', isDown: true })
    await until('it was tried again', () => proxy.requests.length >= 3)
    expect(downs).toEqual([[true, 'CONNECT_407']])
    isTaken = true
    await until('it is up again', () => downs.length === 2)
  })
})

describe('a worker with a proxy', () => {
  const password = 'hunter2-of-the-proxy'
  let hook: Receiver
  let port = 0
  let sluice: Deployment

  beforeAll(async () => {
    hook = await startReceiver(answer(204))
    ;[port = 0] = await freePorts(1)
    sluice = await deploy({
      destinations: ['crm', 'unlucky'].map((id) => ({
        id,
        sources: [id],
        hooks: [{ url: `http://${id}.test/` }],
      })),
      variables: { SLUICE_DELIVERY_PROXY: `http://sluice:${password}@127.0.0.1:${port}` },
    })
  })

  afterAll(async () => {
    await sluice.stop()
    await hook.stop()
  })

  test('charges nobody while the proxy is down, and delivers when it is back', async () => {
    const { worker } = sluice
    await sluice.send('crm', [
      { key: 'u', value: { type: 'track', userId: 'u', event: 'Paid', messageId: 'm-1' } },
    ])
    await until('the proxy is seen to be down', async () => (await worker.metric('sluice_proxy_down')) === 1)
    const readiness = await fetch(`http://127.0.0.1:${worker.httpPort}/readyz`)
    expect(await readiness.text()).toBe(`the proxy can not be used: 127.0.0.1:${port}: ECONNREFUSED\n`)
    expect(await worker.metric('sluice_attempts_total')).toBe(0)
    expect(await worker.metric('sluice_parked_total')).toBe(0)

    await proxyThat(() => ({ port: hook.port }), { port })
    await until('it is delivered', () => hook.requests.length === 1)
    await until('it is counted', async () => (await worker.metric('sluice_deliveries_total')) === 1)
    expect(await worker.metric('sluice_attempts_total', { verdict: 'delivered' })).toBe(1)
    expect(await worker.metric('sluice_proxy_down')).toBe(0)
    expect(await worker.metric('sluice_proxy_connects_total', { outcome: 'down' })).toBeGreaterThanOrEqual(1)
    const attempts = () => worker.log.filter(({ msg }) => msg === 'attempt')
    await until('it is logged', () => attempts().length > 0)
    expect(attempts()).toMatchObject([{ messageId: 'm-1', attempt: 1, verdict: 'delivered' }])
    const said = worker.log.filter(({ proxy }) => proxy === `127.0.0.1:${port}`)
    expect(said.map(({ msg }) => msg)).toEqual([
      'the proxy can not be used: deliveries stop until it can',
      'the proxy can be used again',
    ])
  })

  test('lets a message wait for whose hook the proxy alone fails, uncounted', async () => {
    await proxyThat(
      ({ authority: asked }) => (asked === 'unlucky.test:80' ? { status: 503 } : { port: hook.port }),
      {
        port,
      },
    )
    await sluice.send('unlucky', [
      { key: 'u', value: { type: 'track', userId: 'u', event: 'Paid', messageId: 'm-2' } },
    ])
    const [parked] = await sluice.read('retry.1m', 1)
    expect(parked?.headers).toMatchObject({
      'message-id': 'm-2',
      attempts: '0',
      'last-outcome': 'proxy CONNECT_503',
    })
    // Readers may see a record before its writer knows that it is written.
    await until(
      'it is counted',
      async () => (await sluice.worker.metric('sluice_parked_total', { reason: 'proxy' })) === 1,
    )
    expect(await sluice.worker.metric('sluice_proxy_connects_total', { outcome: 'fault' })).toBe(1)
    expect(await sluice.worker.metric('sluice_attempts_total', { outcome: 'proxy' })).toBe(0)
  })

  test('tells nobody the login', async () => {
    const { worker } = sluice
    const metrics = await worker.metrics()
    const { stdout } = await runSluice(['config'], {
      SLUICE_DELIVERY_PROXY: `http://sluice:${password}@127.0.0.1:${port}`,
    })
    const all = JSON.stringify(worker.log) + worker.stderr + metrics + stdout
    expect(all).toContain('delivery.proxy')
    expect(all).not.toContain(password)
    expect(all).not.toContain(Buffer.from(`sluice:${password}`).toString('base64'))
  })
})
