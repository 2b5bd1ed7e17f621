import { onTestFinished, expect, test } from 'vitest'
import type { Outcome } from '../../../src/delivery/outcome.ts'
import type { Exchange, Target } from '../../../src/delivery/sender.ts'
import { ThreadedSender, type ThreadedSenderOptions } from '../../../src/delivery/threaded-sender.ts'
import { answer, type Script, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'

/** What a sender with a thread of its own promises beyond what all senders do (sender.test.ts). */

const breakingThread = new URL('../../support/breaking-sender-thread.ts', import.meta.url)

function threadedSender(options: Partial<ThreadedSenderOptions> = {}): {
  by: ThreadedSender
  faults: string[]
} {
  const faults: string[] = []
  const by = new ThreadedSender({
    allowAddresses: ['127.0.0.1'],
    dnsServers: [],
    timeoutMs: 1_000,
    poolIdleMs: 10_000,
    onBroken: (error) => faults.push(error.message),
    ...options,
  })
  onTestFinished(() => by.close())
  return { by, faults }
}

async function receiver(script: Script) {
  const server = await startReceiver(script)
  onTestFinished(() => server.stop())
  const to: Target = { origin: server.origin, path: '/', headers: [] }
  return { server, to }
}

type Heard = { outcome: Outcome; mayHaveArrived: boolean }

function post(
  by: ThreadedSender,
  to: Target,
  body: string,
  signature: readonly string[] = [],
): Promise<Heard> {
  return new Promise((resolve) => {
    let heard: Heard | undefined
    const exchange: Exchange = {
      answered: (outcome, mayHaveArrived) => (heard = { outcome, mayHaveArrived }),
      released() {
        if (heard !== undefined) resolve(heard)
      },
    }
    by.post(to, Buffer.from(body), signature, exchange)
  })
}

test('each request has its own body and signature, however many go over at once', async () => {
  const { by } = threadedSender()
  const { server, to } = await receiver(answer(200))
  const numbers = Array.from({ length: 200 }, (_, number) => number)
  const all = await Promise.all(numbers.map((n) => post(by, to, `{"n":${n}}`, ['X-Number', String(n)])))
  expect(all.every(({ outcome }) => outcome.kind === 'answer' && outcome.status === 200)).toBe(true)
  const seen = server.requests.map(({ headers, body }) => `${String(headers['x-number'])} ${body.toString()}`)
  expect(seen.toSorted()).toEqual(numbers.map((n) => `${n} {"n":${n}}`).toSorted())
})

test('what is posted after it was closed fails at once', async () => {
  const { by } = threadedSender()
  await by.close()
  const to: Target = { origin: 'http://127.0.0.1:1', path: '/', headers: [] }
  expect(await post(by, to, '{}')).toMatchObject({ outcome: { code: 'UND_ERR_DESTROYED' } })
})

test.each(['breaks', 'ends'])(
  'where its thread %s, what it had in flight has failed, and another one is started',
  async (how) => {
    const { by, faults } = threadedSender({ threadUrl: breakingThread, allowAddresses: [how] })
    const to: Target = { origin: 'http://127.0.0.1:1', path: '/', headers: [] }
    const failed: Heard = {
      outcome: { kind: 'connection', code: 'SLUICE_THREAD_ENDED' },
      mayHaveArrived: true,
    }
    const startedMs = performance.now()
    expect(await Promise.all([post(by, to, '1'), post(by, to, '2')])).toEqual([failed, failed])
    expect(await post(by, to, '3')).toEqual(failed)
    // Not in a loop.
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1_000)
    expect(faults).toHaveLength(2)
  },
)

test('a thread that stands still is ended', async () => {
  const { by, faults } = threadedSender({
    threadUrl: breakingThread,
    allowAddresses: ['stands still'],
    timeoutMs: 50,
    stuckAfterMs: 200,
  })
  const to: Target = { origin: 'http://127.0.0.1:1', path: '/', headers: [] }
  expect(await post(by, to, '1')).toMatchObject({ outcome: { code: 'SLUICE_THREAD_ENDED' } })
  expect(faults).toEqual([expect.stringContaining('stood still')])
})

test('what is in flight when it is closed has failed, and its sockets are closed', async () => {
  const { by } = threadedSender({ timeoutMs: 60_000 })
  const closed = Promise.withResolvers<void>()
  const { server, to } = await receiver((_request, response) => {
    response.socket?.once('close', () => closed.resolve())
  })
  const posted = post(by, to, '{}')
  await until('the request is under way', () => server.requests.length === 1)
  await by.close()
  expect(await posted).toEqual({
    outcome: { kind: 'connection', code: 'UND_ERR_DESTROYED' },
    mayHaveArrived: true,
  })
  await closed.promise
})
