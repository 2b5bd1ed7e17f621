import type { BulkheadOptions } from '../../src/delivery/lanes/bulkhead.ts'

/** Limits of a bulkhead that are too high to matter, for tests of other subjects. */
export const roomyBulkhead: BulkheadOptions = {
  maxInFlight: 1_000,
  maxTries: 2_000,
  maxBytes: 10_000_000,
  waitMs: 60_000,
}
