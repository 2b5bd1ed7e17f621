import { randomBytes } from 'node:crypto'
import { connect as connectTcp } from 'node:net'
import {
  createSecureContext,
  createServer,
  getCACertificates,
  setDefaultCACertificates,
  type TlsOptions,
  type TLSSocket,
} from 'node:tls'
import { queryObjects } from 'node:v8'
import { afterEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { OutboundProxy } from '../../../src/delivery/connect/proxy.ts'
import { createSender, type Sender, type SenderOptions } from '../../../src/delivery/send/sender.ts'
import { createAuthority } from '../../support/certificates.ts'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { portOf } from '../../support/receiver.ts'

/**
 * Tests of what a new TLS connection takes over from earlier connections, and of what it must not take over.
 */

const authority = createAuthority('An authority of resumed sessions')
const identity = authority.issue({ names: ['127.0.0.1'] })
setDefaultCACertificates([...getCACertificates(), authority.cert])

const good: Outcome = { kind: 'answer', status: 200 }
const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

function sender(options: Partial<SenderOptions> = {}): Sender {
  const policy = createAddressPolicy(['127.0.0.1'])
  const made = createSender({ policy, timeoutMs: 5_000, poolIdleMs: 4_000, ...options })
  ended.push(() => made.close())
  return made
}

async function post(by: Sender, origin: string): Promise<Outcome> {
  const outcome = Promise.withResolvers<Outcome>()
  const released = Promise.withResolvers<void>()
  const to = { origin, path: '/', headers: [] }
  by.post(to, Buffer.from('{}'), [], { answered: outcome.resolve, released: () => released.resolve() })
  await released.promise
  return outcome.promise
}

/** A TLS server. `resumed` says, for each connection, whether it resumed an earlier session. */
type SecureServer = { origin: string; resumed: boolean[] }

/** Starts a server that answers each request. It then closes the connection, unless `keeps` is true. */
async function serve(options: TlsOptions = {}, { keeps = false } = {}): Promise<SecureServer> {
  const sockets: TLSSocket[] = []
  const resumed: boolean[] = []
  const server = createServer({ ...identity, ...options }, (socket) => {
    sockets.push(socket)
    resumed.push(socket.isSessionReused())
    socket.on('error', () => undefined)
    socket.on('data', () => {
      const connection = keeps ? 'keep-alive' : 'close'
      const head = `HTTP/1.1 200 OK\r\nconnection: ${connection}\r\ncontent-length: 0\r\n\r\n`
      if (keeps) socket.write(head)
      else socket.end(head)
    })
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ended.push(async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  return { origin: `https://127.0.0.1:${portOf(server)}`, resumed }
}

/**
 * A stand-in for a proxy. It connects straight to the target, without the request that a proxy would need.
 */
const tunnel: OutboundProxy = {
  open(authorityOf, done) {
    const socket = connectTcp({ port: Number(authorityOf.split(':')[1]), host: '127.0.0.1' })
    socket.once('connect', () => done(null, socket))
  },
  close: async () => {},
}

describe.each([
  ['directly', undefined],
  ['through a proxy', tunnel],
])('connections that are made %s', (_name, proxy) => {
  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'resume the session of the one before, by %s, whatever the garbage collector does',
    async (version) => {
      const server = await serve({ minVersion: version, maxVersion: version })
      const by = sender({ proxy })
      for (let nth = 0; nth < 4; nth++) {
        expect(await post(by, server.origin)).toEqual(good)
        collectGarbage()
      }
      expect(server.resumed).toEqual([false, true, true, true])
    },
  )

  test('never offer a server the session of one with another port, even where it would take it', async () => {
    const shared = { ticketKeys: randomBytes(48) }
    const [one, other] = await Promise.all([serve(shared), serve(shared)])
    const by = sender({ proxy })
    for (const { origin } of [one, other, one, other]) expect(await post(by, origin)).toEqual(good)
    expect(one.resumed).toEqual([false, true])
    expect(other.resumed).toEqual([false, true])
  })

  test('share their context of TLS: twenty of them make none each', async () => {
    const server = await serve({}, { keeps: true })
    const by = sender({ proxy })
    const contexts = countContexts()
    const all = await Promise.all(Array.from({ length: 20 }, () => post(by, server.origin)))
    expect(all).toEqual(all.map(() => good))
    expect(server.resumed).toHaveLength(20)
    expect(countContexts() - contexts).toBeLessThan(5)
  })
})

/** Returns the number of TLS contexts that are alive in this process. */
function countContexts(): number {
  return queryObjects(createSecureContext().constructor, { format: 'count' })
}
