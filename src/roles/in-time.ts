import { within } from '../kafka/within.ts'
import { StartError } from './start-error.ts'

/**
 * Waits for the promise `work`, and returns its result. If `work` takes longer than `timeoutMs`, rejects with
 * a StartError whose message is `complaint()`, and ignores the later result.
 */
export async function inTime<T>(work: Promise<T>, timeoutMs: number, complaint: () => string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new StartError(complaint())
}
