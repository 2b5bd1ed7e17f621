const maxEntries = 64

type Entry = { readonly from: number; readonly leaderEpoch: number }

/**
 * Of which leader's epoch the records of a partition are, as far as they were read. The oldest are forgotten.
 */
export class EpochHistory {
  /** Ascending; each holds up to the next one. */
  readonly #entries: Entry[] = []

  /** What was read before `offset` ends with this epoch; -1 where that isn't known. */
  constructor(offset: number, leaderEpoch: number) {
    if (leaderEpoch >= 0) this.#entries.push({ from: Math.min(0, offset), leaderEpoch })
  }

  /** Records from this offset on are of that epoch. What was said of them before is over. */
  add(from: number, leaderEpoch: number): void {
    const last = this.#entries.at(-1)
    if (last !== undefined && from >= last.from && last.leaderEpoch === leaderEpoch) return
    if (this.before(from + 1) === leaderEpoch) return
    this.#cutFrom(from)
    this.#entries.push({ from, leaderEpoch })
    if (this.#entries.length > maxEntries) this.#entries.shift()
  }

  /** Of the last record before `offset`; -1 where it isn't known. */
  before(offset: number): number {
    return this.#entries.findLast(({ from }) => from < offset)?.leaderEpoch ?? -1
  }

  /** Forgets what is said of this offset and those behind it. */
  #cutFrom(offset: number): void {
    while ((this.#entries.at(-1)?.from ?? -1) >= offset) this.#entries.pop()
  }
}
