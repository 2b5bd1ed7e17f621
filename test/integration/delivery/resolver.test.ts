import { execFileSync } from 'node:child_process'
import { lookup as systemLookup } from 'node:dns'
import { close, constants, mkdtempSync, open, openSync, closeSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createResolver,
  type LookupOutcome,
  type NameResolver,
  type Resolved,
  type ResolverOptions,
} from '../../../src/delivery/connect/resolver.ts'
import {
  type DnsQuestion,
  type DnsReply,
  type DnsServer,
  startDnsServer,
  zone,
} from '../../support/dns-server.ts'
import { soonest } from '../../support/soonest.ts'
import { until } from '../../support/until.ts'

/**
 * Tests of the resolver with a local DNS server. The test moves a clock, so that hours of TTL pass at once.
 */

const ended: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

type Scene = {
  server: DnsServer
  resolver: NameResolver
  outcomes: LookupOutcome[]
  pass: (ms: number) => void
  find: (name: string) => Promise<Resolved>
  /** Returns the sorted addresses of a name, or the error code. */
  addresses: (name: string) => Promise<readonly string[] | string>
}

async function scene(
  reply: (question: DnsQuestion) => DnsReply | Promise<DnsReply>,
  options: ResolverOptions = {},
): Promise<Scene> {
  const server = await startDnsServer(reply)
  ended.push(() => server.stop())
  const outcomes: LookupOutcome[] = []
  let nowMs = 0
  const resolver = createResolver({
    servers: [server.address],
    onLookup: (outcome) => outcomes.push(outcome),
    now: () => nowMs,
    ...options,
  })
  ended.push(() => resolver.close())
  const find = (name: string): Promise<Resolved> => new Promise((resolve) => resolver.resolve(name, resolve))
  return {
    server,
    resolver,
    outcomes,
    pass: (ms) => (nowMs += ms),
    find,
    async addresses(name) {
      const found = await find(name)
      return found.ok ? found.addresses.toSorted() : found.code
    },
  }
}

/**
 * Returns a DNS server's script that gives these replies one after the other. It gives the last reply again
 * and again.
 */
function inTurn(...replies: DnsReply[]): (question: DnsQuestion) => DnsReply {
  const asked = { A: 0, AAAA: 0 }
  return ({ type }) => {
    const reply = replies[Math.min(asked[type]++, replies.length - 1)] ?? 'silence'
    if (type === 'A' || typeof reply === 'string') return reply
    return { addresses: [] }
  }
}

const minuteMs = 60_000

describe('a name', () => {
  test('has the addresses of both families, which are asked for at once', async () => {
    const both = Promise.withResolvers<void>()
    const asked = new Set<string>()
    const { addresses } = await scene(async (question) => {
      asked.add(question.type)
      if (asked.size === 2) both.resolve()
      await both.promise
      return zone({ 'a.test': ['192.0.2.1', '192.0.2.2', '2001:db8::1'] })(question)
    })
    expect(await addresses('a.test')).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1'])
  })

  test('is asked for as it is written, without a search domain', async () => {
    const { server, addresses } = await scene(zone({ single: ['192.0.2.1'] }))
    expect(await addresses('single')).toEqual(['192.0.2.1'])
    expect(new Set(server.questions.map(({ name }) => name))).toEqual(new Set(['single']))
  })

  test('with a dot at its end is the same name', async () => {
    const { server, addresses } = await scene(zone({ 'a.test': ['192.0.2.1'] }))
    expect(await addresses('a.test.')).toEqual(await addresses('a.test'))
    expect(server.asked('a.test', 'A')).toBe(1)
  })

  test('that only one family knows is found', async () => {
    const { addresses } = await scene(({ type }) =>
      type === 'A' ? 'NXDOMAIN' : { addresses: ['2001:db8::1'] },
    )
    expect(await addresses('six.test')).toEqual(['2001:db8::1'])
  })

  test('does not wait long for the second family', async () => {
    const { addresses } = await scene(({ type }) =>
      type === 'AAAA' ? 'silence' : { addresses: ['192.0.2.1'] },
    )
    const enoughMs = 500
    const look = async (nth: number): Promise<void> =>
      expect(await addresses(`half${nth}.test`)).toEqual(['192.0.2.1'])
    expect(await soonest(enoughMs, look)).toBeLessThan(enoughMs)
  })

  test('has what comes late the next time', async () => {
    const late = Promise.withResolvers<DnsReply>()
    const { addresses, server } = await scene(({ type }) =>
      type === 'AAAA' ? late.promise : { addresses: ['192.0.2.1'] },
    )
    expect(await addresses('late.test')).toEqual(['192.0.2.1'])
    late.resolve({ addresses: ['2001:db8::1'] })
    await until('both are known', async () => (await addresses('late.test')).length === 2)
    expect(server.asked('late.test', 'A')).toBe(1)
  })
})

describe('an answer', () => {
  test.each([
    ['a TTL of 0', 0, 1_000],
    ['a TTL of a minute', 60, minuteMs],
    ['a TTL of a day', 86_400, 5 * minuteMs],
  ])('with %s is asked for again after as long as it may hold', async (_name, ttlSeconds, holdsMs) => {
    const { addresses, server, pass } = await scene(
      inTurn({ addresses: ['192.0.2.1'], ttlSeconds }, { addresses: ['192.0.2.2'], ttlSeconds }),
    )
    expect(await addresses('ttl.test')).toEqual(['192.0.2.1'])
    pass(holdsMs - 1)
    expect(await addresses('ttl.test')).toEqual(['192.0.2.1'])
    pass(1)
    expect(await addresses('ttl.test')).toEqual(['192.0.2.2'])
    expect(server.asked('ttl.test', 'A')).toBe(2)
  })

  test.each([2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1])(
    'with a TTL of %i s holds for five minutes at the most',
    async (ttlSeconds) => {
      const { addresses, server, pass } = await scene(({ type }) => ({
        addresses: type === 'A' ? ['192.0.2.1'] : [],
        ttlSeconds,
      }))
      expect(await addresses('ttl.test')).toEqual(['192.0.2.1'])
      pass(5 * minuteMs)
      expect(await addresses('ttl.test')).toEqual(['192.0.2.1'])
      expect(server.asked('ttl.test', 'A')).toBe(2)
    },
  )

  test('of thousands of addresses is kept in part', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => `8.8.${index >> 8}.${index & 0xff}`)
    const more = many.map((_, index) => `2606:4700::${index.toString(16)}`)
    const { find } = await scene(({ type }) => ({ addresses: type === 'A' ? many : more }))
    const found = await find('many.test')
    const kept = found.ok ? found.addresses : []
    expect(kept.filter((address) => address.includes('.'))).toHaveLength(64)
    expect(kept.filter((address) => address.includes(':'))).toHaveLength(64)
  })

  test('is shared by all who ask meanwhile', async () => {
    const { find, server, outcomes } = await scene(zone({ 'a.test': ['192.0.2.1'] }))
    const all = await Promise.all(Array.from({ length: 100 }, () => find('a.test')))
    expect(new Set(all.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify({ ok: true, addresses: ['192.0.2.1'] })]),
    )
    expect(server.questions).toHaveLength(2)
    expect(outcomes).toEqual(['found'])
  })

  test('that is known is given before the call returns', async () => {
    const { find, resolver } = await scene(zone({ 'a.test': ['192.0.2.1'] }))
    const first = await find('a.test')
    let second: Resolved | undefined
    resolver.resolve('a.test', (resolved) => (second = resolved))
    expect(second).toEqual(first)
  })

  test('of names longest not asked for is forgotten first', async () => {
    const { find, server } = await scene(() => ({ addresses: [] }), { maxNames: 3 })
    for (const name of ['a', 'b', 'c', 'a', 'd', 'a', 'b']) await find(`${name}.test`)
    expect(['a', 'b', 'c', 'd'].map((name) => server.asked(`${name}.test`, 'A'))).toEqual([1, 2, 1, 1])
  })
})

describe('a failure', () => {
  test.each([
    ['a name that is not there', 'NXDOMAIN' as const, 'ENOTFOUND', 10_000],
    ['a name without addresses', { addresses: [] }, 'ENODATA', 10_000],
    ['a server that can not say', 'SERVFAIL' as const, 'ESERVFAIL', 1_000],
    ['a server that refuses', 'REFUSED' as const, 'EREFUSED', 1_000],
  ])('%s, is remembered for a while', async (_name, reply, code, holdsMs) => {
    const { addresses, pass } = await scene(inTurn(reply, { addresses: ['192.0.2.1'] }))
    expect(await addresses('fails.test')).toBe(code)
    pass(holdsMs - 1)
    expect(await addresses('fails.test')).toBe(code)
    pass(1)
    expect(await addresses('fails.test')).toEqual(['192.0.2.1'])
  })

  test('by silence comes within 2.5 s', async () => {
    const { addresses, outcomes } = await scene(() => 'silence')
    const enoughMs = 3_000
    const look = async (nth: number): Promise<void> => {
      expect(await addresses(`silent${nth}.test`)).toBe('ETIMEOUT')
      expect(outcomes.splice(0)).toEqual(['failed'])
    }
    expect(await soonest(enoughMs, look)).toBeLessThan(enoughMs)
  })

  test('of a server that is not there comes at once', async () => {
    const { addresses } = await scene(() => 'silence', { servers: ['127.0.0.1:1'] })
    const enoughMs = 1_000
    const look = async (nth: number): Promise<void> =>
      expect(await addresses(`a${nth}.test`)).toBe('ECONNREFUSED')
    expect(await soonest(enoughMs, look)).toBeLessThan(enoughMs)
  })

  test('comes at once when the resolver is closed', async () => {
    const { find, resolver, server } = await scene(() => 'silence')
    const found = find('silent.test')
    await until('it is asked', () => server.questions.length === 2)
    resolver.close()
    expect(await found).toEqual({ ok: false, code: 'ECANCELLED' })
  })
})

describe('what was found before', () => {
  const once = { addresses: ['192.0.2.1'], ttlSeconds: 60 }

  test.each(['SERVFAIL', 'REFUSED', 'silence'] as const)(
    'is used for 5 minutes more after %s',
    async (failure) => {
      const { addresses, outcomes, pass } = await scene(inTurn(once, failure))
      await addresses('stale.test')
      pass(minuteMs)
      const startedMs = performance.now()
      expect(await addresses('stale.test')).toEqual(['192.0.2.1'])
      // A name that has no addresses yet is waited for 2.5 s.
      expect(performance.now() - startedMs).toBeLessThan(2_400)
      pass(4_999)
      expect(await addresses('stale.test')).toEqual(['192.0.2.1'])
      expect(outcomes).toEqual(['found', 'stale'])
      pass(5 * minuteMs - 4_999)
      expect(await addresses('stale.test')).toMatch(/^E/)
      expect(outcomes).toEqual(['found', 'stale', 'failed'])
    },
  )

  test('is used no more when the name is gone', async () => {
    const { addresses, pass } = await scene(inTurn(once, 'NXDOMAIN', 'SERVFAIL'))
    await addresses('gone.test')
    pass(minuteMs)
    expect(await addresses('gone.test')).toBe('ENOTFOUND')
    pass(10_000)
    expect(await addresses('gone.test')).toBe('ESERVFAIL')
  })

  test('gives way to the first answer', async () => {
    const { addresses, pass } = await scene(inTurn(once, 'SERVFAIL', { addresses: ['192.0.2.2'] }))
    await addresses('back.test')
    pass(minuteMs)
    expect(await addresses('back.test')).toEqual(['192.0.2.1'])
    pass(5_000)
    expect(await addresses('back.test')).toEqual(['192.0.2.2'])
  })
})

/** Returns no reply for names that begin with `silent`, and an address for all other names. */
function silence({ name, type }: DnsQuestion): DnsReply {
  if (name.startsWith('silent')) return 'silence'
  return { addresses: type === 'A' ? ['192.0.2.1'] : [] }
}

/**
 * Looks up a hundred other names. Returns how many of them were found only after the first lookup in `silent`
 * had been given up.
 */
async function countHeldUp({ find }: Scene, silent: readonly Promise<unknown>[]): Promise<number> {
  let isGivenUp = false
  void Promise.race(silent).then(() => (isGivenUp = true))
  const heldUp = Array.from({ length: 100 }, async (_, index) => {
    expect((await find(`quick${index}.test`)).ok).toBe(true)
    return isGivenUp
  })
  return (await Promise.all(heldUp)).filter(Boolean).length
}

describe('a name whose servers are silent', () => {
  test('holds up no other', async () => {
    const all = await scene(silence)
    const silent = Array.from({ length: 50 }, (_, index) => all.addresses(`silent${index}.test`))
    expect(await countHeldUp(all, silent)).toBe(0)
    expect(new Set(await Promise.all(silent))).toEqual(new Set(['ETIMEOUT']))
  })

  test('holds up no other while all of libuv waits for something else', async () => {
    const all = await scene(silence)
    // Fills the caches of modules and names first, because the test is about how a lookup is done.
    await all.find('warm.test')
    const pool = blockThreadPool()
    try {
      let hasLookedUp = false
      systemLookup('localhost', () => (hasLookedUp = true))
      const silent = all.addresses('silent.test')
      expect(await countHeldUp(all, [silent])).toBe(0)
      expect(await silent).toBe('ETIMEOUT')
      expect(hasLookedUp).toBe(false)
    } finally {
      await pool.release()
    }
  })
})

describe('/etc/hosts', () => {
  test('comes before DNS, and its changes are followed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-hosts-'))
    ended.push(() => rmSync(folder, { recursive: true }))
    const hostsPath = join(folder, 'hosts')
    writeFileSync(
      hostsPath,
      '# ours\n192.0.2.7\tCrm.Test crm # first\n2001:db8::7 crm.test\nnonsense crm.test\n',
    )
    const { addresses, server, pass } = await scene(zone({ 'crm.test': ['192.0.2.9'] }), { hostsPath })
    expect(await addresses('crm.test')).toEqual(['192.0.2.7', '2001:db8::7'])
    expect(await addresses('crm')).toEqual(['192.0.2.7'])
    expect(server.questions).toEqual([])

    writeFileSync(hostsPath, '192.0.2.88 crm.test\n')
    expect(await addresses('crm.test')).toEqual(['192.0.2.7', '2001:db8::7'])
    pass(5_000)
    expect(await addresses('crm.test')).toEqual(['192.0.2.88'])
    rmSync(hostsPath)
    pass(5_000)
    expect(await addresses('crm.test')).toEqual(['192.0.2.9'])
  })

  test('is that of this machine, if no other is given', async () => {
    const { addresses, server } = await scene(() => 'silence')
    expect(await addresses('localhost')).toContain('127.0.0.1')
    expect(server.questions).toEqual([])
  })

  test.each(['localhost', 'a.localhost', 'b.a.localhost.'])('is not needed for %s', async (name) => {
    const { addresses, server } = await scene(() => ({ addresses: ['192.0.2.1'] }), { hostsPath: '/nowhere' })
    expect(await addresses(name)).toEqual(['127.0.0.1', '::1'])
    expect(server.questions).toEqual([])
  })
})

/**
 * Blocks every thread of libuv's pool with a read that waits, without use of the CPU. There are more reads
 * than threads.
 */
function blockThreadPool(): { release(): Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fifo-'))
  const fifo = join(folder, 'fifo')
  execFileSync('mkfifo', [fifo])
  // Opening a pipe for reading waits until another process or thread opens it for writing.
  const opened = Array.from({ length: 16 }, () => {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    open(fifo, 'r', (error, fd) => (error === null ? resolve(fd) : reject(error)))
    return promise
  })
  return {
    async release() {
      const writer = openSync(fifo, constants.O_RDWR)
      const fds = await Promise.all(opened)
      await Promise.all(fds.map((fd) => new Promise((resolve) => close(fd, resolve))))
      closeSync(writer)
      rmSync(folder, { recursive: true })
    },
  }
}
