import type { HeldRecord } from '../../src/message/held-record.ts'
import { Delivery, PendingRecord } from '../../src/pipeline/delivery.ts'

/** A record that nobody waits for. */
export const idleRecord: HeldRecord = {
  topic: 'events',
  partition: 0,
  offset: 0,
  timestampMs: 0,
  isLate: false,
  isAbandoned: false,
  settle() {},
  giveBack() {},
}

/** Returns a delivery for a test of what observes deliveries. */
export function deliveryOf(sourceId: string, destinationId: string): Delivery {
  const state = {
    sourceId,
    destinationId,
    messageId: 'm',
    kind: 'track',
    nextRung: 0,
    attempts: 1,
    firstSeenMs: 0,
    expiresAtMs: 0,
    failedHooks: [],
    notBeforeMs: new Map(),
    lastOutcome: '',
    origin: idleRecord,
  }
  const pending = new PendingRecord(
    idleRecord,
    { deliveries: 1, bytes: 0, isPulled: false },
    { ended() {}, detached() {}, onlyNoted: () => false },
  )
  const lane = { cap: 1, laneClass: 'fresh', rate: undefined } as const
  return new Delivery(state, { pending, key: null, body: Buffer.alloc(0), lane })
}
