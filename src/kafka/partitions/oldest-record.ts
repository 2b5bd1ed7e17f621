/**
 * An offset and a time in epoch milliseconds. The record at this offset was appended at this time or later.
 * So were all records after it.
 */
type Mark = { offset: number; appendedMs: number }

const stepMs = 1_000
/**
 * When `#marks` has this length, every second item is dropped. A record between two items gets the time of
 * the earlier item, so such a record counts as older than it is.
 */
const mostMarks = 256

/**
 * The append time of a partition's oldest record that isn't settled. The time may be wrong by about a second.
 * This error grows each time that `mostMarks` is reached. `mostMarks` limits the memory that this object
 * takes.
 */
export class OldestRecord {
  #marks: Mark[] = []
  /** The offset after the last record that `see` was called with. */
  #seenBelow = 0

  /**
   * Notes that a record was fetched. It may have been taken, or it may not be due yet. `position` is the
   * partition's watermark.
   */
  see(offset: number, appendedMs: number, position: number): void {
    if (offset < this.#seenBelow) return
    this.#seenBelow = offset + 1
    const last = this.#marks.at(-1)
    if (last !== undefined && appendedMs < last.appendedMs + stepMs) return
    this.#forgetBefore(position)
    if (this.#marks.length >= mostMarks) this.#marks = this.#marks.filter((_, index) => index % 2 === 0)
    this.#marks.push({ offset, appendedMs })
  }

  /**
   * Returns the append time of the oldest record that isn't settled, in epoch milliseconds. Returns 0 if
   * every record is settled, or if the time isn't known. `position` is the watermark, and `end` is the end of
   * the log. Records that this member hasn't fetched yet were appended after `endSeenMs`.
   */
  appendedMs(position: number, { end, endSeenMs }: { end: number; endSeenMs: number }): number {
    this.#forgetBefore(position)
    if (position < this.#seenBelow) return this.#marks[0]?.appendedMs ?? 0
    if (position >= end) return 0
    return Math.max(this.#marks.at(-1)?.appendedMs ?? 0, endSeenMs)
  }

  #forgetBefore(position: number): void {
    const next = this.#marks.findIndex(({ offset }) => offset > position)
    const first = (next === -1 ? this.#marks.length : next) - 1
    if (first > 0) this.#marks.splice(0, first)
  }
}
