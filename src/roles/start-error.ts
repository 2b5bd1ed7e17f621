/**
 * Something in the surroundings keeps a role from starting, and the message says what to do. It is shown
 * without a stack: nothing is wrong with the program.
 */
export class StartError extends Error {
  override name = 'StartError'
}
