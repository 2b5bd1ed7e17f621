import type { HeldRecord } from '../message/held-record.ts'
import { PendingRecord, type PendingRecordListener } from './delivery.ts'

export type AccountOptions = {
  /** Records and bytes that may be held at once; past either, `onPressure(true)` asks for no more. */
  readonly buffer: { readonly records: number; readonly bytes: number }
  /** The same of records that wait only for failing hooks. */
  readonly detached: { readonly records: number; readonly bytes: number }
  readonly onPressure: (isFull: boolean) => void
}

type Holding = { records: number; bytes: number }

/**
 * Counts what a pipeline holds and what it has under way, and asks for no more records while that is too
 * much.
 */
export class Account {
  readonly #options: AccountOptions
  readonly #inside: Holding = { records: 0, bytes: 0 }
  /** Records that wait only for failing hooks. They take no room of the buffer. */
  readonly #detached: Holding = { records: 0, bytes: 0 }
  readonly #listener: PendingRecordListener = {
    ended: ({ bytes, isDetached }) => this.#giveBack(isDetached ? this.#detached : this.#inside, bytes),
    detached: ({ bytes }) => {
      this.#detached.records++
      this.#detached.bytes += bytes
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
    const detached = this.#detached
    return { records: inside.records + detached.records, bytes: inside.bytes + detached.bytes }
  }

  /** How many more records fit, in records or what that many bytes are worth. */
  get freeRecords(): number {
    const { records, bytes } = this.#options.buffer
    const free = Math.min(1 - this.#inside.records / records, 1 - this.#inside.bytes / bytes)
    return Math.floor(free * records)
  }

  /** Holds a record until that many deliveries of it have come to their ends. */
  hold(record: HeldRecord, deliveries: number, bytes: number): PendingRecord {
    this.#inside.records++
    this.#inside.bytes += bytes
    this.#reportPressure()
    return new PendingRecord(record, deliveries, bytes, this.#listener)
  }

  /**
   * Whether a record may leave the buffer, since it waits only for failing hooks. One that has left may go
   * on.
   */
  mayDetach(pending: PendingRecord): boolean {
    const most = this.#options.detached
    const { records, bytes } = this.#detached
    if (pending.isDetached) return true
    return records < most.records && (records === 0 || bytes + pending.bytes <= most.bytes)
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
  settleAfter(done: Promise<void>, pending: PendingRecord): void {
    pending.add()
    this.begin()
    void done.then(() => {
      pending.complete()
      this.end()
    })
  }

  #giveBack(holding: Holding, bytes: number): void {
    holding.records--
    holding.bytes -= bytes
    this.#reportPressure()
  }

  /**
   * Full at the limit, and not full again before half of it: fetching isn't switched on and off by each
   * record.
   */
  #reportPressure(): void {
    const { buffer, onPressure } = this.#options
    const fill = Math.max(this.#inside.records / buffer.records, this.#inside.bytes / buffer.bytes)
    const isFull = this.#isStalled || fill >= 1 || (this.#isFull && fill > 0.5)
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    onPressure(isFull)
  }
}
