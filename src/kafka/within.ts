/**
 * Returns true if `work` resolves in time. Otherwise returns false, and the later result of `work` is
 * ignored. Rejects if `work` rejects in time.
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
 * Returns what `work` resolves to. Rejects with an error of the text `whenLate` if `work` takes longer than
 * `timeoutMs`. The later result of `work` is then ignored. Rejects also if `work` rejects in time.
 */
export async function answerWithin<T>(timeoutMs: number, work: Promise<T>, whenLate: string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new Error(whenLate)
}
