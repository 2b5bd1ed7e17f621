/**
 * An error whose cause is outside of the program and keeps a role from starting. Its message says what to do.
 * It is shown without a stack, since the program has no fault.
 */
export class StartError extends Error {
  override name = 'StartError'
}
