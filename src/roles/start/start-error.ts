import { within } from '../../async/within.ts'

/**
 * An error that keeps a role from starting, and whose cause is outside of the program. The message says what
 * to do. The error is shown without a stack, because the program has no fault.
 */
export class StartError extends Error {
  override name = 'StartError'
}

/**
 * A `StartError` about the command line: a value that was given to a command can't be used. The exit code is
 * 2, as for a wrong option.
 */
export class WrongUseError extends StartError {
  override name = 'WrongUseError'
}

/**
 * Waits for the promise `work`, and returns its result. If `work` takes longer than `timeoutMs`, rejects with
 * a StartError whose message is `complaint()`, and ignores the later result.
 */
export async function inTime<T>(work: Promise<T>, timeoutMs: number, complaint: () => string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new StartError(complaint())
}
