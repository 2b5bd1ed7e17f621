/**
 * Waits for the promise `work`. Returns true if `work` resolves within `timeoutMs`. Rejects if `work` rejects
 * within `timeoutMs`. Otherwise returns false, and ignores the later result of `work`.
 *
 * @param readsFromMs see `whenLate`
 */
export async function within(
  timeoutMs: number,
  work: Promise<unknown>,
  readsFromMs?: () => number,
): Promise<boolean> {
  let cancel: (() => void) | undefined
  const timeout = new Promise<boolean>((resolve) => {
    cancel = whenLate(timeoutMs, () => resolve(false), readsFromMs)
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
 *
 * @param readsFromMs see `whenLate`
 */
export async function answerWithin<T>(
  timeoutMs: number,
  work: Promise<T>,
  lateMessage: string,
  readsFromMs?: () => number,
): Promise<T> {
  if (await within(timeoutMs, work, readsFromMs)) return work
  throw new Error(lateMessage)
}

/**
 * Waits for the promise `work` as long as the number that `progress` returns grows within each `timeoutMs`.
 * Returns true if `work` resolves, and false if there was no progress. Rejects if `work` rejects.
 *
 * @param readsFromMs see `whenLate`
 */
export async function whileProgressing(
  timeoutMs: number,
  work: Promise<unknown>,
  { progress, readsFromMs }: { readonly progress: () => number; readonly readsFromMs: () => number },
): Promise<boolean> {
  for (let before = progress(); ; before = progress()) {
    if (await within(timeoutMs, work, readsFromMs)) return true
    if (progress() === before) return false
  }
}

/** The longest time that a timer of Node can have, in milliseconds. */
const longestTimerMs = 2 ** 31 - 1

/**
 * Calls `callback` if an answer hasn't come after `timeoutMs`. The caller has to call the returned function
 * when the answer comes.
 *
 * If the process was suspended, its timers run before its sockets are read. So this function first lets all
 * answers be read that have come meanwhile, and calls `callback` only then.
 *
 * @param readsFromMs returns the time from which the peer reads again, by `performance.now`, if the peer has
 * announced a wait. The time limit then begins at this time.
 */
export function whenLate(
  timeoutMs: number,
  callback: () => void,
  readsFromMs: () => number = () => -Infinity,
): () => void {
  let immediate: NodeJS.Immediate | undefined
  let timer: NodeJS.Timeout | undefined
  const waitFor = (ms: number): void => {
    timer = setTimeout(
      () => {
        immediate = setImmediate(() => {
          const leftMs = readsFromMs() + timeoutMs - performance.now()
          if (leftMs > 0) waitFor(leftMs)
          else callback()
        })
      },
      Math.min(ms, longestTimerMs),
    )
  }
  waitFor(timeoutMs)
  return () => {
    clearTimeout(timer)
    clearImmediate(immediate)
  }
}
