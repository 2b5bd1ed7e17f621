import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type Sender, type Target } from '../../../src/delivery/send/sender.ts'
import { judge } from '../../../src/delivery/outcomes/verdict.ts'
import { createAuthority } from '../../support/certificates.ts'
import {
  answerWell,
  type Behaviour,
  goodStatus,
  type HostileReceiver,
  type Place,
  says,
  startHostileReceiver,
} from '../../support/hostile-receiver.ts'
import { startIdleClosingReceiver } from '../../support/idle-closing-receiver.ts'
import { soonest } from '../../support/soonest.ts'

/** Tests of a kept connection that the server closes while the next request is on its way. */

/** The deadline where a test waits for it, in milliseconds. */
const timeoutMs = 1_000
const longMs = 30_000
const good: Outcome = { kind: 'answer', status: goodStatus }
const authority = createAuthority('Sluice test authority')
const identity = authority.issue({ names: ['127.0.0.1'] })
const ended: (() => Promise<void>)[] = []

beforeAll(() => setDefaultCACertificates([...getCACertificates(), authority.cert]))

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

function sender(deadlineMs = longMs): Sender {
  const policy = createAddressPolicy(['127.0.0.1'])
  const made = createSender({ policy, timeoutMs: deadlineMs, poolIdleMs: 10_000 })
  ended.push(() => made.close())
  return made
}

async function receiver(behaviour: Behaviour, { tls = false } = {}): Promise<HostileReceiver> {
  const server = await startHostileReceiver(behaviour, tls ? { identity } : {})
  ended.push(() => server.stop())
  return server
}

function target(origin: string): Target {
  return { origin, path: '/', headers: [] }
}

type Posted = { outcomes: Outcome[]; releases: number; answeredMs: number }

/** Posts `body`, and waits until the slot is free. */
async function post(by: Sender, to: Target, body: string): Promise<Posted> {
  const startedMs = performance.now()
  const posted: Posted = { outcomes: [], releases: 0, answeredMs: 0 }
  await new Promise<void>((resolve) => {
    by.post(to, Buffer.from(body), [], {
      answered(outcome) {
        posted.outcomes.push(outcome)
        posted.answeredMs = performance.now() - startedMs
      },
      released() {
        posted.releases++
        resolve()
      },
    })
  })
  return posted
}

/**
 * Returns a behaviour that calls `hostile` for the second request of the first connection. It answers all
 * other requests well.
 */
function onReuse(hostile: (socket: Socket) => void): Behaviour {
  return {
    answers: (socket, { connection, nthOfConnection }) =>
      connection === 1 && nthOfConnection === 2 ? hostile(socket) : answerWell(socket),
  }
}

/** Posts once to open a connection. Then posts again over this connection, and returns the second result. */
async function postByKept(server: HostileReceiver, deadlineMs = longMs): Promise<Posted> {
  const by = sender(deadlineMs)
  const to = target(server.origin)
  expect(await post(by, to, 'first')).toMatchObject({ outcomes: [good], releases: 1 })
  return post(by, to, 'second')
}

describe('a request that a kept connection lost, before a byte of an answer came, is made once more', () => {
  const losses: [name: string, lose: (socket: Socket) => void][] = [
    ['closes it', (socket) => socket.end()],
    ['resets it', (socket) => socket.resetAndDestroy()],
  ]

  test.each(losses)('when the server reads it and %s: it gets the request twice', async (_name, lose) => {
    const server = await receiver(onReuse(lose))
    expect(await postByKept(server)).toMatchObject({ outcomes: [good], releases: 1 })
    expect(server.requests).toEqual(['first', 'second', 'second'])
    expect(server.connections).toBe(2)
  })

  test('over TLS, where a close has bytes of its own', async () => {
    const server = await receiver(
      onReuse((socket) => socket.end()),
      { tls: true },
    )
    expect(await postByKept(server)).toMatchObject({ outcomes: [good], releases: 1 })
    expect(server.requests).toEqual(['first', 'second', 'second'])
    expect(server.connections).toBe(2)
  })

  test('when the reset comes before the request was written: the server gets it once', async () => {
    const sockets: Socket[] = []
    const server = await receiver({ greets: (socket) => void sockets.push(socket) })
    const by = sender()
    const to = target(server.origin)
    await post(by, to, 'first')
    for (const socket of sockets) socket.resetAndDestroy()
    expect(await post(by, to, 'second')).toMatchObject({ outcomes: [good], releases: 1 })
    expect(server.requests).toEqual(['first', 'second'])
    expect(server.connections).toBe(2)
  })

  test('by a new connection: that all kept ones are stale makes no difference', async () => {
    const kept = 12
    const server = await receiver({
      answers: (socket, { connection, nthOfConnection }) =>
        connection <= kept && nthOfConnection === 2 ? socket.resetAndDestroy() : answerWell(socket),
    })
    const by = sender()
    const to = target(server.origin)
    const postAll = (prefix: string, count: number): Promise<Posted[]> =>
      Promise.all(Array.from({ length: count }, (_, i) => post(by, to, `${prefix}${i}`)))
    await postAll('first', kept)
    expect(server.connections).toBe(kept)
    // undici accepts a connection back one turn of the event loop after its answer.
    await turn()
    await turn()
    const lost = kept / 2
    for (const posted of await postAll('second', lost)) {
      expect(posted).toMatchObject({ outcomes: [good], releases: 1 })
    }
    expect(server.connections).toBe(kept + lost)
    expect(server.requests).toHaveLength(kept + lost + lost)
  })

  test('within the same deadline', async () => {
    // A deadline that began anew would be over after 1.6 times the time.
    const enoughMs = timeoutMs * 1.5
    const tookMs = await soonest(enoughMs, async () => {
      const held: Socket[] = []
      const server = await receiver({
        answers(socket, { nth }) {
          if (nth === 1) answerWell(socket)
          else if (nth === 2) setTimeout(() => socket.end(), timeoutMs * 0.6)
          else held.push(socket)
        },
      })
      const posted = await postByKept(server, timeoutMs)
      expect(posted).toMatchObject({ outcomes: [{ kind: 'timeout' }], releases: 1 })
      expect(posted.answeredMs).toBeGreaterThanOrEqual(timeoutMs)
      expect(held).toHaveLength(1)
    })
    expect(tookMs).toBeLessThan(enoughMs)
  })

  test('and the pool goes on with what it had', async () => {
    const server = await receiver(onReuse((socket) => socket.end()))
    const by = sender()
    const to = target(server.origin)
    for (const body of ['1', '2', '3', '4', '5']) {
      expect(await post(by, to, body)).toMatchObject({ outcomes: [good], releases: 1 })
    }
    expect(server.requests).toEqual(['1', '2', '2', '3', '4', '5'])
    // The two connections are the lost one, and the one for the second try.
    expect(server.connections).toBe(2)
  })

  test('but not after the sender was closed', async () => {
    const by = sender()
    const server = await receiver({
      answers: (socket, { nth }) => (nth === 1 ? answerWell(socket) : void by.close()),
    })
    const to = target(server.origin)
    await post(by, to, 'first')
    expect(await post(by, to, 'second')).toMatchObject({ outcomes: [{ kind: 'connection' }], releases: 1 })
    expect(server.connections).toBe(1)
  })
})

describe('a request is made only once', () => {
  const fresh: [name: string, behaviour: Behaviour][] = [
    ['resets it', { answers: (socket) => socket.resetAndDestroy() }],
    ['closes it', { answers: (socket) => socket.end() }],
  ]

  test.each(fresh)('when its connection is new and the server %s', async (_name, behaviour) => {
    const server = await receiver(behaviour)
    const { outcomes, releases } = await post(sender(), target(server.origin), 'first')
    expect({ kinds: outcomes.map(({ kind }) => kind), releases }).toEqual({
      kinds: ['connection'],
      releases: 1,
    })
    expect(outcomes.map(judge)).toEqual([{ kind: 'retry', afterMs: 0 }])
    expect(server.requests).toEqual(['first'])
    expect(server.connections).toBe(1)
  })

  test('when its connection is new because the kept one was closed before', async () => {
    const server = await receiver({
      answers: (socket, { nth }) =>
        nth === 1 ? says(`${goodHead}connection: close\r\n\r\n`)(socket) : socket.end(),
    })
    expect(await postByKept(server)).toMatchObject({ outcomes: [{ kind: 'connection' }], releases: 1 })
    expect(server.requests).toEqual(['first', 'second'])
  })

  const bytes: [name: string, text: string][] = [
    ['one byte', 'H'],
    ['one line feed, which is part of no answer', '\n'],
    ['half a head', 'HTTP/1.1 200 OK\r\nx: '],
    ['an announcement', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    ['garbage', 'SSH-2.0\r\n'],
  ]

  test.each(bytes)('when %s came back by the kept connection before the close', async (_name, text) => {
    const server = await receiver(onReuse(says(text, 'closes')))
    expect(await postByKept(server)).toMatchObject({ outcomes: [{ kind: 'connection' }], releases: 1 })
    expect(server.requests).toEqual(['first', 'second'])
    expect(server.connections).toBe(1)
  })

  test('when one byte came back over TLS', async () => {
    const server = await receiver(onReuse(says('H', 'closes')), { tls: true })
    expect(await postByKept(server)).toMatchObject({ outcomes: [{ kind: 'connection' }], releases: 1 })
    expect(server.requests).toEqual(['first', 'second'])
  })

  test('when the kept connection is silent until the deadline', async () => {
    const server = await receiver(onReuse(() => {}))
    expect(await postByKept(server, timeoutMs)).toMatchObject({
      outcomes: [{ kind: 'timeout' }],
      releases: 1,
    })
    expect(server.requests).toEqual(['first', 'second'])
  })

  test('when the answer was complete, and its body is broken off', async () => {
    const server = await receiver(onReuse(says('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n', 'closes')))
    expect(await postByKept(server)).toMatchObject({
      outcomes: [{ kind: 'answer', status: 200 }],
      releases: 1,
    })
    expect(server.requests).toEqual(['first', 'second'])
  })
})

test('a request is made twice at the most: when the second connection is lost as well, that is the outcome', async () => {
  const server = await receiver({
    answers: (socket, { nth }: Place) => (nth === 1 ? answerWell(socket) : socket.resetAndDestroy()),
  })
  const posted = await postByKept(server)
  expect(posted).toMatchObject({ outcomes: [{ kind: 'connection', code: 'ECONNRESET' }], releases: 1 })
  expect(server.requests).toEqual(['first', 'second', 'second'])
})

describe('a server that closes idle connections just when the next request comes', () => {
  const idleMs = 25
  const lanes = 8
  const maxRequests = 8_000

  test.each([
    { name: 'closes them', ending: 'closes', secured: {} },
    { name: 'closes them over TLS', ending: 'closes', secured: { identity } },
    { name: 'resets them', ending: 'resets', secured: {} },
  ] as const)('$name: no POST fails, and each is handled once', async ({ ending, secured }) => {
    const server = await startIdleClosingReceiver({ idleMs, ending, ...secured }, { maxRequests })
    ended.push(() => server.stop())
    const by = sender()
    let posts = 0
    const failed: Outcome[] = []

    /**
     * Posts one request after the other. Each request is sent when the server is about to close the
     * connection of the last one.
     */
    async function postOnTheEdge(lane: number): Promise<void> {
      const to = target(server.origin)
      // oxlint-disable-next-line eslint/no-unmodified-loop-condition -- the other variables change
      for (let i = 0; i < 60 || (ending === 'closes' && server.tooLate < 3 && posts < maxRequests); i++) {
        const { outcomes, releases } = await post(by, to, String(++posts))
        failed.push(...outcomes.filter(({ kind }) => kind !== 'answer'))
        expect(releases).toBe(1)
        await new Promise((resolve) => setTimeout(resolve, idleMs - 1 + ((i + lane) % 3)))
      }
    }

    await Promise.all(Array.from({ length: lanes }, (_, lane) => postOnTheEdge(lane)))
    expect(failed).toEqual([])
    expect(posts).toBeGreaterThanOrEqual(200)
    const handled = Array.from({ length: posts }, (_, i) => server.handled(i + 1))
    expect(handled).toEqual(handled.map(() => 1))
    // A reset leaves no sign of requests that came too late.
    expect(server.tooLate).toBeGreaterThanOrEqual(ending === 'closes' ? 3 : 0)
  })
})

const goodHead = `HTTP/1.1 ${goodStatus} Good\r\ncontent-length: 0\r\n`
