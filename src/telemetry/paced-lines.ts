/**
 * The state of the log lines with one key: when the next line may be written, the newest line that waits, and
 * the number of other lines since the last written line.
 */
type Pace<L> = { dueMs: number; newest: L | undefined; others: number }

/**
 * Limits log lines, because an endpoint that is down would cause a line for each message. Similar lines have
 * the same key. The first line of a key is written at once. After that, at most one line of the key is
 * written every `everyMs`. It is the newest line, and `leftOut` is the number of lines that were left out
 * since the previous written line. So each line is either written, or is counted in a line that follows
 * within twice `everyMs`. A key without new lines is forgotten.
 */
export class PacedLines<L extends object> {
  readonly #write: (line: L & { leftOut?: number }) => void
  readonly #everyMs: number
  readonly #paces = new Map<string, Pace<L>>()
  #timer: NodeJS.Timeout | undefined

  constructor({ write, everyMs }: { write: (line: L & { leftOut?: number }) => void; everyMs: number }) {
    this.#write = write
    this.#everyMs = everyMs
  }

  add(key: string, line: L): void {
    const nowMs = performance.now()
    const pace = this.#paces.get(key) ?? { dueMs: nowMs, newest: undefined, others: 0 }
    this.#paces.set(key, pace)
    if (pace.newest !== undefined) pace.others++
    pace.newest = line
    if (nowMs >= pace.dueMs) this.#tell(pace, nowMs)
    this.#arm()
  }

  /** Writes the waiting lines. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const pace of this.#paces.values()) this.#tell(pace, performance.now())
    this.#paces.clear()
  }

  #tell(pace: Pace<L>, nowMs: number): void {
    const { newest, others } = pace
    if (newest === undefined) return
    pace.newest = undefined
    pace.others = 0
    pace.dueMs = nowMs + this.#everyMs
    this.#write(others === 0 ? newest : { ...newest, leftOut: others })
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => this.#turn(), this.#everyMs).unref()
  }

  #turn(): void {
    this.#timer = undefined
    const nowMs = performance.now()
    for (const [key, pace] of this.#paces) {
      if (nowMs < pace.dueMs) continue
      if (pace.newest === undefined) this.#paces.delete(key)
      else this.#tell(pace, nowMs)
    }
    if (this.#paces.size > 0) this.#arm()
  }
}
