/**
 * Deadlines that all have the same length, for the price of a list append each: the first to be added is
 * the first due, so one timer looks at the head only. Fires up to `tickMs` late, never early.
 */
export type Deadline = { cancel(): void }

type Entry = Deadline & { dueMs: number; isOpen: boolean; expire: (() => void) | undefined }

export type Deadlines = {
  /** Calls `expire` once, `timeoutMs` from now, unless it is cancelled before. */
  add(expire: () => void): Deadline
  stop(): void
}

export function createDeadlines({
  timeoutMs,
  tickMs = 25,
}: {
  timeoutMs: number
  tickMs?: number
}): Deadlines {
  let queue: Entry[] = []
  let head = 0
  let timer: NodeJS.Timeout | undefined

  function tick(): void {
    const nowMs = performance.now()
    for (let entry = queue[head]; entry !== undefined; entry = queue[head]) {
      if (entry.isOpen && entry.dueMs > nowMs) break
      head++
      if (!entry.isOpen) continue
      entry.isOpen = false
      entry.expire?.()
    }
    forgetPassed()
  }

  function forgetPassed(): void {
    if (head === queue.length) {
      queue = []
      head = 0
      clearInterval(timer)
      timer = undefined
    } else if (head > 1024) {
      queue = queue.slice(head)
      head = 0
    }
  }

  return {
    add(expire) {
      const entry: Entry = {
        dueMs: performance.now() + timeoutMs,
        isOpen: true,
        expire,
        cancel() {
          entry.isOpen = false
          entry.expire = undefined
        },
      }
      queue.push(entry)
      timer ??= setInterval(tick, tickMs)
      return entry
    },
    stop() {
      clearInterval(timer)
      timer = undefined
      queue = []
      head = 0
    },
  }
}
