import type { Terms } from '../../../src/notices/decider.ts'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

/** The terms on which the deciders of these tests decide. */
export const terms: Terms = {
  failingAfterMs: 5 * minute,
  windowMs: hour,
  least: { paced: 100, dead_letters: 10 },
  staleMs: 75 * second,
  wellMs: 30 * second,
  secretEndingMs: 7 * 24 * hour,
}
