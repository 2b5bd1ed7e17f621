/**
 * Waits for the promise `work`. Returns true if `work` resolves within `timeoutMs`. Rejects if `work` rejects
 * within `timeoutMs`. Otherwise returns false, and ignores the later result of `work`.
 */
export async function within(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  let cancel: (() => void) | undefined
  const timeout = new Promise<boolean>((resolve) => {
    cancel = whenLate(timeoutMs, () => resolve(false))
  })
  try {
    return await Promise.race([work.then(() => true), timeout])
  } finally {
    cancel?.()
  }
}

/**
 * Waits for the promise `work`, and returns its result. If `work` takes longer than `timeoutMs`, rejects with
 * an error with the message `lateMessage`, and ignores the later result. Also rejects if `work` rejects
 * within `timeoutMs`.
 */
export async function answerWithin<T>(timeoutMs: number, work: Promise<T>, lateMessage: string): Promise<T> {
  if (await within(timeoutMs, work)) return work
  throw new Error(lateMessage)
}

/**
 * Calls `callback` if an answer hasn't come after `timeoutMs`. The caller has to call the returned function
 * when the answer comes.
 *
 * If the process was suspended, its timers run before its sockets are read. So this function first lets all
 * answers be read that have come meanwhile, and calls `callback` only then.
 */
export function whenLate(timeoutMs: number, callback: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    immediate = setImmediate(callback)
  }, timeoutMs)
  return () => {
    clearTimeout(timer)
    clearImmediate(immediate)
  }
}
