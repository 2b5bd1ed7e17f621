import { createRequire } from 'node:module'
import { expect, onTestFinished, test } from 'vitest'
import { type Entry, mendRequestQueue, type RequestQueue } from '../../../../src/kafka/wire/request-queue.ts'
import { until } from '../../../support/until.ts'

mendRequestQueue()

type Queue = RequestQueue & {
  scheduleRequestTimeoutCheck(): void
  fulfillRequest(response: { correlationId: number; payload: Buffer; size: number }): void
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for its files
const QueueClass = createRequire(import.meta.url)('kafkajs/src/network/requestQueue/index.js') as new (
  options: object,
) => Queue

const ignore = (): void => undefined

function open({ requestTimeout = 1_000 } = {}): Queue {
  const logger = { debug: ignore, warn: ignore, namespace: () => logger }
  const queue = new QueueClass({
    maxInFlightRequests: null,
    requestTimeout,
    enforceRequestTimeout: true,
    clientId: 'sluice',
    broker: 'none',
    logger,
    isConnected: () => true,
  })
  onTestFinished(() => queue.destroy())
  return queue
}

/** A heartbeat, whose answer begins with the time for which the broker throttles the client. */
class Heartbeat {
  sentMs = 0
  error: Error | undefined
  mutedMs = 0
  readonly entry: Entry

  constructor(queue: Queue, correlationId: number) {
    this.entry = {
      apiKey: 12,
      apiName: 'Heartbeat',
      apiVersion: 3,
      correlationId,
      resolve: ignore,
      reject: (error) => (this.error = error),
      onMuted: (ms) => (this.mutedMs = ms),
    }
    const sendRequest = (): void => void (this.sentMs = performance.now())
    queue.push({ entry: this.entry, expectResponse: true, requestTimeout: undefined, sendRequest })
  }

  isAnswered(queue: Queue, { throttleMs = 0 } = {}): void {
    const payload = Buffer.alloc(6)
    payload.writeInt32BE(throttleMs)
    queue.fulfillRequest({ correlationId: this.entry.correlationId, payload, size: 0 })
  }
}

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

test('a connection that was answered sets no timer', () => {
  const queue = open()
  const before = timers()
  new Heartbeat(queue, 1).isAnswered(queue)
  expect(timers()).toBe(before)
})

test('after an answer with a throttle, the next request is sent when its time is over, and not before', async () => {
  const queue = open()
  const throttles: object[] = []
  queue.onThrottle = (throttle) => throttles.push(throttle)
  const first = new Heartbeat(queue, 1)
  const startedMs = performance.now()
  first.isAnswered(queue, { throttleMs: 80 })
  const next = new Heartbeat(queue, 2)
  await until('it is sent', () => next.sentMs > 0)
  expect(next.sentMs - startedMs).toBeGreaterThanOrEqual(80)
  expect(throttles).toEqual([{ broker: 'none', clientId: 'sluice', apiKey: 12, ms: 80 }])
})

test('the time limit of a request that was sent begins when the broker reads it', async () => {
  const queue = open({ requestTimeout: 100 })
  queue.scheduleRequestTimeoutCheck()
  const [first, second] = [new Heartbeat(queue, 1), new Heartbeat(queue, 2)]
  const startedMs = performance.now()
  first.isAnswered(queue, { throttleMs: 400 })
  expect(second.mutedMs).toBe(400)
  await until('it is late', () => second.error !== undefined)
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(500)
})

test('after a throttle, a request waits for the answer to the one before it, and can still be taken back', () => {
  const queue = open()
  new Heartbeat(queue, 1).isAnswered(queue, { throttleMs: 1 })
  const endMs = performance.now() + 5
  while (performance.now() < endMs);
  const [sent, waiting, last] = [new Heartbeat(queue, 2), new Heartbeat(queue, 3), new Heartbeat(queue, 4)]
  expect([sent, waiting].map(({ sentMs }) => sentMs > 0)).toEqual([true, false])
  expect([queue.withdraw(sent.entry), queue.withdraw(waiting.entry)]).toEqual([false, true])
  sent.isAnswered(queue)
  expect([waiting, last].map(({ sentMs }) => sentMs > 0)).toEqual([false, true])
})

test('nothing more is sent over a connection whose request has no answer', async () => {
  const queue = open({ requestTimeout: 50 })
  queue.scheduleRequestTimeoutCheck()
  const waiting: Heartbeat[] = []
  const silences: string[] = []
  queue.onSilence = (apiName) => {
    silences.push(apiName)
    for (const { entry } of waiting) queue.withdraw(entry)
  }
  new Heartbeat(queue, 1).isAnswered(queue, { throttleMs: 1 })
  const sent = new Heartbeat(queue, 2)
  waiting.push(new Heartbeat(queue, 3))
  await until('it is late', () => sent.error !== undefined)
  expect(silences).toEqual(['Heartbeat'])
  expect(waiting[0]?.sentMs).toBe(0)
})
