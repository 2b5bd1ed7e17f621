export type Deadline = { cancel(): void }

/** The owner of a deadline; `expire` is called when the time is up. */
export type Expiring = { expire(): void }

/**
 * A list of deadlines that all have the same timeout. A new deadline costs little, because it is appended to
 * the list. The deadline that was added first is due first. So one timer serves the whole list, and looks
 * only at its beginning. A deadline fires up to `tickMs` late, never early.
 */
export type Deadlines = {
  /** Calls `owner.expire()` once, `timeoutMs` from now, unless the deadline is cancelled earlier. */
  add(owner: Expiring): Deadline
  stop(): void
}

/**
 * A deadline in the queue of deadlines. A cancelled deadline is removed from the queue at once. Otherwise
 * thousands of cancelled deadlines could collect behind the deadline of a slow request, and burden the
 * garbage collector.
 */
class Entry implements Deadline {
  readonly dueMs: number
  readonly #queue: Queue
  /** `undefined` once the deadline has been cancelled or has fired. */
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

  /** Removes a deadline, which must be in the queue. */
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
    if (queue.first !== undefined && queue.first.dueMs > nowMs) return
    // After the process was suspended, Node runs the timers before it reads the sockets. This immediate lets
    // Node read the answers that have come in the meantime, which cancel their deadlines.
    setImmediate(() => expireUntil(nowMs))
  }

  function expireUntil(nowMs: number): void {
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

/** A list of deadlines for each timeout, because a list has only one. */
export class DeadlinesByTimeout {
  readonly #longestMs: number
  readonly #lists = new Map<number, Deadlines>()

  /** `longestMs`: the timeout of those that have none of their own, and the longest of all. */
  constructor(longestMs: number) {
    this.#longestMs = longestMs
  }

  of(timeoutMs: number | undefined): Deadlines {
    const ms = timeoutMs === undefined ? this.#longestMs : Math.min(timeoutMs, this.#longestMs)
    let list = this.#lists.get(ms)
    if (list === undefined) this.#lists.set(ms, (list = createDeadlines({ timeoutMs: ms })))
    return list
  }

  stop(): void {
    for (const list of this.#lists.values()) list.stop()
  }
}
