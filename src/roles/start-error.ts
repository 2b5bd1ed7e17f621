/**
 * An error that keeps a role from starting, and whose cause is outside of the program. The message says what
 * to do. The error is shown without a stack, because the program has no fault.
 */
export class StartError extends Error {
  override name = 'StartError'
}
