/** A run whose figures must not be used; the message says why. Shown without a stack. */
export class BenchmarkFailure extends Error {
  override name = 'BenchmarkFailure'
}
