import type { HeldRecord } from '../message/held-record.ts'
import { PendingRecord, type PendingRecordListener } from './delivery.ts'

export type AccountOptions = {
  /**
   * The limits on records and bytes that are held at once. Past either, `onPressure(true)` asks for no more.
   */
  readonly buffer: { readonly records: number; readonly bytes: number }
  /** The limits on records that wait only for failing hooks. */
  readonly detached: { readonly records: number; readonly bytes: number }
  readonly onPressure: (isFull: boolean) => void
}

type Holding = { records: number; bytes: number }

/**
 * Counts the records that a pipeline holds and the work that it has under way. Asks for no more records while
 * it holds too many.
 */
export class Account {
  readonly #options: AccountOptions
  readonly #inside: Holding = { records: 0, bytes: 0 }
  /** The records that wait only for failing hooks. They take no room of the buffer. */
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
  /** The number of attempts, judgements and produces that have not ended. */
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

  /**
   * The number of records that still fit into the buffer. If the buffer is fuller by bytes than by records,
   * the bytes count.
   */
  get freeRecords(): number {
    const { records, bytes } = this.#options.buffer
    const free = Math.min(1 - this.#inside.records / records, 1 - this.#inside.bytes / bytes)
    return Math.floor(free * records)
  }

  /** Holds a record until this number of its deliveries have ended. */
  hold(record: HeldRecord, deliveries: number, bytes: number): PendingRecord {
    this.#inside.records++
    this.#inside.bytes += bytes
    this.#reportPressure()
    return new PendingRecord(record, deliveries, bytes, this.#listener)
  }

  /**
   * Returns true if a record may leave the buffer because it waits only for failing hooks. Also true for a
   * record that has left already.
   */
  mayDetach(pending: PendingRecord): boolean {
    const most = this.#options.detached
    const { records, bytes } = this.#detached
    if (pending.isDetached) return true
    return records < most.records && (records === 0 || bytes + pending.bytes <= most.bytes)
  }

  /** Asks for no records while `isStalled` is true, however few are held. */
  setStalled(isStalled: boolean): void {
    this.#isStalled = isStalled
    this.#reportPressure()
  }

  /** Notes that some work has started. Call `end` when the work has ended. */
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

  /** Keeps a record from being settled before a promise resolves. The promise must not reject. */
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
   * Reports when the buffer becomes full, and when half of it is free again. Between the two nothing changes,
   * so that not every record switches fetching on or off.
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
