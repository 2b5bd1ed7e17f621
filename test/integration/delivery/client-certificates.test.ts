import { createServer } from 'node:https'
import { connect } from 'node:net'
import { getCACertificates, type SecureVersion, setDefaultCACertificates, TLSSocket } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { OutboundProxy } from '../../../src/delivery/connect/proxy.ts'
import type { HookDefinition } from '../../../src/delivery/endpoint.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { judge } from '../../../src/delivery/outcomes/verdict.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { createAuthority } from '../../support/certificates.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { answer, neverAnswer, portOf, startReceiver } from '../../support/receiver.ts'

/** Tests of logins by client certificates and by Basic, of own authorities, and of own timeouts. */

const known = createAuthority('An authority that the process trusts')
const own = createAuthority('An authority of a customer')
const clients = createAuthority('An authority of clients')
setDefaultCACertificates([...getCACertificates(), known.cert])

const ended: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

function sender({ timeoutMs = 10_000, proxy }: { timeoutMs?: number; proxy?: OutboundProxy } = {}): Sender {
  const policy = createAddressPolicy(['127.0.0.1'])
  const made = createSender({ policy, timeoutMs, poolIdleMs: 4_000, keptAnswerBytes: 2_048, proxy })
  ended.push(() => made.close())
  return made
}

function targetOf(hook: Partial<HookDefinition> & { origin: string }, timeoutMs?: number): Target {
  const target = endpointOf(hook, { timeoutMs }).hooks[0]?.target
  if (target === undefined) throw new Error('there is no hook')
  return target
}

async function post(by: Sender, target: Target): Promise<Outcome> {
  const outcome = Promise.withResolvers<Outcome>()
  const released = Promise.withResolvers<void>()
  by.post(target, Buffer.from('{}'), [], { answered: outcome.resolve, released: () => released.resolve() })
  await released.promise
  return outcome.promise
}

type Seen = { subject: string; isResumed: boolean }

/** Starts a server that asks for a client certificate, and closes each connection after its answer. */
async function demanding(
  version: SecureVersion,
  keepsOpen = false,
): Promise<{ origin: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer(
    {
      ...known.issue({ names: ['127.0.0.1'] }),
      ca: clients.cert,
      requestCert: true,
      rejectUnauthorized: true,
      minVersion: version,
      maxVersion: version,
    },
    ({ socket }, response) => {
      if (!(socket instanceof TLSSocket)) throw new Error('the connection has no TLS')
      const subject = String(socket.getPeerCertificate().subject?.CN)
      seen.push({ subject, isResumed: socket.isSessionReused() })
      response.writeHead(204, keepsOpen ? {} : { connection: 'close' }).end()
    },
  )
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ended.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { origin: `https://127.0.0.1:${portOf(server)}`, seen }
}

function clientOf(subject: string): { certificate: string; key: string } {
  const { cert, key } = clients.issue({ names: [subject] })
  return { certificate: cert, key }
}

/** A stand-in for a proxy. It connects straight to the target. */
const tunnel: OutboundProxy = {
  open(authority, done) {
    const socket = connect({ port: Number(authority.split(':')[1]), host: '127.0.0.1' })
    socket.once('connect', () => done(null, socket))
  },
  close: async () => {},
}

describe.each([
  ['directly', undefined],
  ['through a proxy', tunnel],
])('a client certificate, %s,', (_name, proxy) => {
  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'is shown by %s, and a session is resumed under the same one only',
    async (version) => {
      const { origin, seen } = await demanding(version)
      const by = sender(proxy === undefined ? {} : { proxy })
      const [one, two] = [clientOf('one'), clientOf('two')]
      const [first, replaced] = [targetOf({ origin, tls: one }), targetOf({ origin, tls: two })]
      for (const target of [first, first, replaced, replaced])
        expect(await post(by, target)).toEqual({ kind: 'answer', status: 204 })
      expect(seen).toEqual([
        { subject: 'one', isResumed: false },
        { subject: 'one', isResumed: true },
        { subject: 'two', isResumed: false },
        { subject: 'two', isResumed: true },
      ])
    },
  )

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'that is missing or of strangers delivers nothing by %s, and is tried again',
    async (version) => {
      const { origin, seen } = await demanding(version)
      const by = sender(proxy === undefined ? {} : { proxy })
      const { cert: certificate, key } = own.issue({ names: ['stranger'] })
      for (const target of [targetOf({ origin }), targetOf({ origin, tls: { certificate, key } })]) {
        const outcome = await post(by, target)
        expect(outcome.kind).toBe('connection')
        expect(judge(outcome).kind).toBe('retry')
      }
      expect(seen).toEqual([])
    },
  )
})

test('the certificate of one hook is never shown to the server of another', async () => {
  const { origin, seen } = await demanding('TLSv1.3')
  const by = sender()
  expect(await post(by, targetOf({ origin, tls: clientOf('one') }))).toMatchObject({ status: 204 })
  expect((await post(by, targetOf({ origin }))).kind).toBe('connection')
  expect(seen.length).toBe(1)
})

test('a replaced certificate concerns new connections, and requests under way end with the old one', async () => {
  const { origin, seen } = await demanding('TLSv1.3', true)
  const by = sender()
  const [first, replaced] = [
    targetOf({ origin, tls: clientOf('one') }),
    targetOf({ origin, tls: clientOf('two') }),
  ]
  await post(by, first)
  const all = await Promise.all([post(by, first), post(by, replaced), post(by, first)])
  expect(all.every((outcome) => outcome.kind === 'answer' && outcome.status === 204)).toBe(true)
  expect(seen.map(({ subject }) => subject).toSorted()).toEqual(['one', 'one', 'one', 'two'])
})

describe('authorities of a hook', () => {
  test('are trusted for its server, and for no other', async () => {
    const identity = own.issue({ names: ['127.0.0.1'] })
    const receiver = await startReceiver(answer(200), { identity })
    ended.push(() => receiver.stop())
    const { origin } = receiver
    const by = sender()
    expect(await post(by, targetOf({ origin, tls: { ca: own.cert } }))).toMatchObject({ status: 200 })
    expect((await post(by, targetOf({ origin }))).kind).toBe('certificate')
    expect((await post(by, targetOf({ origin, tls: { ca: clients.cert } }))).kind).toBe('certificate')
    expect(receiver.requests.length).toBe(1)
  })

  test('are the only ones that are trusted', async () => {
    const receiver = await startReceiver(answer(200), { identity: known.issue({ names: ['127.0.0.1'] }) })
    ended.push(() => receiver.stop())
    const { origin } = receiver
    const by = sender()
    expect(await post(by, targetOf({ origin }))).toMatchObject({ status: 200 })
    expect((await post(by, targetOf({ origin, tls: { ca: own.cert } }))).kind).toBe('certificate')
    expect(receiver.requests.length).toBe(1)
  })
})

test('a login of the kind basic comes after the other headers, and is masked in answers', async () => {
  const receiver = await startReceiver(answer(403, {}, 'no access for sluice with t0p-secret-w0rd'))
  ended.push(() => receiver.stop())
  const login = { kind: 'basic', username: 'sluice', password: 't0p-secret-w0rd' } as const
  const headers = [['X-Team', 'crm']] as const
  const outcome = await post(sender(), targetOf({ origin: receiver.origin, headers, login }))
  const body = outcome.kind === 'answer' ? Buffer.from(outcome.body ?? '').toString() : ''
  expect(body).toBe('no access for sluice with [redacted]')
  const [request] = receiver.requests
  const authorization = `Basic ${Buffer.from('sluice:t0p-secret-w0rd').toString('base64')}`
  const given = request?.rawHeaders ?? []
  expect(given.slice(given.indexOf('X-Team')).slice(0, 6)).toEqual([
    'X-Team',
    'crm',
    'Accept',
    '*/*',
    'Authorization',
    authorization,
  ])
})

describe('the timeout of a destination', () => {
  test('is the deadline of its requests, and of no other', async () => {
    const release: (() => void)[] = []
    const receiver = await startReceiver({
      '/late': (_request, response) => release.push(() => response.writeHead(200).end()),
      '/never': neverAnswer,
    })
    ended.push(() => receiver.stop())
    const { origin } = receiver
    const by = sender({ timeoutMs: 60_000 })
    const patient = post(by, targetOf({ origin, path: '/late' }))
    expect(await post(by, targetOf({ origin, path: '/never' }, 200))).toEqual({ kind: 'timeout' })
    for (const end of release) end()
    expect(await patient).toMatchObject({ status: 200 })
  })

  test('is never longer than the setting', async () => {
    const receiver = await startReceiver(neverAnswer)
    ended.push(() => receiver.stop())
    const by = sender({ timeoutMs: 200 })
    const outcome = await post(by, targetOf({ origin: receiver.origin }, 60_000))
    expect(outcome).toEqual({ kind: 'timeout' })
  })
})
