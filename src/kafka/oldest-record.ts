/** From its offset on, records were appended at that time or later, in epoch milliseconds. */
type Mark = { offset: number; appendedMs: number }

const stepMs = 1_000
/** Beyond it every second mark goes: what is between counts as a bit older than it is. */
const mostMarks = 256

/**
 * When the oldest record of a partition that isn't settled was appended, to a second or so; in flat memory
 * however many are out.
 */
export class OldestRecord {
  #marks: Mark[] = []
  /** One past the last record that was seen. */
  #seenBelow = 0

  /** A record came, whether it is taken or not yet due. `position`: where the partition stands. */
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
   * In epoch milliseconds; 0 where nothing is out, or it isn't known. Records from `position` to `end` aren't
   * settled; those that haven't been seen came after `endSeenMs`.
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
