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

/**
 * One that is cancelled leaves at once, and keeps nobody: behind a slow request wait those of all quick ones,
 * and what stayed in line until its time is up would be carried along by the garbage collector, thousands of
 * them at a time.
 */
class Entry implements Deadline {
  readonly dueMs: number
  readonly #queue: Queue
  /** Nobody once it was cancelled or has fired. */
  owner: Expiring | undefined
  before: Entry | undefined
  behind: Entry | undefined

  constructor(queue: Queue, dueMs: number, owner: Expiring) {
    this.#queue = queue
    this.dueMs = dueMs
    this.owner = owner
  }

  cancel(): void {
    if (this.owner !== undefined) this.#queue.remove(this)
  }
}

class Queue {
  first: Entry | undefined
  #last: Entry | undefined

  append(entry: Entry): void {
    entry.before = this.#last
    if (this.#last === undefined) this.first = entry
    else this.#last.behind = entry
    this.#last = entry
  }

  /** Of one that is in it. */
  remove(entry: Entry): void {
    const { before, behind } = entry
    if (before === undefined) this.first = behind
    else before.behind = behind
    if (behind === undefined) this.#last = before
    else behind.before = before
    entry.owner = undefined
    entry.before = undefined
    entry.behind = undefined
  }
}

export function createDeadlines({
  timeoutMs,
  tickMs = 25,
}: {
  timeoutMs: number
  tickMs?: number
}): Deadlines {
  let queue = new Queue()
  let timer: NodeJS.Timeout | undefined

  function tick(): void {
    const nowMs = performance.now()
    for (let { first } = queue; first !== undefined && first.dueMs <= nowMs; { first } = queue) {
      const { owner } = first
      queue.remove(first)
      owner?.expire()
    }
    if (queue.first === undefined) endTicks()
  }

  function endTicks(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    add(owner) {
      const entry = new Entry(queue, performance.now() + timeoutMs, owner)
      queue.append(entry)
      timer ??= setInterval(tick, tickMs)
      return entry
    },
    stop() {
      endTicks()
      queue = new Queue()
    },
  }
}
