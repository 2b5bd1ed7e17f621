import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { createAuthority } from '../../support/certificates.ts'
import {
  answer,
  neverAnswer,
  portOf,
  type RawReceiver,
  type RawScript,
  type Receiver,
  type Script,
  startRawReceiver,
  startReceiver,
} from '../../support/receiver.ts'
import { until } from '../../support/until.ts'

/**
 * Tests of a sender's connection pool and its deadline, without Kafka. The deadlines are short, so that the
 * tests can wait for them.
 */

const timeoutMs = 400
const poolIdleMs = 300
/** Where a test isn't about these times, no moment in which the machine stands still takes as long. */
const long = { deadlineMs: 30_000, idleMs: 30_000 }
const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

async function receiver(script: Script): Promise<Receiver> {
  const server = await startReceiver(script)
  ended.push(() => server.stop())
  return server
}

async function rawReceiver(script: RawScript): Promise<RawReceiver> {
  const server = await startRawReceiver(script)
  ended.push(() => server.stop())
  return server
}

function target(origin: string): Target {
  return { origin, path: '/', headers: ['Content-Type', 'application/json'] }
}

type Posted = { outcomes: Outcome[]; releases: number; outcome: Promise<Outcome>; released: Promise<void> }

/** Posts `{}`, and records each call of the exchange. */
function post(by: Sender, to: Target): Posted {
  const outcome = Promise.withResolvers<Outcome>()
  const released = Promise.withResolvers<void>()
  const posted: Posted = { outcomes: [], releases: 0, outcome: outcome.promise, released: released.promise }
  by.post(to, Buffer.from('{}'), [], {
    answered(one) {
      posted.outcomes.push(one)
      outcome.resolve(one)
    },
    released() {
      posted.releases++
      released.resolve()
    },
  })
  return posted
}

/** Posts `{}`, and waits until the outcome is known and the slot is free. */
async function exchange(by: Sender, to: Target): Promise<Posted> {
  const posted = post(by, to)
  await posted.released
  return posted
}

function sender(
  allowed: readonly string[] = ['127.0.0.1'],
  { deadlineMs = long.deadlineMs, idleMs = long.idleMs } = {},
): Sender {
  const policy = createAddressPolicy(allowed)
  const made = createSender({ policy, timeoutMs: deadlineMs, poolIdleMs: idleMs })
  ended.push(() => made.close())
  return made
}

/** Returns a sender whose deadline a test can wait for. */
function hasty(): Sender {
  return sender(undefined, { deadlineMs: timeoutMs })
}

describe('a connection', () => {
  test('is used again for the next request', async () => {
    const server = await receiver(answer(200, {}, 'thanks'))
    const by = sender()
    const to = target(server.origin)
    for (let i = 0; i < 5; i++) await exchange(by, to)
    expect(server.requests).toHaveLength(5)
    expect(server.connections).toBe(1)
  })

  test('is closed when it has been idle, and made anew for what comes then', async () => {
    const open = new Set<Socket>()
    const server = await receiver((request, response, nth) => {
      const { socket } = response
      if (socket !== null) open.add(socket.once('close', () => open.delete(socket)))
      answer(200)(request, response, nth)
    })
    const by = sender(undefined, { idleMs: poolIdleMs })
    const to = target(server.origin)
    await exchange(by, to)
    expect(open.size).toBe(1)
    await until('it is closed', () => open.size === 0)
    expect(await post(by, to).outcome).toEqual({ kind: 'answer', status: 200 })
    expect(server.connections).toBe(2)
  })

  test('is closed at once when the sender is', async () => {
    const server = await receiver(neverAnswer)
    const by = sender()
    const posted = post(by, target(server.origin))
    await until('the request is under way', () => server.requests.length === 1)
    await by.close()
    await posted.released
    expect(posted.outcomes).toHaveLength(1)
  })
})

test.each(['Thu, 01 Jan 1970 00:00:00 GMT', 'Fri, 31 Dec 2100 23:59:00 GMT'])(
  'a server whose clock is wrong gets the wait that it means: its clock says %s',
  async (date) => {
    const retryAfter = new Date(Date.parse(date) + 30_000).toUTCString()
    const server = await receiver(answer(503, { date, 'retry-after': retryAfter }))
    expect(await post(sender(), target(server.origin)).outcome).toEqual({
      kind: 'answer',
      status: 503,
      retryAfterMs: 30_000,
    })
  },
)

describe('the deadline', () => {
  test('ends a request without an answer, and frees its slot', async () => {
    const server = await receiver(neverAnswer)
    const startedMs = performance.now()
    const { outcomes, releases } = await exchange(hasty(), target(server.origin))
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(timeoutMs)
    expect({ outcomes, releases }).toEqual({ outcomes: [{ kind: 'timeout' }], releases: 1 })
  })

  test('is not counted again: an answer that comes after it is not heard', async () => {
    const held: ServerResponse[] = []
    const server = await receiver((_request, response) => void held.push(response))
    const posted = await exchange(hasty(), target(server.origin))
    held[0]?.writeHead(200).end()
    expect(posted.outcomes).toEqual([{ kind: 'timeout' }])
  })

  test('covers the TLS handshake', async () => {
    const server = await rawReceiver({})
    const posted = post(hasty(), target(server.origin.replace('http:', 'https:')))
    expect(await posted.outcome).toEqual({ kind: 'timeout' })
    await posted.released
    expect(posted).toMatchObject({ outcomes: [{ kind: 'timeout' }], releases: 1 })
  })

  test('ends a body that never ends, after the answer has counted', async () => {
    const server = await receiver((_request, response) => void response.writeHead(200).write('<'))
    const posted = post(sender(undefined, { deadlineMs: 3_000 }), target(server.origin))
    expect(await posted.outcome).toEqual({ kind: 'answer', status: 200 })
    expect(posted.releases).toBe(0)
    await posted.released
    expect(posted).toMatchObject({ outcomes: [{ kind: 'answer', status: 200 }], releases: 1 })
  })
})

describe('a response body', () => {
  test('is thrown away, and one of a few kilobytes costs nothing', async () => {
    const server = await receiver(answer(200, {}, 'x'.repeat(60_000)))
    const by = sender()
    const to = target(server.origin)
    await exchange(by, to)
    await exchange(by, to)
    expect(server.connections).toBe(1)
  })

  test('longer than 64 KiB costs its server the connection, not the delivery', async () => {
    const server = await receiver(answer(200, {}, 'x'.repeat(2 ** 20)))
    const by = sender()
    const to = target(server.origin)
    expect((await exchange(by, to)).outcomes).toEqual([{ kind: 'answer', status: 200 }])
    expect((await exchange(by, to)).outcomes).toEqual([{ kind: 'answer', status: 200 }])
    expect(server.connections).toBe(2)
  })
})

describe('the pool goes on after', () => {
  const breaks: [name: string, script: RawScript][] = [
    ['a reset', { data: (socket) => socket.resetAndDestroy() }],
    ['a close without an answer', { data: (socket) => socket.end() }],
    ['garbage', { data: (socket) => socket.write('SSH-2.0\r\n') }],
    ['silence', {}],
  ]

  test.each(breaks)('%s, as often as it happens: no slot is lost', async (_name, script) => {
    const server = await rawReceiver(script)
    const by = hasty()
    const to = target(server.origin)
    for (let i = 0; i < 4; i++) {
      const both = await Promise.all([exchange(by, to), exchange(by, to)])
      for (const posted of both) expect(posted).toMatchObject({ outcomes: [{}], releases: 1 })
    }
    expect(server.connections).toBe(8)
  })

  test('a refused connection: the next one is tried anew', async () => {
    const by = sender()
    const to = target('http://127.0.0.1:1')
    for (let i = 0; i < 3; i++) {
      expect((await exchange(by, to)).outcomes).toEqual([{ kind: 'connection', code: 'ECONNREFUSED' }])
    }
  })

  test('an address that was refused: each request is refused again', async () => {
    const server = await rawReceiver({})
    const by = sender([])
    for (let i = 0; i < 3; i++) {
      const { outcomes } = await exchange(by, target(server.origin))
      expect(outcomes).toEqual([{ kind: 'address', address: '127.0.0.1' }])
    }
    expect(server.connections).toBe(0)
  })
})

describe('a name', () => {
  test('that leads to an allowed address is connected to', async () => {
    const server = await receiver(answer(204))
    const { outcomes } = await exchange(
      sender(['127.0.0.1', '::1']),
      target(`http://localhost:${server.port}`),
    )
    expect(outcomes).toEqual([{ kind: 'answer', status: 204 }])
  })

  test('that leads to addresses that are not allowed is refused, without a connection', async () => {
    const server = await rawReceiver({})
    const { outcomes } = await exchange(sender([]), target(`http://localhost:${server.port}`))
    expect(outcomes).toMatchObject([
      { kind: 'address', address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/) },
    ])
    expect(server.connections).toBe(0)
  })

  test('all of whose addresses refuse is a refused connection', async () => {
    const { outcomes } = await exchange(sender(['127.0.0.1', '::1']), target('http://localhost:1'))
    expect(outcomes).toEqual([{ kind: 'connection', code: 'ECONNREFUSED' }])
  })
})

test('the deadline holds for a connection that comes up after it: no byte of the request is sent', async () => {
  const authority = createAuthority('A trusted authority')
  setDefaultCACertificates([...getCACertificates(), authority.cert])
  let bytes = 0
  // With TLS 1.2 the server has finished the handshake before the client has.
  const identity = { ...authority.issue({ names: ['127.0.0.1'] }), maxVersion: 'TLSv1.2' } as const
  const secure = createTlsServer(identity, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
  })
  const held: Socket[] = []
  const front = createTcpServer((socket) => held.push(socket)).listen(0, '127.0.0.1')
  await once(front, 'listening')
  ended.push(async () => void front.close())

  const by = createSender({ policy: createAddressPolicy(['127.0.0.1']), timeoutMs, poolIdleMs })
  ended.push(() => by.close())
  const posted = post(by, target(`https://127.0.0.1:${portOf(front)}`))
  expect(await posted.outcome).toEqual({ kind: 'timeout' })
  const shaken = once(secure, 'secureConnection')
  for (const socket of held) secure.emit('connection', socket)
  await shaken
  await posted.released
  expect(posted.outcomes).toEqual([{ kind: 'timeout' }])
  expect(bytes).toBe(0)
})
