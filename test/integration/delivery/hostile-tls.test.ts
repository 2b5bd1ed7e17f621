import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  createServer,
  getCACertificates,
  setDefaultCACertificates,
  type TlsOptions,
  type TLSSocket,
} from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { adviceOn } from '../../../src/delivery/advice.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type Sender } from '../../../src/delivery/send/sender.ts'
import { judge } from '../../../src/delivery/outcomes/verdict.ts'
import { createAuthority, type Identity, selfSigned } from '../../support/certificates.ts'
import {
  answerWell,
  goodStatus,
  type HostileReceiver,
  startHostileReceiver,
} from '../../support/hostile-receiver.ts'
import { until } from '../../support/until.ts'

/**
 * Tests of what a server may try with TLS. Handshakes are computed on the thread that serves all customers,
 * before any certificate is checked. So a server must not be able to choose how long a handshake takes.
 */

const authority = createAuthority('An authority of hostile customers')
const names = ['127.0.0.1']
const identity = authority.issue({ names })
setDefaultCACertificates([...getCACertificates(), authority.cert])

const timeoutMs = 10_000
/** Less than the deadline of a request, which a server that is waited for would use up. */
const atOnceMs = 9_000
const ended: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

function sender(deadlineMs = timeoutMs): Sender {
  const policy = createAddressPolicy(names)
  const made = createSender({ policy, timeoutMs: deadlineMs, poolIdleMs: 1_000 })
  ended.push(() => made.close())
  return made
}

type Result = { outcome: Outcome; ms: number }

async function post(by: Sender, to: { origin: string; path: string; headers: string[] }): Promise<Result> {
  const startedMs = performance.now()
  const outcome = Promise.withResolvers<Outcome>()
  const released = Promise.withResolvers<void>()
  by.post(to, Buffer.from('{}'), [], { answered: outcome.resolve, released: () => released.resolve() })
  await released.promise
  return { outcome: await outcome.promise, ms: performance.now() - startedMs }
}

const targetOf = ({ origin }: { origin: string }) => ({ origin, path: '/', headers: [] })

/** Starts a receiver whose first connection goes to `hostile`. It serves all other connections well. */
async function receiver(hostile: (socket: Socket) => void): Promise<HostileReceiver> {
  const server = await startHostileReceiver(
    {
      accepts(socket, connection) {
        if (connection === 1) hostile(socket)
        return connection === 1
      },
    },
    { identity },
  )
  ended.push(() => server.stop())
  return server
}

/** Returns a function that starts TLS, as a server, on a connection that was accepted elsewhere. */
function speaking(options: TlsOptions, secured: (socket: TLSSocket) => void): (socket: Socket) => void {
  const server = createServer(options, (socket) => {
    socket.on('error', () => undefined)
    secured(socket)
  })
  server.on('tlsClientError', () => undefined)
  return (socket) => void server.emit('connection', socket)
}

const answersWell = (socket: TLSSocket) => void socket.on('data', () => answerWell(socket))

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content])
}

/**
 * Returns Diffie-Hellman parameters (PKCS #3) in PEM format. They are not secure, which doesn't matter in
 * these tests.
 */
function dhParameters(bits: number): string {
  const prime = randomBytes(bits / 8)
  prime[0] = 0x80
  prime[prime.length - 1] = 0x83
  const encoded = der(0x30, der(0x02, Buffer.from([0]), prime), der(0x02, Buffer.from([2]))).toString(
    'base64',
  )
  return `-----BEGIN DH PARAMETERS-----\n${encoded.match(/.{1,64}/g)?.join('\n')}\n-----END DH PARAMETERS-----\n`
}

describe('a handshake', () => {
  const rsa = authority.issue({ names, key: 'rsa' })

  test.each([2_048, 8_192])(
    'over a group of %i bits that the server made up is not computed',
    async (bits) => {
      const server = await receiver(
        speaking(
          {
            ...rsa,
            maxVersion: 'TLSv1.2',
            ciphers: 'DHE-RSA-AES128-GCM-SHA256',
            dhparam: dhParameters(bits),
          },
          answersWell,
        ),
      )
      const by = sender()
      const to = targetOf(server)
      const refused = await post(by, to)
      expect(refused.outcome).toEqual({
        kind: 'connection',
        code: expect.stringMatching(/HANDSHAKE_FAILURE$/),
      })
      expect(judge(refused.outcome).kind).toBe('retry')
      expect(refused.ms).toBeLessThan(atOnceMs)
      expect((await post(by, to)).outcome).toEqual({ kind: 'answer', status: goodStatus })
    },
  )

  test.each<[name: string, options: TlsOptions]>([
    ['TLS 1.3', { ...identity, minVersion: 'TLSv1.3' }],
    ['TLS 1.3 and RSA', { ...rsa, minVersion: 'TLSv1.3' }],
    ['TLS 1.3 over a group of its own', { ...identity, minVersion: 'TLSv1.3', ecdhCurve: 'ffdhe2048' }],
    ['TLS 1.2 and ECDHE', { ...identity, maxVersion: 'TLSv1.2' }],
    ['TLS 1.2, ECDHE and RSA', { ...rsa, maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }],
    ['TLS 1.2 and RSA alone', { ...rsa, maxVersion: 'TLSv1.2', ciphers: 'AES128-GCM-SHA256' }],
  ])('by %s is, as before', async (_name, options) => {
    const server = await receiver(speaking(options, answersWell))
    expect((await post(sender(), targetOf(server))).outcome).toEqual({ kind: 'answer', status: goodStatus })
    expect(server.connections).toBe(1)
  })

  test('is computed once for a connection, however often the server asks for another', async () => {
    let asked = 0
    let done = 0
    const again = (socket: TLSSocket): void => {
      asked++
      socket.renegotiate({}, (error) => {
        if (error === null) done++
        if (error === null && !socket.destroyed) setImmediate(again, socket)
      })
    }
    const server = await receiver(speaking({ ...identity, maxVersion: 'TLSv1.2' }, again))
    const by = sender()
    const to = targetOf(server)
    const { outcome } = await post(by, to)
    expect(judge(outcome).kind).toBe('retry')
    expect(asked).toBe(1)
    expect(done).toBe(0)
    expect((await post(by, to)).outcome).toEqual({ kind: 'answer', status: goodStatus })
  })
})

/**
 * Starts openssl's server, which answers no request. `said` returns what it has printed, among it the requests.
 */
async function opensslServer(...own: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-openssl-'))
  const file = join(folder, 'identity.pem')
  writeFileSync(file, identity.key + identity.cert)
  const options = ['-accept', '127.0.0.1:0', '-cert', file, '-key', file, ...own]
  const server = spawn('openssl', ['s_server', ...options], { stdio: ['pipe', 'pipe', 'ignore'] })
  ended.push(() => {
    server.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })
  let said = ''
  server.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const port = () => Number(/ACCEPT 127\.0\.0\.1:(\d+)/.exec(said)?.[1] ?? 0)
  await until('it listens', () => port() > 0)
  return { port: port(), said: () => said, type: (line: string) => server.stdin.write(line) }
}

/** Starts a server that sends `tickets` session tickets. The tests put a receiver in front of this server. */
async function ticketServer(tickets: number): Promise<number> {
  return (await opensslServer('-num_tickets', String(tickets))).port
}

test('a server that renegotiates for an optional client certificate is told, with what helps', async () => {
  const server = await opensslServer('-tls1_2')
  const posted = post(sender(), targetOf({ origin: `https://127.0.0.1:${server.port}` }))
  await until('it has the request', () => server.said().includes('POST / HTTP/1.1'))
  // With `R`, openssl begins another handshake, in which it asks for a certificate.
  server.type('R\n')
  const { outcome } = await posted
  expect(outcome).toMatchObject({ kind: 'connection', code: expect.stringMatching(/HANDSHAKE_FAILURE$/) })
  expect(judge(outcome).kind).toBe('retry')
  expect(adviceOn(outcome, timeoutMs)).toContain('for which it renegotiates')
})

describe('session tickets', () => {
  test.each([
    [20_000, 'SLUICE_ANSWER_TOO_LONG'],
    [17, 'SLUICE_ANSWER_TOO_LONG'],
  ])('%i of them, which no one counts as bytes, cost the connection', async (tickets, code) => {
    const port = await ticketServer(tickets)
    const server = await receiver((socket) => {
      const behind = connect(port, '127.0.0.1')
      behind.on('error', () => undefined)
      socket.once('close', () => behind.destroy())
      socket.pipe(behind).pipe(socket)
    })
    const by = sender()
    const to = targetOf(server)
    const { outcome, ms } = await post(by, to)
    expect(outcome).toEqual({ kind: 'connection', code })
    expect(ms).toBeLessThan(atOnceMs)
    expect((await post(by, to)).outcome).toEqual({ kind: 'answer', status: goodStatus })
  })

  test('of usual number do not', async () => {
    const port = await ticketServer(16)
    const server = await receiver((socket) => {
      const behind = connect(port, '127.0.0.1')
      behind.on('error', () => undefined)
      socket.once('close', () => behind.destroy())
      socket.pipe(behind).pipe(socket)
    })
    expect((await post(sender(2_000), targetOf(server))).outcome).toEqual({ kind: 'timeout' })
  })
})

/**
 * Starts a server whose certificate can be changed. The server counts requests, and handshakes that have
 * begun.
 */
async function changing(first: TlsOptions, answer = answerWell) {
  const sockets = new Set<Socket>()
  const seen = { handshakes: 0, requests: 0 }
  const server = createServer(first, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', () => {
      seen.requests++
      answer(socket)
    })
  })
  server.on('tlsClientError', () => undefined)
  server.on('connection', () => seen.handshakes++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ended.push(async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    seen,
    origin: `https://127.0.0.1:${port}`,
    become: (next: Identity) => server.setSecureContext(next),
  }
}

describe('a certificate that is not trusted', () => {
  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'for another name stays so when its session is resumed, by %s',
    async (version) => {
      const other = authority.issue({ names: ['other.test'] })
      const { seen, origin } = await changing({ ...other, minVersion: version, maxVersion: version })
      const by = sender()
      const to = targetOf({ origin })
      for (let i = 0; i < 5; i++) {
        expect((await post(by, to)).outcome).toEqual({
          kind: 'certificate',
          code: 'ERR_TLS_CERT_ALTNAME_INVALID',
        })
      }
      expect(seen).toEqual({ handshakes: 5, requests: 0 })
    },
  )

  test.each([
    ['self-signed', selfSigned({ names }), 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    [
      'not trusted for a reason without a code',
      authority.issue({ names, isOdd: true }),
      'unhandled critical extension',
    ],
  ])('%s costs no handshake for each message: after ten of them it is one a second', async (...row) => {
    const [, untrusted, code] = row
    const { seen, origin } = await changing(untrusted)
    const by = sender()
    const to = targetOf({ origin })
    const startedMs = performance.now()
    for (let i = 0; i < 300; i++) {
      expect((await post(by, to)).outcome).toEqual({ kind: 'certificate', code })
    }
    const seconds = Math.floor((performance.now() - startedMs) / 1_000)
    expect(seen.handshakes).toBeGreaterThanOrEqual(10)
    expect(seen.handshakes).toBeLessThanOrEqual(10 + seconds)
    expect(seen.requests).toBe(0)
  })

  test('is seen to be trusted again soon, with one connection that tries', async () => {
    const { seen, origin, become } = await changing(selfSigned({ names }))
    const by = sender()
    const to = targetOf({ origin })
    for (let i = 0; i < 10; i++) await post(by, to)
    expect(seen.handshakes).toBe(10)
    become(identity)
    const changedMs = performance.now()
    await until('it is delivered to', async () => (await post(by, to)).outcome.kind === 'answer', {
      everyMs: 20,
    })
    expect(performance.now() - changedMs).toBeLessThan(5_000)
    expect(seen.handshakes).toBe(11)
    const all = await Promise.all(Array.from({ length: 20 }, () => post(by, to)))
    expect(new Set(all.map(({ outcome }) => outcome.kind))).toEqual(new Set(['answer']))
  })

  test('is no reason to refuse what comes while the connection that tries is being made', async () => {
    const { seen, origin, become } = await changing(selfSigned({ names }))
    const by = sender()
    const to = targetOf({ origin })
    for (let i = 0; i < 10; i++) await post(by, to)
    become(identity)
    await delay(1_100)
    const all = await Promise.all(Array.from({ length: 20 }, () => post(by, to)))
    expect(all.map(({ outcome }) => outcome.kind)).toEqual(all.map(() => 'answer'))
    expect(seen.requests).toBe(20)
  })

  test('now and then, between others, never keeps a hook from being tried', async () => {
    const { seen, origin, become } = await changing(identity, (socket) => {
      socket.end(`HTTP/1.1 ${goodStatus} Good\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
    })
    const by = sender()
    const to = targetOf({ origin })
    const kinds = Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? 'certificate' : 'answer'))
    const seenKinds: string[] = []
    for (const kind of kinds) {
      become(kind === 'answer' ? identity : selfSigned({ names }))
      seenKinds.push((await post(by, to)).outcome.kind)
    }
    expect(seenKinds).toEqual(kinds)
    expect(seen.handshakes).toBe(kinds.length)
  })

  test('of one hook says nothing of another', async () => {
    const [bad, good] = await Promise.all([changing(selfSigned({ names })), changing(identity)])
    const by = sender()
    for (let i = 0; i < 15; i++) await post(by, targetOf(bad))
    expect((await post(by, targetOf(good))).outcome).toEqual({ kind: 'answer', status: goodStatus })
  })
})
