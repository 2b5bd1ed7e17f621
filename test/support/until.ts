const leastMs = 25
const mostMs = 100

/** Seldom in a long wait, since each look costs CPU time that others need: at the most a twentieth of the wait late. */
function pauseMs(waitedMs: number): number {
  return Math.min(mostMs, Math.max(leastMs, waitedMs / 20))
}

/**
 * Polls `probe` until it gives something truthy, and gives that back. Fails with `what` and the last error
 * or value when `timeoutMs` have passed: the replacement for every sleep in the tests.
 * Without `everyMs` it looks every 25 ms at first, and every 100 ms in a long wait.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  { timeoutMs = 30_000, everyMs }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const startedMs = performance.now()
  let last: unknown
  for (;;) {
    try {
      const value = await probe()
      if (value) return value
      last = value
    } catch (error) {
      last = error
    }
    const waitedMs = performance.now() - startedMs
    if (waitedMs > timeoutMs) {
      throw new Error(`timed out after ${timeoutMs} ms: ${what}`, { cause: last })
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs ?? pauseMs(waitedMs)))
  }
}
