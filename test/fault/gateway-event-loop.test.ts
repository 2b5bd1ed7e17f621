import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { basic, startGateway, type TestGateway } from '../support/gateway.ts'
import { harmfulBodies } from '../support/harmful-bodies.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway()
})

afterAll(() => gateway.stop())

const mostMs = 100
/**
 * The interval, in milliseconds, at which the gateway measures its event loop. Each measured time contains
 * this interval.
 */
const resolutionMs = 10
/**
 * The number of tries, of which the shortest stall counts. Other work of the machine may lengthen a stall,
 * but the cost of the body is part of every try.
 */
const tries = 5

/**
 * Returns the longest time, in milliseconds, for which the gateway's event loop stood still since the last
 * call.
 */
async function longestStallMs(): Promise<number> {
  return (await gateway.process.metric('nodejs_eventloop_lag_max_seconds')) * 1_000 - resolutionMs
}

/**
 * Posts some messages. In the meantime, the gateway measures its event loop at least once, because each post
 * takes some time: it waits for Kafka, and for messages that the gateway writes together with it.
 */
async function passTicks(): Promise<void> {
  for (let posted = 0; posted < 4; posted++) {
    await gateway.post('/v1/track', { userId: 'u1', event: 'E' }, basic('KEY'))
  }
}

async function stallOf(body: Buffer): Promise<number> {
  await longestStallMs()
  await passTicks()
  const { status } = await gateway.post('/v1/batch', body, basic('KEY'))
  expect([200, 400]).toContain(status)
  await passTicks()
  const stallMs = await longestStallMs()
  expect(stallMs).toBeGreaterThanOrEqual(0)
  return stallMs
}

describe('the event loop of a gateway stands still for less than 100 ms while it gets', () => {
  test.each(harmfulBodies())('$name', async ({ body }) => {
    let stallMs = Infinity
    for (let tried = 0; tried < tries && stallMs >= mostMs; tried++) {
      stallMs = Math.min(stallMs, await stallOf(body))
    }
    expect(stallMs).toBeLessThan(mostMs)
  })
})
