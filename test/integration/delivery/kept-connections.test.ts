import type { Socket } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { createAuthority } from '../../support/certificates.ts'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import {
  answerWell,
  type Behaviour,
  goodStatus,
  type HostileReceiver,
  says,
  startHostileReceiver,
} from '../../support/hostile-receiver.ts'
import { soonest } from '../../support/soonest.ts'
import { until } from '../../support/until.ts'

/** Tests of which connections are kept for the next request. With TLS, they are the same as without. */

const authority = createAuthority('An authority of kept connections')
const identity = authority.issue({ names: ['127.0.0.1'] })
setDefaultCACertificates([...getCACertificates(), authority.cert])

const good: Outcome = { kind: 'answer', status: goodStatus }
/** A size in bytes that is larger than what the kernel buffers on both sides. */
const largeBytes = 16 * 2 ** 20
const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

function sender(): Sender {
  const policy = createAddressPolicy(['127.0.0.1'])
  const made = createSender({ policy, timeoutMs: 5_000, poolIdleMs: 4_000 })
  ended.push(() => made.close())
  return made
}

const targetOf = ({ origin }: { origin: string }): Target => ({ origin, path: '/', headers: [] })

async function post(by: Sender, to: Target, body: Uint8Array): Promise<Outcome> {
  const outcome = Promise.withResolvers<Outcome>()
  const released = Promise.withResolvers<void>()
  by.post(to, body, [], { answered: outcome.resolve, released: () => released.resolve() })
  await released.promise
  return outcome.promise
}

/** Answers when the first byte of the first connection arrives, and reads no more of the request. */
const stopsReading: Behaviour = {
  greets(socket: Socket, connection) {
    if (connection > 1) return
    socket.removeAllListeners('data')
    socket.once('data', () => {
      socket.pause()
      answerWell(socket)
    })
  },
}

/** Answers, and announces how long the server keeps an idle connection. */
function announces(seconds: number): Behaviour {
  const head = `HTTP/1.1 ${goodStatus} Good\r\nkeep-alive: timeout=${seconds}, max=100\r\ncontent-length: 0`
  return { answers: says(`${head}\r\n\r\n`) }
}

describe.each(['http', 'https'] as const)('over %s', (scheme) => {
  const secured = scheme === 'https' ? { identity } : {}

  async function receiver(behaviour: Behaviour): Promise<HostileReceiver> {
    const server = await startHostileReceiver(behaviour, secured)
    ended.push(() => server.stop())
    return server
  }

  /**
   * Starts a receiver in a separate thread. Only then can an answer arrive before Node reports that the
   * request was written.
   */
  async function counting(): Promise<{ server: CountingReceiver; to: Target }> {
    const server = await startCountingReceiver(secured)
    ended.push(() => server.stop())
    return { server, to: targetOf({ origin: server.url('') }) }
  }

  test('two thousand requests, twenty at a time, go by twenty connections', async () => {
    const { server, to } = await counting()
    const by = sender()
    const postInTurn = async (_: unknown, user: number): Promise<void> => {
      for (let nth = 0; nth < 100; nth++) {
        const body = Buffer.from(JSON.stringify({ messageId: `${user}-${nth}` }))
        expect(await post(by, to, body)).toEqual({ kind: 'answer', status: 200 })
      }
    }
    await Promise.all(Array.from({ length: 20 }, postInTurn))
    expect(await server.count('/')).toMatchObject({ requests: 2_000, distinct: 2_000 })
    expect(await server.connections()).toBeLessThanOrEqual(20)
  })

  test('a server that reads large requests, and then answers, keeps its connection', async () => {
    const { server, to } = await counting()
    const by = sender()
    for (let nth = 0; nth < 40; nth++) {
      const padding = 'x'.repeat(2 ** 20 * (nth % 4))
      const body = Buffer.from(JSON.stringify({ messageId: String(nth), padding }))
      expect(await post(by, to, body)).toEqual({ kind: 'answer', status: 200 })
    }
    expect(await server.connections()).toBe(1)
  })

  // Apache 2.4 writes such a header. Its KeepAliveTimeout is often set to one second or two.
  test.each([1, 2])(
    'a server that announces to keep an idle connection for %i s gets the next requests by it',
    async (seconds) => {
      const server = await receiver(announces(seconds))
      const by = sender()
      const to = targetOf(server)
      for (let nth = 0; nth < 20; nth++) expect(await post(by, to, Buffer.from('body'))).toEqual(good)
      expect(server.connections).toBe(1)
    },
  )

  test('a connection is closed before the time is over that the server announces', async () => {
    const server = await receiver(announces(1))
    const by = sender()
    const enoughMs = 1_000
    const tookMs = await soonest(enoughMs, () => until('it is closed', () => server.open === 0), {
      before: async () => expect(await post(by, targetOf(server), Buffer.from('body'))).toEqual(good),
    })
    expect(tookMs).toBeLessThan(enoughMs)
  })

  test('a server that answers a large request without reading it loses its connection', async () => {
    const server = await receiver(stopsReading)
    const by = sender()
    const to = targetOf(server)
    expect(await post(by, to, Buffer.alloc(largeBytes, 'x'))).toEqual(good)
    expect(await post(by, to, Buffer.from('next'))).toEqual(good)
    expect(server.requests).toEqual(['next'])
    expect(server.connections).toBe(2)
  })
})
