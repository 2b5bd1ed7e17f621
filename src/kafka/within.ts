/**
 * Returns true if `work` resolves in time. Otherwise returns false, and `work` goes on unobserved. Rejects if
 * `work` rejects.
 */
export async function within(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs)
  })
  try {
    return await Promise.race([work.then(() => true), timeout])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Returns what `work` resolves to. Rejects with `whenLate` if that takes longer than `timeoutMs`: `work` then
 * goes on unobserved. Rejects also if `work` rejects.
 */
export async function answerWithin<T>(timeoutMs: number, work: Promise<T>, whenLate: string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new Error(whenLate)
}
