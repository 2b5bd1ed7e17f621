import { createCatalog } from '../../src/catalog/catalog.ts'
import { Availability } from '../../src/gateway/outbox/availability.ts'
import { Outbox } from '../../src/gateway/outbox/outbox.ts'
import { RefusalBudgets } from '../../src/gateway/calls/refusal-budgets.ts'
import { Sources } from '../../src/gateway/calls/sources.ts'
import { createTracking, type Tracking, type Client } from '../../src/gateway/calls/tracking.ts'
import { defaultLimits } from '../../src/message/limits.ts'

/** A client whose address isn't added to its messages. */
export const client: Client = { address: '203.0.113.7', ip: undefined }

/**
 * Creates the tracking API without a server. While `isUp` returns true, its Kafka acknowledges each produce
 * at once. Otherwise its Kafka never answers.
 */
export function trackingOf({
  sources,
  isUp = () => true,
  ackTimeoutMs,
  bufferBytes,
  budgets = new RefusalBudgets(now),
}: {
  sources: Parameters<typeof createCatalog>[0]
  isUp?: () => boolean
  ackTimeoutMs: number
  bufferBytes: number
  budgets?: RefusalBudgets
}): Tracking {
  const catalog = createCatalog(sources, [], '1')
  return createTracking({
    sources: new Sources(() => catalog, now),
    outbox: new Outbox({
      sender: {
        send: (produces, _road, onSettled) => {
          if (isUp()) for (const produce of produces) onSettled(produce, undefined)
        },
      },
      availability: new Availability({
        topics: ['events'],
        partitions: 3,
        check: async () => [],
        onChange: nothing,
        now,
      }),
      lingerMs: 1,
      ackTimeoutMs,
      bufferBytes,
      batchBytes: 900_000,
      now,
    }),
    observer: {
      answered: nothing,
      acknowledged: nothing,
      leftOut: nothing,
      coalesced: nothing,
      digitsLost: nothing,
      connectionRefused: nothing,
      failed: nothing,
    },
    budgets,
    topic: 'events',
    partitions: 3,
    limits: defaultLimits,
    now: Date.now,
  })
}

function now(): number {
  return performance.now()
}

function nothing(): void {}
