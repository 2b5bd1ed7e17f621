import type { BulkheadOptions } from '../../src/delivery/bulkhead.ts'

/** For tests of which it isn't the subject. */
export const roomyBulkhead: BulkheadOptions = {
  maxInFlight: 1_000,
  maxTries: 2_000,
  maxBytes: 10_000_000,
  waitMs: 60_000,
}
