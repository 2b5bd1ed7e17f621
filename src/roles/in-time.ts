import { within } from '../kafka/within.ts'
import { StartError } from './start-error.ts'

/**
 * Awaits `work`. Rejects with an error of the text `complaint()` if `work` takes longer than `timeoutMs`. The
 * later result of `work` is then ignored.
 */
export async function inTime<T>(work: Promise<T>, timeoutMs: number, complaint: () => string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new StartError(complaint())
}
