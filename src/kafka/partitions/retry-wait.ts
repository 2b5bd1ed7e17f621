/**
 * The time between two looks at the head (the first waiting record) of a busy retry topic, in milliseconds.
 * Each look costs a fetch, and most of the records that it brings aren't due yet.
 */
const headPeriodMs = 500

/**
 * The wait for the head (the first waiting record) of one partition of a retry topic. A record is due when
 * the wait of its topic has passed since its append (`Partition.dueMsOf`). All records of a topic wait
 * equally long, so they are due in the order of the log, and only the wait for the head matters.
 */
export class RetryWait {
  #dueMs = 0
  #lookAtMs = 0
  #timer: NodeJS.Timeout | undefined

  /**
   * The time when the head (the first waiting record) is due, in epoch milliseconds. 0 while no record waits.
   */
  get dueMs(): number {
    return this.#dueMs
  }

  /** The time of the next look at the head (the first waiting record), in epoch milliseconds. */
  get lookAtMs(): number {
    return this.#lookAtMs
  }

  /**
   * Waits until the time of the next look at a head that is due at `dueMs`, and then calls `onLook`. The time
   * of the look is `dueMs` or later.
   *
   * @param turn the moment of this partition's looks within each period of `headPeriodMs`, as a fraction from
   * 0 to 1
   */
  begin({ dueMs, turn }: { readonly dueMs: number; readonly turn: number }, onLook: () => void): void {
    this.#dueMs = dueMs
    this.#lookAtMs = lookAtMs(turn, dueMs)
    this.#timer = setTimeout(() => {
      this.#dueMs = 0
      onLook()
    }, this.#lookAtMs - Date.now())
  }

  close(): void {
    clearTimeout(this.#timer)
  }
}

/**
 * Returns when to look again at the head of a partition, its first waiting record, in epoch milliseconds. If
 * the head is due in half a second or later, returns the time at which the head is due. Otherwise returns a
 * time that isn't before `dueMs`, and at least a quarter of a second from now. `turn` gives each partition a
 * moment of its own in each period. This matters because all partitions of a busy retry topic have due
 * records all the time. If one fetch looked at the heads of all partitions, all other work would wait until
 * the records of this fetch are processed.
 */
function lookAtMs(turn: number, dueMs: number): number {
  const nowMs = Date.now()
  if (dueMs - nowMs >= headPeriodMs) return dueMs
  const turnMs = turn * headPeriodMs
  const soonestMs = Math.max(dueMs, nowMs + headPeriodMs / 2)
  return Math.ceil((soonestMs - turnMs) / headPeriodMs) * headPeriodMs + turnMs
}
