import { type Creditor, Debt, type HeldRecord } from './delivery.ts'

export type AccountOptions = {
  /** Records and bytes that may be held at once; past either, `onPressure(true)` asks for no more. */
  readonly buffer: { readonly records: number; readonly bytes: number }
  /** The same of records that wait for nothing but hooks that aren't well. */
  readonly outside: { readonly records: number; readonly bytes: number }
  readonly onPressure: (isFull: boolean) => void
}

type Holding = { records: number; bytes: number }

/** Counts what a pipeline holds and what it has under way, and asks for no more records while that is too much. */
export class Account {
  readonly #options: AccountOptions
  readonly #inside: Holding = { records: 0, bytes: 0 }
  /** Records that wait for nothing but hooks that aren't well: the others' buffer is not theirs. */
  readonly #outside: Holding = { records: 0, bytes: 0 }
  readonly #creditor: Creditor = {
    paid: ({ bytes, isOut }) => this.#giveBack(isOut ? this.#outside : this.#inside, bytes),
    movedOut: ({ bytes }) => {
      this.#outside.records++
      this.#outside.bytes += bytes
      this.#giveBack(this.#inside, bytes)
    },
  }
  #isFull = false
  #isStalled = false
  /** Attempts, judgements and produces that have not come to their end. */
  #underWay = 0
  #onIdle: (() => void) | undefined

  constructor(options: AccountOptions) {
    this.#options = options
  }

  get held(): { readonly records: number; readonly bytes: number } {
    const inside = this.#inside
    const outside = this.#outside
    return { records: inside.records + outside.records, bytes: inside.bytes + outside.bytes }
  }

  /** How many more records fit, in records or what that many bytes are worth. */
  get freeRecords(): number {
    const { records, bytes } = this.#options.buffer
    const free = Math.min(1 - this.#inside.records / records, 1 - this.#inside.bytes / bytes)
    return Math.floor(free * records)
  }

  /** Holds a record until `owed` deliveries of it have come to their ends. */
  hold(record: HeldRecord, owed: number, bytes: number): Debt {
    this.#inside.records++
    this.#inside.bytes += bytes
    this.#reportPressure()
    return new Debt(record, owed, bytes, this.#creditor)
  }

  /** Whether the record of a debt may wait outside of the buffer; one that does already may go on. */
  hasRoomOutside(debt: Debt): boolean {
    const most = this.#options.outside
    const { records, bytes } = this.#outside
    return debt.isOut || (records < most.records && (records === 0 || bytes + debt.bytes <= most.bytes))
  }

  /** Asks for no records, whatever is held, as long as this holds. */
  setStalled(isStalled: boolean): void {
    this.#isStalled = isStalled
    this.#reportPressure()
  }

  /** Something was begun: tell its end by `end`. */
  begin(): void {
    this.#underWay++
  }

  end(): void {
    this.#underWay--
    if (this.#underWay === 0) this.#onIdle?.()
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    if (this.#underWay === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Doesn't let a record be settled before a promise resolves. It must not reject. */
  oweUntil(done: Promise<void>, debt: Debt): void {
    debt.owe()
    this.begin()
    void done.then(() => {
      debt.pay()
      this.end()
    })
  }

  #giveBack(holding: Holding, bytes: number): void {
    holding.records--
    holding.bytes -= bytes
    this.#reportPressure()
  }

  /** Full at the limit, and not full again before half of it: fetching isn't switched on and off by each record. */
  #reportPressure(): void {
    const { buffer, onPressure } = this.#options
    const fill = Math.max(this.#inside.records / buffer.records, this.#inside.bytes / buffer.bytes)
    const isFull = this.#isStalled || fill >= 1 || (this.#isFull && fill > 0.5)
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    onPressure(isFull)
  }
}
