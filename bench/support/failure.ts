/**
 * The error of a run whose figures can't be used. The message is the reason, and is shown without a stack.
 */
export class BenchmarkFailure extends Error {
  override name = 'BenchmarkFailure'
}
