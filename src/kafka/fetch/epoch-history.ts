const maxEntries = 64

type Entry = { readonly from: number; readonly leaderEpoch: number }

/** The leader epochs of the records that were read from one partition. Only the newest are kept. */
export class EpochHistory {
  /**
   * The epochs, ascending by offset. Each epoch applies from its `from` up to the `from` of the next epoch.
   */
  readonly #entries: Entry[] = []

  /**
   * Starts with the epoch of the last record before `offset`. `leaderEpoch` is -1 if this epoch isn't known.
   */
  constructor(offset: number, leaderEpoch: number) {
    if (leaderEpoch >= 0) this.#entries.push({ from: Math.min(0, offset), leaderEpoch })
  }

  /**
   * Notes the leader epoch of the records at the offset `from` and at all higher offsets. Forgets the epochs
   * that were noted for these offsets before.
   */
  add(from: number, leaderEpoch: number): void {
    const last = this.#entries.at(-1)
    if (last !== undefined && from >= last.from && last.leaderEpoch === leaderEpoch) return
    if (this.before(from + 1) === leaderEpoch) return
    this.#cutFrom(from)
    this.#entries.push({ from, leaderEpoch })
    if (this.#entries.length > maxEntries) this.#entries.shift()
  }

  /** Returns the epoch of the last record before `offset`, or -1 if this epoch isn't known. */
  before(offset: number): number {
    return this.#entries.findLast(({ from }) => from < offset)?.leaderEpoch ?? -1
  }

  /** Forgets the epochs that begin at this offset or at a higher offset. */
  #cutFrom(offset: number): void {
    while ((this.#entries.at(-1)?.from ?? -1) >= offset) this.#entries.pop()
  }
}
