/**
 * Waits for the promise `work`. Returns true if `work` resolves within `timeoutMs`. Rejects if `work` rejects
 * within `timeoutMs`. Otherwise returns false, and ignores the later result of `work`.
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
 * Waits for the promise `work`, and returns its result. If `work` takes longer than `timeoutMs`, rejects with
 * an error whose message is `whenLate`, and ignores the later result. Also rejects if `work` rejects within
 * `timeoutMs`.
 */
export async function answerWithin<T>(timeoutMs: number, work: Promise<T>, whenLate: string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new Error(whenLate)
}
