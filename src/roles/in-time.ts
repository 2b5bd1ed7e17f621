import { within } from '../kafka/within.ts'
import { StartError } from './start-error.ts'

/**
 * Awaits `work`. Rejects with `complaint()` when that takes longer than `timeoutMs`; `work` then continues
 * unobserved.
 */
export async function inTime<T>(work: Promise<T>, timeoutMs: number, complaint: () => string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new StartError(complaint())
}
