import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { silenceRequestQueue } from '../../../src/kafka/request-queue.ts'
import { until } from '../../support/until.ts'

type Pushed = {
  entry: { correlationId: number; apiName: string; resolve(): void; reject(error: Error): void }
  expectResponse: boolean
  sendRequest(): void
}

silenceRequestQueue()
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for its files
const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue/index.js') as new (
  options: object,
) => {
  push(request: Pushed): void
  maybeThrottle(ms: number): void
  fulfillRequest(response: { correlationId: number; payload: null; size: number }): void
}

const ignore = (): void => undefined

function open() {
  const logger = { debug: ignore, warn: ignore, namespace: () => logger }
  return new RequestQueue({
    maxInFlightRequests: null,
    requestTimeout: 1_000,
    enforceRequestTimeout: false,
    clientId: 'sluice',
    broker: 'none',
    logger,
    isConnected: () => true,
  })
}

function request(correlationId: number, sendRequest: () => void, expectResponse: boolean): Pushed {
  return {
    entry: { correlationId, apiName: 'Fetch', resolve: ignore, reject: ignore },
    expectResponse,
    sendRequest,
  }
}

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

test('a connection that was answered sets no timer', () => {
  const before = timers()
  const queue = open()
  queue.push(request(1, () => undefined, true))
  queue.fulfillRequest({ correlationId: 1, payload: null, size: 0 })
  expect(timers()).toBe(before)
})

test('what a broker has throttled is sent when its time is over', async () => {
  const queue = open()
  const startedMs = Date.now()
  queue.maybeThrottle(80)
  let sentMs = 0
  queue.push(request(1, () => (sentMs = Date.now()), false))
  expect(sentMs).toBe(0)
  await until('it is sent', () => sentMs > 0)
  expect(sentMs - startedMs).toBeGreaterThanOrEqual(80)
})
