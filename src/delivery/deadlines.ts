/**
 * Deadlines that all have the same length, for the price of a list append each: the first to be added is
 * the first due, so one timer looks at the head only. Fires up to `tickMs` late, never early.
 */
export type Deadline = { cancel(): void }

/** Who is told that its time is up. */
export type Expiring = { expire(): void }

export type Deadlines = {
  /** Calls `owner.expire()` once, `timeoutMs` from now, unless it is cancelled before. */
  add(owner: Expiring): Deadline
  stop(): void
}

class Entry implements Deadline {
  readonly dueMs: number
  /** Nobody once it was cancelled or has fired. */
  owner: Expiring | undefined

  constructor(dueMs: number, owner: Expiring) {
    this.dueMs = dueMs
    this.owner = owner
  }

  cancel(): void {
    this.owner = undefined
  }
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
      const { owner } = entry
      if (owner !== undefined && entry.dueMs > nowMs) break
      head++
      entry.owner = undefined
      owner?.expire()
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
    add(owner) {
      const entry = new Entry(performance.now() + timeoutMs, owner)
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
