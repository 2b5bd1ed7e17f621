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
