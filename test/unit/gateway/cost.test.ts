import { describe, expect, test } from 'vitest'
import { harmfulBodies } from '../../support/harmful-bodies.ts'
import { trackingOf } from '../../support/tracking.ts'

const mostMs = 100
/** What a body costs is in each of the tries; what compiling costs is not. */
const tries = 4

const source = {
  id: 'shop',
  name: 'shop',
  kind: 'events' as const,
  enabled: true,
  writeKeys: ['KEY'],
  serverKeys: [],
  maxPerSecond: undefined,
}
const tracking = trackingOf({ sources: [source], ackTimeoutMs: 1_500, bufferBytes: 2 ** 30 })

/** CPU of this thread until the request waits for Kafka, or is answered. */
async function costMs(body: Buffer): Promise<number> {
  const before = process.threadCpuUsage()
  const answer = tracking.handle('batch', body, 'Bearer KEY', '203.0.113.7')
  const { user, system } = process.threadCpuUsage(before)
  expect([200, 400]).toContain((await answer).status)
  return (user + system) / 1_000
}

describe('less than 100 ms of CPU is what the gateway needs for', () => {
  test.each(harmfulBodies())('$name', async ({ body }) => {
    let leastMs = Infinity
    for (let tried = 0; tried < tries && leastMs >= mostMs / 2; tried++) {
      leastMs = Math.min(leastMs, await costMs(body))
    }
    expect(leastMs).toBeLessThan(mostMs)
  })
})
