/**
 * Polls `probe` until it gives something truthy, and gives that back. Fails with `what` and the last error
 * or value when `timeoutMs` have passed: the replacement for every sleep in the tests.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  { timeoutMs = 30_000, everyMs = 25 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  for (;;) {
    try {
      const value = await probe()
      if (value) return value
      last = value
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) {
      throw new Error(`timed out after ${timeoutMs} ms: ${what}`, { cause: last })
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
