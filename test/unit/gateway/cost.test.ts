import { describe, expect, test } from 'vitest'
import { harmfulBodies } from '../../support/harmful-bodies.ts'
import { trackingOf } from '../../support/tracking.ts'

/**
 * The most CPU time that a body may cost. The unit is the time that it takes to parse an ordinary body of
 * half a megabyte and to write it again.
 */
const mostBodies = 60
/**
 * The number of tries, of which the cheapest counts. Each try has the cost of the body, but not each has the
 * cost of compiling the code.
 */
const tries = 6

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

/** Returns the CPU time of this thread, in milliseconds, until the request waits for Kafka or is answered. */
async function costMs(body: Buffer): Promise<number> {
  const before = process.threadCpuUsage()
  const answer = tracking.handle('batch', body, 'Bearer KEY', { address: '', ip: '203.0.113.7' })
  const { user, system } = process.threadCpuUsage(before)
  expect([200, 400]).toContain((await answer).status)
  return (user + system) / 1_000
}

/**
 * Returns the CPU time, in milliseconds, that this machine needs now to parse an ordinary body and to write
 * it again.
 */
function ordinaryMs(): number {
  const times = 10
  const properties = { total: 12.5, items: ['a', 'b'], name: 'x'.repeat(300) }
  const message = { type: 'track', userId: 'user-1', event: 'Order Completed', properties }
  const body = JSON.stringify({ batch: Array.from({ length: 1_200 }, () => message) })
  const before = process.threadCpuUsage()
  for (let time = 0; time < times; time++) JSON.stringify(JSON.parse(body))
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000 / times
}

describe('no more CPU than 60 ordinary bodies would take is what the gateway needs for', () => {
  test.each(harmfulBodies())('$name', async ({ body }) => {
    let least = Infinity
    for (let tried = 0; tried < tries && least >= mostBodies / 2; tried++) {
      // This is measured right before the request, because the speed of a shared machine changes within a
      // second.
      const ordinary = ordinaryMs()
      least = Math.min(least, (await costMs(body)) / ordinary)
    }
    expect(least).toBeLessThan(mostBodies)
  })
})
