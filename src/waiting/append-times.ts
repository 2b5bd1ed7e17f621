/** Two times that lie closer together than this, in milliseconds, count as one. */
const firstStepMs = 1_000
/** When there are more times than this, the step doubles, and the times between are forgotten. */
const most = 2_048
/** The most single records that are known. */
const mostSingle = 65_536
/** When there are more records before the known part than this, every second is forgotten. */
const mostEarlier = 512

/**
 * When the records of a log were appended, to the second at first, and more roughly the longer the log. It
 * knows a part of the log without gaps, up to the end of the log, and single records before that part.
 */
export class AppendTimes {
  /** The known part: from `#offsets[i]` on, records were appended at `#times[i]` or later. */
  #offsets: number[] = []
  #times: number[] = []
  #stepMs = firstStepMs
  /** The offset after the last record of the known part, and the time at which that record was appended. */
  #end = -1
  #endMs = 0
  /** When some records before the known part were appended, in the order of their offsets. */
  #earlier: Appended[] = []
  readonly #single = new Map<number, number>()
  /** The offsets of records of which somebody asked when they were appended, and it isn't known. */
  readonly #unknown = new Set<number>()

  /** Adds a record of the end of the log. If records before it are unknown, the known part begins here. */
  add(offset: number, atMs: number): void {
    if (offset !== this.#end) {
      this.#offsets = []
      this.#times = []
    }
    this.#end = offset + 1
    this.#endMs = atMs
    if (isAhead(this.#times.at(-1))) this.#correct(offset, atMs)
    const last = this.#times.at(-1)
    if (last !== undefined && atMs - last < this.#stepMs) return
    this.#offsets.push(offset)
    this.#times.push(atMs)
    if (this.#offsets.length > most) this.#thin()
  }

  /** Forgets times that lie ahead, because a clock did. No record was appended later than one behind it. */
  #correct(offset: number, atMs: number): void {
    let from = offset
    while (isAhead(this.#times.at(-1))) {
      this.#times.pop()
      from = this.#offsets.pop() ?? from
    }
    this.#offsets.push(from)
    this.#times.push(Math.max(atMs, this.#times.at(-1) ?? atMs))
  }

  /** Passes over offsets at the end of the log that have no record to deliver. */
  skip(count: number): void {
    if (this.#end >= 0) this.#end += count
  }

  #addSingle(offset: number, atMs: number): void {
    if (this.#single.size >= mostSingle) this.#single.clear()
    this.#single.set(offset, atMs)
  }

  /** Returns when a record was appended, in epoch milliseconds. `undefined`: not known. */
  at(offset: number): number | undefined {
    const place = this.#placeOf(offset)
    return offset < this.#end && place >= 0 ? this.#times[place] : this.#single.get(offset)
  }

  /**
   * Returns about when a record was appended, in epoch milliseconds, to compare it with records of other
   * logs. 0: it isn't known at all, or a clock was ahead. The times between two known ones rise evenly.
   */
  about(offset: number): number {
    const atMs = this.#aboutKnown(offset)
    return isAhead(atMs) ? 0 : atMs
  }

  #aboutKnown(offset: number): number {
    const place = this.#placeOf(offset)
    if (place < 0) return this.#aboutEarlier(offset)
    const next = {
      offset: this.#offsets[place + 1] ?? this.#end,
      atMs: this.#times[place + 1] ?? this.#endMs,
    }
    return between({ offset: this.#offsets[place] ?? 0, atMs: this.#times[place] ?? 0 }, next, offset)
  }

  #aboutEarlier(offset: number): number {
    const after = this.#earlier.findIndex((one) => one.offset > offset)
    const before = this.#earlier.at(after < 0 ? -1 : after - 1)
    if (before === undefined || after === 0) return 0
    const [first = Infinity] = this.#offsets
    const known = { offset: first, atMs: this.#times[0] ?? before.atMs }
    return between(before, this.#earlier[after] ?? known, offset)
  }

  /** Notes when a record was appended, for `about`. */
  note(record: { readonly offset: number; readonly timestampMs: number } | undefined): void {
    if (record === undefined || this.#placeOf(record.offset) >= 0) return
    const { offset, timestampMs: atMs } = record
    const after = this.#earlier.findIndex((one) => one.offset >= offset)
    if (after < 0) this.#earlier.push({ offset, atMs })
    else if (this.#earlier[after]?.offset !== offset) this.#earlier.splice(after, 0, { offset, atMs })
    if (this.#earlier.length > mostEarlier)
      this.#earlier = this.#earlier.filter((_, index) => index % 2 === 0)
  }

  /** Returns the place of the last of `#offsets` that isn't behind `offset`; -1 if there is none. */
  #placeOf(offset: number): number {
    let [low, high] = [0, this.#offsets.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#offsets[middle] ?? 0) <= offset) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  /** Returns the same as `at`, and remembers the record if the time isn't known. */
  ask(offset: number): number | undefined {
    const atMs = this.at(offset)
    if (atMs === undefined) this.#unknown.add(offset)
    return atMs
  }

  /** The offset of a record of which somebody asked in vain. */
  get unknown(): number | undefined {
    const [offset] = this.#unknown
    return offset
  }

  /** Learns from a part of the log that was read from the offset `from` on. */
  learn(from: number, records: Iterable<{ readonly offset: number; readonly timestampMs: number }>): void {
    this.#unknown.delete(from)
    for (const { offset, timestampMs } of records)
      if (offset === from || this.#unknown.delete(offset)) this.#addSingle(offset, timestampMs)
  }

  /** Forgets what is needed only for records before `offset`. */
  dropBefore(offset: number): void {
    let passed = 0
    while (passed + 1 < this.#offsets.length && (this.#offsets[passed + 1] ?? 0) <= offset) passed++
    if (passed > 0) {
      this.#offsets.splice(0, passed)
      this.#times.splice(0, passed)
    }
    while ((this.#earlier[1]?.offset ?? Infinity) <= offset) this.#earlier.shift()
    for (const single of this.#single.keys()) if (single < offset) this.#single.delete(single)
    for (const unknown of this.#unknown) if (unknown < offset) this.#unknown.delete(unknown)
  }

  #thin(): void {
    while (this.#offsets.length > most / 2) {
      this.#stepMs *= 2
      let lastMs = -Infinity
      const kept = this.#times.map((atMs) => {
        const isKept = atMs - lastMs >= this.#stepMs
        if (isKept) lastMs = atMs
        return isKept
      })
      this.#offsets = this.#offsets.filter((_, index) => kept[index])
      this.#times = this.#times.filter((_, index) => kept[index])
    }
  }
}

type Appended = { readonly offset: number; readonly atMs: number }

/** Returns true for a time in the future. It says nothing of the age of a record. */
function isAhead(atMs: number | undefined): boolean {
  return atMs !== undefined && atMs > Date.now() + firstStepMs
}

function between(before: Appended, after: Appended, offset: number): number {
  if (after.offset <= before.offset || after.offset === Infinity) return before.atMs
  const part = (offset - before.offset) / (after.offset - before.offset)
  return before.atMs + part * (after.atMs - before.atMs)
}
