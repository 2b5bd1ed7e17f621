import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import { Availability } from '../../../src/gateway/availability.ts'
import { Outbox } from '../../../src/gateway/outbox.ts'
import { Sources } from '../../../src/gateway/sources.ts'
import { createTracking } from '../../../src/gateway/tracking.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import { harmfulBodies } from '../../support/harmful-bodies.ts'

const mostMs = 100
/** What a body costs is in each of the tries; what compiling costs is not. */
const tries = 4

function now(): number {
  return performance.now()
}

function nothing(): void {}

const source = {
  id: 'shop',
  name: 'shop',
  kind: 'events' as const,
  enabled: true,
  writeKeys: ['KEY'],
  serverKeys: [],
  maxPerSecond: undefined,
}
const catalog = createCatalog([source], [], '1')
const tracking = createTracking({
  sources: new Sources(() => catalog, now),
  outbox: new Outbox({
    sender: { send: (produces, _road, onSettled) => produces.forEach((one) => onSettled(one, undefined)) },
    availability: new Availability({
      topics: ['events'],
      partitions: 3,
      check: async () => [],
      onChange: nothing,
      now,
    }),
    lingerMs: 1,
    ackTimeoutMs: 1_500,
    bufferBytes: 2 ** 30,
    now,
  }),
  observer: {
    answered: nothing,
    acknowledged: nothing,
    leftOut: nothing,
    coalesced: nothing,
    digitsLost: nothing,
    failed: nothing,
  },
  topic: 'events',
  partitions: 3,
  limits: defaultLimits,
  now: Date.now,
})

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
