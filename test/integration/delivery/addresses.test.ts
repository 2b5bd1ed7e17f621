import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createResolver } from '../../../src/delivery/connect/resolver.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { judge } from '../../../src/delivery/outcomes/verdict.ts'
import { createAuthority } from '../../support/certificates.ts'
import { type DnsReply, type DnsQuestion, startDnsServer, zone } from '../../support/dns-server.ts'
import { answerWell, goodStatus, startHostileReceiver } from '../../support/hostile-receiver.ts'
import { answer, startRawReceiver, startReceiver } from '../../support/receiver.ts'
import { publicHosts, refusedAnswers, refusedHosts } from './address-table.ts'
import { holdDials, watchDials } from './dials.ts'

/**
 * Tests of hooks that point to forbidden places, with the real sender and with a DNS server that the attacker
 * owns.
 */

const setting = 'delivery.allowAddresses (SLUICE_DELIVERY_ALLOW_ADDRESSES)'

/** A receiver on this machine, to which no connection may come. */
const forbidden = await startRawReceiver()
/** The replies of the DNS server, by name. A name that is not in this map doesn't exist. */
const names = new Map<string, (question: DnsQuestion) => DnsReply>()
const dns = await startDnsServer((question) => names.get(question.name)?.(question) ?? 'NXDOMAIN')
const authority = createAuthority('An authority of customers')
setDefaultCACertificates([...getCACertificates(), authority.cert])
let nowMs = 0
const ended: (() => Promise<void>)[] = []

beforeEach(() => {
  names.clear()
})

afterEach(async () => {
  vi.restoreAllMocks()
  for (const end of ended.splice(0)) await end()
})

afterAll(async () => {
  await dns.stop()
  await forbidden.stop()
})

function sender(allowed: readonly string[] = [], poolIdleMs = 50): Sender {
  const resolver = createResolver({ servers: [dns.address], now: () => nowMs })
  const policy = createAddressPolicy(allowed)
  const made = createSender({ policy, resolver, timeoutMs: 30_000, poolIdleMs })
  ended.push(async () => {
    await made.close()
    resolver.close()
  })
  return made
}

/** Posts one request to a target, waits until its slot is free, and returns the outcome. */
async function post(by: Sender, to: string | Target, body = '{}'): Promise<Outcome> {
  const outcome = Promise.withResolvers<Outcome>()
  const released = Promise.withResolvers<void>()
  const target = typeof to === 'string' ? targetAt(to) : to
  by.post(target, Buffer.from(body), [], {
    answered: outcome.resolve,
    released: () => released.resolve(),
  })
  await released.promise
  return outcome.promise
}

function targetAt(origin: string): Target {
  return { origin, path: '/', headers: [] }
}

/** Returns the faults of a catalog that has only this hook. */
function faultsOf(url: string, allowAddresses: readonly string[]): readonly string[] {
  const catalog = { sources: [{ id: 'a' }], destinations: [{ id: 'd', sources: ['a'], hooks: [{ url }] }] }
  const parsed = parseCatalog(JSON.stringify(catalog), { file: 'catalog.yaml', allowAddresses })
  return parsed.ok ? [] : parsed.faults.map(({ problem, advice }) => `${problem}; ${advice}`)
}

describe('a hook whose host says by itself where it is', () => {
  const hosts = Object.entries(refusedHosts).flatMap(([kind, each]) =>
    each.map((host) => [kind, host] as const),
  )

  test('is in the table at least 150 times', () => {
    expect(new Set(hosts.map(([, host]) => host)).size).toBeGreaterThanOrEqual(150)
  })

  describe.each(['http', 'https'])('by %s', (scheme) => {
    test.each(hosts)('%s: %j is refused, and nothing is dialled', async (_kind, host) => {
      const dialled = watchDials()
      const origin = URL.parse(`${scheme}://${host}:${forbidden.port}/`)?.origin
      // A text that isn't a URL has no origin, so nothing can be sent to it.
      const outcome = origin === undefined ? undefined : await post(sender(), origin)
      if (outcome !== undefined) {
        expect(outcome).toMatchObject({ kind: 'address' })
        expect(judge(outcome)).toEqual({ kind: 'final' })
      }
      expect(dialled).toEqual([])
    })
  })

  test.each(hosts)('%s: %j is a fault of the catalog', (_kind, host) => {
    const url = `http://${host}:8080/hook`
    const faults = faultsOf(url, [])
    expect(faults).not.toEqual([])
    // A valid URL is refused because of its address, and the fault names the setting that allows it. A URL
    // with dots at the end of its host is refused because of the dots.
    const isUrl = faultsOf(url, ['0.0.0.0/0', '::/0']).length === 0
    if (isUrl) expect(faults[0]).toContain(setting)
  })

  test('may be where the setting allows it, and not next to it', () => {
    expect(faultsOf('http://127.0.0.1:8080/', ['127.0.0.1'])).toEqual([])
    expect(faultsOf('http://localhost:8080/', ['127.0.0.0/8'])).toEqual([])
    expect(faultsOf('http://[fd00:1::5]/', ['fd00:1::/64'])).toEqual([])
    expect(faultsOf('http://127.0.0.2:8080/', ['127.0.0.1'])[0]).toContain(setting)
    expect(faultsOf('http://[fd00:2::5]/', ['fd00:1::/64'])[0]).toContain(setting)
  })

  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '１２７.0.0.1',
    '[::ffff:127.0.0.1]',
  ])('is connected to where the setting allows it: %s', async (host) => {
    const server = await startReceiver(answer(204))
    ended.push(() => server.stop())
    const origin = new URL(`http://${host}:${server.port}`).origin
    expect(await post(sender(['127.0.0.1']), origin)).toEqual({ kind: 'answer', status: 204 })
  })
})

describe('a public host', () => {
  test.each(publicHosts)('%j is dialled as %s', async (host, address) => {
    const dialled = holdDials()
    await post(sender(), new URL(`http://${host}`).origin)
    expect(dialled).toEqual([address])
  })

  test.each(publicHosts)('%j is no fault of the catalog', (host) => {
    expect(faultsOf(`https://${host}/hook`, [])).toEqual([])
  })

  test('by TLS is dialled as by HTTP', async () => {
    const dialled = holdDials()
    await post(sender(), 'https://8.8.8.8')
    expect(dialled).toEqual(['8.8.8.8'])
  })
})

describe('a name', () => {
  test.each(refusedAnswers)('that leads to %s is refused, and nothing is dialled', async (address) => {
    names.set('evil.test', zone({ 'evil.test': [address] }))
    const dialled = watchDials()
    for (const scheme of ['http', 'https']) {
      const outcome = await post(sender(), `${scheme}://evil.test:${forbidden.port}`)
      expect(outcome).toMatchObject({ kind: 'address' })
      expect(judge(outcome)).toEqual({ kind: 'final' })
    }
    expect(dialled).toEqual([])
    expect(forbidden.connections).toBe(0)
  })

  test.each(publicHosts.map(([, address]) => address))(
    'that leads to %s is dialled there',
    async (address) => {
      const isMapped = address.startsWith('::ffff:')
      names.set('good.test', zone({ 'good.test': [address] }))
      const dialled = holdDials()
      await post(sender(), 'https://good.test')
      expect(dialled).toEqual([isMapped ? '::ffff:8.8.8.8' : address])
    },
  )

  test('that has public and private addresses is dialled at the public ones alone', async () => {
    const mixed = [
      '10.0.0.1',
      '8.8.8.8',
      '127.0.0.1',
      '169.254.169.254',
      '::1',
      '2606:4700::1',
      '::ffff:10.0.0.1',
    ]
    names.set('mixed.test', zone({ 'mixed.test': mixed }))
    for (let i = 0; i < 20; i++) {
      const dialled = holdDials()
      await post(sender(), `http://mixed.test:${forbidden.port}`)
      expect(dialled).toEqual(['8.8.8.8', '2606:4700::1'])
      vi.restoreAllMocks()
    }
  })

  test('that looks like an address is asked of DNS, and not read as one', async () => {
    const dialled = watchDials()
    for (const host of ['127.0.0.1.nip.test', '0x7f000001.test', '127-0-0-1.test', '127.0.0.0x1g', 'x0x7f']) {
      expect(await post(sender(), `http://${host}:${forbidden.port}`)).toEqual({
        kind: 'dns',
        code: 'ENOTFOUND',
      })
    }
    expect(dialled).toEqual([])
    expect(forbidden.connections).toBe(0)
  })

  test.each(['localhost', 'api.localhost'])('%s is this machine, whatever DNS says', async (name) => {
    names.set(name, zone({ [name]: ['8.8.8.8'] }))
    const outcome = await post(sender(), `http://${name}:${forbidden.port}`)
    expect(outcome).toMatchObject({ kind: 'address', address: expect.stringMatching(/^(127\.|::1$)/) })
    expect(forbidden.connections).toBe(0)
  })
})

/**
 * Returns a DNS reply that is a public address at the first question, and a private address at all later
 * ones.
 */
function rebinding(): (question: DnsQuestion) => DnsReply {
  let asked = 0
  return ({ type }) => {
    if (type === 'AAAA') return { addresses: [], ttlSeconds: 0 }
    asked++
    return { addresses: [asked === 1 ? '8.8.8.8' : '127.0.0.1'], ttlSeconds: 0 }
  }
}

describe('a name that changes its mind', () => {
  test('is dialled where it was when it was checked, and asked for only once', async () => {
    names.set('rebind.test', rebinding())
    const dialled = holdDials()
    await post(sender(), `http://rebind.test:${forbidden.port}`)
    expect(dialled).toEqual(['8.8.8.8'])
    expect(dns.asked('rebind.test', 'A')).toBe(1)
  })

  test('is refused as soon as its new address is known', async () => {
    names.set('rebind2.test', rebinding())
    const by = sender()
    const dialled = holdDials()
    const origin = `http://rebind2.test:${forbidden.port}`
    await post(by, origin)
    nowMs += 1_000
    expect(await post(by, origin)).toEqual({ kind: 'address', address: '127.0.0.1' })
    nowMs += 1_000
    expect(await post(by, origin)).toEqual({ kind: 'address', address: '127.0.0.1' })
    expect(dialled).toEqual(['8.8.8.8'])
    expect(forbidden.connections).toBe(0)
  })

  test('is dialled nowhere else when its connection is lost, and the request is to be made once more', async () => {
    const server = await startHostileReceiver({
      answers: (socket, { nth }) => (nth === 1 ? answerWell(socket) : socket.resetAndDestroy()),
    })
    ended.push(() => server.stop())
    let address = '127.0.0.1'
    names.set('moved.test', ({ type }) => ({ addresses: type === 'A' ? [address] : [], ttlSeconds: 0 }))
    const by = sender(['127.0.0.1'], 4_000)
    const target = targetAt(`http://moved.test:${server.port}`)
    expect(await post(by, target)).toEqual({ kind: 'answer', status: goodStatus })
    address = '127.0.0.2'
    nowMs += 1_000
    expect(await post(by, target)).toEqual({ kind: 'address', address: '127.0.0.2' })
    expect(server).toMatchObject({ connections: 1, requests: ['{}', '{}'] })
  })

  test('and back is delivered to again', async () => {
    const server = await startReceiver(answer(200))
    ended.push(() => server.stop())
    let address = '10.0.0.1'
    names.set('back.test', ({ type }) => ({ addresses: type === 'A' ? [address] : [], ttlSeconds: 0 }))
    const by = sender(['127.0.0.1'])
    const origin = `http://back.test:${server.port}`
    expect(await post(by, origin)).toEqual({ kind: 'address', address: '10.0.0.1' })
    address = '127.0.0.1'
    nowMs += 5_000
    expect(await post(by, origin)).toEqual({ kind: 'answer', status: 200 })
  })
})

describe('several addresses', () => {
  test('are tried one after the other, and each comes first in its turn', async () => {
    names.set('many.test', zone({ 'many.test': ['8.8.8.8', '9.9.9.9'] }))
    const first = new Set<string | undefined>()
    for (let i = 0; i < 60; i++) {
      const dialled = holdDials()
      await post(sender(), 'http://many.test')
      expect(dialled.toSorted()).toEqual(['8.8.8.8', '9.9.9.9'])
      first.add(dialled[0])
      vi.restoreAllMocks()
    }
    expect(first).toEqual(new Set(['8.8.8.8', '9.9.9.9']))
  })

  test.each(['http', 'https'])(
    'one of which refuses connections: the other is used, by %s',
    async (scheme) => {
      const identity = authority.issue({ names: ['half.test'] })
      const server = await startReceiver(answer(200), scheme === 'https' ? { identity } : {})
      ended.push(() => server.stop())
      // Nothing listens at the first and the last of these addresses.
      names.set('half.test', zone({ 'half.test': ['127.0.0.3', '127.0.0.1', '::1'] }))
      const by = sender(['127.0.0.0/8', '::1'])
      for (let i = 0; i < 10; i++) {
        expect(await post(by, `${scheme}://half.test:${server.port}`)).toEqual({
          kind: 'answer',
          status: 200,
        })
      }
    },
  )

  test('are no more than four, of both families', async () => {
    const ipv4 = Array.from({ length: 10 }, (_, index) => `8.8.8.${index + 1}`)
    const ipv6 = Array.from({ length: 10 }, (_, index) => `2606:4700::${index + 1}`)
    names.set('crowd.test', zone({ 'crowd.test': [...ipv4, ...ipv6] }))
    const dialled = holdDials()
    await post(sender(), 'http://crowd.test')
    expect(dialled.map((address) => (address.includes(':') ? 6 : 4))).toEqual([4, 4, 6, 6])
  })
})

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])(
    'of status %i to a private address makes no connection',
    async (status) => {
      const server = await startReceiver(
        answer(status, {
          location: `http://127.0.0.1:${forbidden.port}/`,
          refresh: `0; url=http://127.0.0.1:${forbidden.port}/`,
        }),
      )
      ended.push(() => server.stop())
      // The sender allows all addresses of this machine. If it followed the redirect, a connection would
      // arrive.
      const outcome = await post(sender(['127.0.0.0/8']), server.origin)
      expect(outcome).toEqual({ kind: 'answer', status })
      expect(judge(outcome)).toEqual({ kind: 'final' })
      expect(server.requests).toHaveLength(1)
      expect(forbidden.connections).toBe(0)
    },
  )
})

test('the port that no hook may reach has seen no connection', () => {
  expect(forbidden.connections).toBe(0)
})
