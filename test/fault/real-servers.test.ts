import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as delay } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../src/address/policy.ts'
import { createSender, type Sender, type Target } from '../../src/delivery/send/sender.ts'
import { createAuthority } from '../support/certificates.ts'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import {
  ensureRealServers,
  idleMs,
  type RealServer,
  realServers,
  smallBytes,
  startRealServer,
} from '../support/real-servers.ts'

/**
 * Tests of deliveries to web servers that customers put in front of their programs. Meanwhile, the servers
 * reload their configuration, close idle connections and refuse large bodies.
 */

const authority = createAuthority('An authority of real servers')
const identity = authority.issue({ names: ['127.0.0.1'] })
setDefaultCACertificates([...getCACertificates(), authority.cert])

const loadMs = 6_000
const reloadEveryMs = 500
const atOnce = 20

/** The number of connections that this process has made to the servers. */
let connections = 0
subscribe('undici:client:connected', () => void connections++)

beforeAll(ensureRealServers, 600_000)

describe.each(realServers)('%s', (name) => {
  let receiver: CountingReceiver
  let server: RealServer
  let sender: Sender

  beforeAll(async () => {
    receiver = await startCountingReceiver()
    server = await startRealServer(name, Number(new URL(receiver.url('/')).port), identity)
  })

  afterAll(async () => {
    await server.stop()
    await receiver.stop()
  })

  beforeEach(() => {
    const policy = createAddressPolicy(['127.0.0.1'])
    sender = createSender({ policy, timeoutMs: 5_000, poolIdleMs: 30_000 })
  })

  afterEach(() => sender.close())

  /** Returns a function that posts a message, and resolves with the answer's status or the kind of failure. */
  function poster(origin: string, path: string, bytes = 300): () => Promise<number | string> {
    const target: Target = { origin, path, headers: ['content-type', 'application/json'] }
    const padding = 'x'.repeat(bytes)
    let sent = 0
    return async function post() {
      const body = Buffer.from(JSON.stringify({ messageId: String(sent++), padding }))
      const answer = Promise.withResolvers<number | string>()
      const released = Promise.withResolvers<void>()
      sender.post(target, body, [], {
        answered: (outcome) => answer.resolve(outcome.kind === 'answer' ? outcome.status : outcome.kind),
        released: () => released.resolve(),
      })
      await released.promise
      return answer.promise
    }
  }

  describe.each(['http', 'https'] as const)('over %s', (scheme) => {
    test('loses and repeats nothing while it replaces its processes', async () => {
      const path = `/reloads-${scheme}`
      const post = poster(server[scheme], path)
      const answers = new Map<number | string, number>()
      const before = connections
      const untilMs = performance.now() + loadMs
      const reloads = setInterval(() => server.reload(), reloadEveryMs)
      async function postInTurn(): Promise<void> {
        while (performance.now() < untilMs) {
          const answer = await post()
          answers.set(answer, (answers.get(answer) ?? 0) + 1)
        }
      }
      await Promise.all(Array.from({ length: atOnce }, postInTurn)).finally(() => clearInterval(reloads))
      const requests = answers.get(200) ?? 0
      expect(requests).toBeGreaterThan(1_000)
      expect(Object.fromEntries(answers)).toEqual({ 200: requests })
      expect(await receiver.count(path)).toMatchObject({ requests, distinct: requests })
      // The replaced processes have closed their connections.
      expect(connections - before).toBeGreaterThan(3 * atOnce)
    })

    test('loses and repeats nothing if a message comes just when it closes an idle connection', async () => {
      const path = `/idle-${scheme}`
      const post = poster(server[scheme], path)
      const rounds = 8
      const before = connections
      const answers = await Promise.all(
        Array.from({ length: 3 * atOnce }, async (_, user) => {
          const own: (number | string)[] = []
          for (let round = 0; round < rounds; round++) {
            own.push(await post())
            // Some messages come before the server closes the connection, some at that moment, some later.
            await delay(idleMs - atOnce / 2 + (user % atOnce))
          }
          return own
        }),
      )
      const requests = 3 * atOnce * rounds
      expect(answers.flat()).toEqual(Array.from({ length: requests }, () => 200))
      expect(await receiver.count(path)).toMatchObject({ requests, distinct: requests })
      expect(connections - before).toBeGreaterThan(3 * atOnce)
    })

    test('keeps its connections for the next messages', async () => {
      const post = poster(server[scheme], `/kept-${scheme}`)
      const before = connections
      async function postInTurn(): Promise<void> {
        for (let nth = 0; nth < 50; nth++) expect(await post()).toBe(200)
      }
      await Promise.all(Array.from({ length: atOnce }, postInTurn))
      expect(connections - before).toBeLessThanOrEqual(2 * atOnce)
    })

    // Only nginx and Envoy answer 413 before they have read the body.
    if (name !== 'nginx' && name !== 'Envoy') return
    test.each([5_000, 1_000_000])(
      'refuses a body of %i bytes before it has read it, which is no broken connection',
      async (bytes) => {
        expect(bytes).toBeGreaterThan(smallBytes)
        const post = poster(server[scheme], '/small', bytes)
        const answers = await Promise.all(Array.from({ length: atOnce }, post))
        expect(answers).toEqual(Array.from({ length: atOnce }, () => 413))
      },
    )
  })
})
