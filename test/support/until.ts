const leastMs = 25
const mostMs = 100

/**
 * Returns the pause before the next probe. A long wait has longer pauses, because each probe costs CPU time
 * that other processes need. A pause is a twentieth of the time waited so far, but at least 25 ms and at most
 * 100 ms.
 */
function pauseMs(waitedMs: number): number {
  return Math.min(mostMs, Math.max(leastMs, waitedMs / 20))
}

/**
 * Calls `probe` until it returns something truthy, and returns that. Throws an error with `what` after
 * `timeoutMs`. The error's cause is the last error or value of `probe`. Tests use this instead of sleeping.
 * Without `everyMs`, the pause between two calls is 25 ms at first, and 100 ms in a long wait.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  { timeoutMs = 60_000, everyMs }: { timeoutMs?: number; everyMs?: number } = {},
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
