import { within } from '../kafka/within.ts'
import { StartError } from './start-error.ts'

/**
 * Awaits `work`; rejects with `complaint()` when it takes longer than `timeoutMs`. It then goes on
 * unobserved.
 */
export async function inTime<T>(work: Promise<T>, timeoutMs: number, complaint: () => string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new StartError(complaint())
}
