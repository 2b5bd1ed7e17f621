import { createServer } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { createSender, type Sender } from '../../../src/delivery/send/sender.ts'
import { createAuthority } from '../../support/certificates.ts'
import {
  answer,
  neverAnswer,
  portOf,
  type RawScript,
  type Script,
  startRawReceiver,
  startReceiver,
} from '../../support/receiver.ts'

/**
 * Tests of requests without a good answer. They check whether the sender says that the request may still have
 * reached the server.
 */

const ended: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

/** The deadline where a test waits for it, in milliseconds. */
const shortMs = 400

function sender(timeoutMs = 30_000): Sender {
  const made = createSender({
    policy: createAddressPolicy(['127.0.0.1']),
    timeoutMs,
    poolIdleMs: 4_000,
  })
  ended.push(() => made.close())
  return made
}

async function receiver(script: Script): Promise<string> {
  const server = await startReceiver(script)
  ended.push(() => server.stop())
  return server.origin
}

async function rawReceiver(script: RawScript): Promise<string> {
  const server = await startRawReceiver(script)
  ended.push(() => server.stop())
  return server.origin
}

type Ended = { outcome: Outcome; mayHaveArrived: boolean }

function post(by: Sender, target: Parameters<Sender['post']>[0]): Promise<Ended> {
  return new Promise((resolve) => {
    let last: Ended | undefined
    by.post(target, Buffer.from('{}'), [], {
      answered(outcome, mayHaveArrived) {
        last = { outcome, mayHaveArrived }
      },
      released() {
        if (last !== undefined) resolve(last)
      },
    })
  })
}

const targetAt = (origin: string) => ({ origin, path: '/', headers: [] })

test.each([200, 404, 429, 503])('a request that is answered %i has its answer', async (status) => {
  const origin = await receiver(answer(status))
  expect(await post(sender(), targetAt(origin))).toEqual({
    outcome: { kind: 'answer', status },
    mayHaveArrived: false,
  })
})

test('a request that a server takes and never answers may have arrived', async () => {
  const origin = await receiver(neverAnswer)
  expect(await post(sender(shortMs), targetAt(origin))).toEqual({
    outcome: { kind: 'timeout' },
    mayHaveArrived: true,
  })
})

test('a request whose connection is reset may have arrived', async () => {
  const origin = await rawReceiver({ data: (socket) => socket.resetAndDestroy() })
  expect(await post(sender(), targetAt(origin))).toMatchObject({
    outcome: { kind: 'connection' },
    mayHaveArrived: true,
  })
})

test('a request that is answered with something else than HTTP may have arrived', async () => {
  const origin = await rawReceiver({ data: (socket) => socket.end('hello\r\n\r\n') })
  expect(await post(sender(), targetAt(origin))).toMatchObject({
    outcome: { kind: 'connection' },
    mayHaveArrived: true,
  })
})

test('a request that nobody listens for has not arrived', async () => {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const origin = `http://127.0.0.1:${portOf(server)}`
  await new Promise((resolve) => server.close(resolve))
  expect(await post(sender(), targetAt(origin))).toEqual({
    outcome: { kind: 'connection', code: 'ECONNREFUSED' },
    mayHaveArrived: false,
  })
})

test('a request that waits for a TLS connection until its time is up has not arrived', async () => {
  const origin = (await rawReceiver({})).replace('http:', 'https:')
  expect(await post(sender(shortMs), targetAt(origin))).toEqual({
    outcome: { kind: 'timeout' },
    mayHaveArrived: false,
  })
})

test('a request to a server whose certificate is not trusted has not arrived', async () => {
  const identity = createAuthority('Nobody knows it').issue({ names: ['127.0.0.1'] })
  const server = await startReceiver(answer(200), { identity })
  ended.push(() => server.stop())
  expect(await post(sender(), targetAt(server.origin))).toMatchObject({
    outcome: { kind: 'certificate' },
    mayHaveArrived: false,
  })
})

test('a request to an address that is not allowed has not arrived', async () => {
  expect(await post(sender(), targetAt('http://127.0.0.2:1'))).toMatchObject({
    outcome: { kind: 'address' },
    mayHaveArrived: false,
  })
})

/**
 * Starts a server that answers one request, and then reads the second one on the same connection and resets
 * the connection. After that, the server is gone or answers with the status `then`.
 */
async function losing(then: number | 'gone'): Promise<string> {
  let nth = 0
  const server = createServer((request, response) => {
    nth++
    request.resume().once('end', () => {
      if (nth === 2) {
        if (then === 'gone') server.close()
        response.socket?.resetAndDestroy()
      } else response.writeHead(nth === 1 || then === 'gone' ? 200 : then).end()
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  ended.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${portOf(server)}`
}

test('a request that a stale connection lost may have arrived, though nobody listens for it anew', async () => {
  const target = targetAt(await losing('gone'))
  const by = sender()
  await post(by, target)
  expect(await post(by, target)).toEqual({
    outcome: { kind: 'connection', code: 'ECONNREFUSED' },
    mayHaveArrived: true,
  })
})

test.each([429, 200])(
  'a request that a stale connection lost may have arrived, though it is answered %i anew',
  async (status) => {
    const target = targetAt(await losing(status))
    const by = sender()
    await post(by, target)
    expect(await post(by, target)).toEqual({ outcome: { kind: 'answer', status }, mayHaveArrived: true })
  },
)
