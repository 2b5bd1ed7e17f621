import type { HeldRecord } from '../message/held-record.ts'
import { PendingRecord, type PendingRecordListener } from './delivery.ts'

export type BufferAccountOptions = {
  /**
   * The limits on the number of held records and on their bytes. When either limit is reached,
   * `onPressure(true)` is called, and fetching should stop.
   */
  readonly buffer: { readonly records: number; readonly bytes: number }
  /** The limits on detached records. A detached record waits only for failing hooks. */
  readonly detached: { readonly records: number; readonly bytes: number }
  readonly onPressure: (isFull: boolean) => void
}

type Holding = { records: number; bytes: number }

/**
 * The held records of one unit. `inside`: the records in the buffer. `pulled`: those of them that were pulled
 * from queues in Kafka. `detached`: the records that wait only for failing hooks, and no longer take room in
 * the buffer.
 */
type UnitHolding = { readonly inside: Holding; readonly pulled: Holding; readonly detached: Holding }

/**
 * Up to this fraction of a limit, records of stopped units don't count against the limit, because the other
 * units need the room. So all held records together stay within one and a half times the limit.
 */
const setAsideShare = 0.5
/**
 * Records that were pulled from queues take at most this fraction of the buffer. Thousands of destinations
 * may have queues, and each of them wants a record at hand. The rest of the buffer is for new messages.
 */
const pulledShare = 0.5
/**
 * When nothing of this is free, they may take this part of it more, so that each destination with an empty
 * lane gets a record. It is the same while records are pulled that turn out to be large.
 */
export const pulledOver = 1 / 4

/**
 * Counts the records that a pipeline holds, and the operations that are under way in the pipeline. While too
 * many records are held, tells the caller to stop fetching.
 */
export class BufferAccount {
  readonly #options: BufferAccountOptions
  readonly #inside = nothing()
  /** The records in the buffer that were pulled from queues in Kafka. */
  readonly #pulled = nothing()
  /** The records that wait only for failing hooks. They take no room of the buffer. */
  readonly #detached = nothing()
  readonly #units: UnitHolding[] = []
  /** `#stopped`: the stopped units. `#aside`: the records that all stopped units hold together. */
  readonly #stopped = new Set<number>()
  readonly #aside: UnitHolding = emptyUnit()
  /**
   * The number of records that only wait until a note about them is written. A note is a mark in `backfills`.
   * The content of these records isn't held any more.
   */
  #onlyNoted = 0
  readonly #listener: PendingRecordListener = {
    ended: (pending) => {
      if (pending.takesRoom) this.#giveBack(pending, pending.isDetached ? 'detached' : 'inside')
      else this.#onlyNoted--
    },
    detached: (pending) => {
      this.#count(pending, 'detached', 1)
      this.#giveBack(pending, 'inside')
    },
    onlyNoted: (pending) => {
      if (this.#onlyNoted >= this.#options.buffer.records) return false
      this.#onlyNoted++
      this.#giveBack(pending, pending.isDetached ? 'detached' : 'inside')
      return true
    },
  }
  #isFull = false
  #isStalled = false
  /** The number of attempts, judgements and produces that have not ended. */
  #underWay = 0
  #onIdle: (() => void) | undefined

  constructor(options: BufferAccountOptions) {
    this.#options = options
  }

  get held(): { readonly records: number; readonly bytes: number } {
    const inside = this.#inside
    const detached = this.#detached
    const records = inside.records + detached.records + this.#onlyNoted
    return { records, bytes: inside.bytes + detached.bytes }
  }

  /**
   * The number of records that still fit into the buffer. It is computed from the number of held records or
   * from their bytes, whichever is closer to its limit.
   */
  get freeRecords(): number {
    return Math.floor((1 - this.#fill) * this.#options.buffer.records)
  }

  /** The most records that pulled records may take in the buffer, if they are of average size. */
  get maxPulled(): number {
    return this.#options.buffer.records * pulledShare
  }

  /** The number of records that may still be pulled. It is never more than what fits into the buffer. */
  get freePulled(): number {
    const { buffer } = this.#options
    const { records, bytes } = this.#countedPulled
    const fill = Math.max(records / buffer.records, bytes / buffer.bytes) / pulledShare
    return Math.min(Math.floor((1 - fill) * this.maxPulled), this.freeRecords)
  }

  /** The number of bytes that pulled records may still take. */
  get freePulledBytes(): number {
    return this.#options.buffer.bytes * pulledShare - this.#countedPulled.bytes
  }

  /** False once pulled records take more room than they may by the part `pulledOver`. */
  get mayPull(): boolean {
    return this.freePulled > -pulledOver * this.maxPulled
  }

  /** True while the buffer has been filled, and not half of the room for new messages is free again. */
  get isFull(): boolean {
    return this.#isFull && !this.#isStalled
  }

  /**
   * Holds a record until all of its deliveries have ended. `deliveries`: the number of its deliveries.
   * `isPulled`: it comes from a queue in Kafka.
   */
  hold(record: HeldRecord, deliveries: number, bytes: number, isPulled = false): PendingRecord {
    const pending = new PendingRecord(record, { deliveries, bytes, isPulled }, this.#listener)
    this.#count(pending, 'inside', 1)
    this.#reportPressure()
    return pending
  }

  /**
   * Returns true if a record may leave the buffer when it waits only for failing hooks. Also returns true if
   * the record has already left the buffer.
   */
  mayDetach(pending: PendingRecord): boolean {
    if (pending.isDetached) return true
    const most = this.#options.detached
    const records = counted(this.#detached.records, this.#aside.detached.records, most.records)
    const bytes = counted(this.#detached.bytes, this.#aside.detached.bytes, most.bytes)
    return records < most.records && (records === 0 || bytes + pending.bytes <= most.bytes)
  }

  /**
   * Counts bytes that a request holds beside those of its records, until it is called with the negative
   * number.
   */
  holdBytes(bytes: number): void {
    add(this.#inside, 0, bytes)
    this.#reportPressure()
  }

  /** Makes the fetching stop while `isStalled` is true, even if only few records are held. */
  setStalled(isStalled: boolean): void {
    this.#isStalled = isStalled
    this.#reportPressure()
  }

  /** Stops a unit or resumes it. The records of a stopped unit don't keep other units from being fetched. */
  setUnitStopped(unit: number, isStopped: boolean): void {
    if (this.#stopped.has(unit) === isStopped) return
    if (isStopped) this.#stopped.add(unit)
    else this.#stopped.delete(unit)
    const sign = isStopped ? 1 : -1
    const { inside, pulled, detached } = this.#unitOf(unit)
    add(this.#aside.inside, sign * inside.records, sign * inside.bytes)
    add(this.#aside.pulled, sign * pulled.records, sign * pulled.bytes)
    add(this.#aside.detached, sign * detached.records, sign * detached.bytes)
    this.#reportPressure()
  }

  /** Counts an operation that starts. When the operation ends, call `end`. */
  begin(): void {
    this.#underWay++
  }

  end(): void {
    this.#underWay--
    if (this.#underWay === 0) this.#onIdle?.()
  }

  /** Resolves when no operation is under way. */
  async idle(): Promise<void> {
    if (this.#underWay === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Lets a record be settled only after a promise has resolved. The promise must not reject. */
  settleAfter(done: Promise<void>, pending: PendingRecord): void {
    pending.add()
    this.begin()
    void done.then(() => {
      pending.complete()
      this.end()
    })
  }

  /**
   * Lets a record be settled only after a note about the record has been written. A note is a mark in
   * `backfills`. If the record waits only for the note, its content isn't held any more. The promise must not
   * reject.
   */
  settleAfterNote(written: Promise<void>, pending: PendingRecord): void {
    pending.addNote()
    this.begin()
    void written.then(() => {
      pending.noteWritten()
      this.end()
    })
  }

  #unitOf(unit: number): UnitHolding {
    return (this.#units[unit] ??= emptyUnit())
  }

  #count(pending: PendingRecord, where: 'inside' | 'detached', sign: 1 | -1): void {
    const { partition } = pending.record
    const bytes = sign * pending.bytes
    const isPulled = pending.isPulled && where === 'inside'
    add(where === 'inside' ? this.#inside : this.#detached, sign, bytes)
    if (isPulled) add(this.#pulled, sign, bytes)
    const unit = this.#unitOf(partition)
    add(unit[where], sign, bytes)
    if (isPulled) add(unit.pulled, sign, bytes)
    if (!this.#stopped.has(partition)) return
    add(this.#aside[where], sign, bytes)
    if (isPulled) add(this.#aside.pulled, sign, bytes)
  }

  #giveBack(pending: PendingRecord, where: 'inside' | 'detached'): void {
    this.#count(pending, where, -1)
    this.#reportPressure()
  }

  /** How full the buffer is: 0 if it is empty, 1 if it is full. The value may be above 1. */
  get #fill(): number {
    const { buffer } = this.#options
    const records = counted(this.#inside.records, this.#aside.inside.records, buffer.records)
    const bytes = counted(this.#inside.bytes, this.#aside.inside.bytes, buffer.bytes)
    return Math.max(records / buffer.records, bytes / buffer.bytes)
  }

  /** What was pulled, as far as it counts. See `counted`. */
  get #countedPulled(): Holding {
    const { buffer } = this.#options
    const { pulled } = this.#aside
    return {
      records: counted(this.#pulled.records, pulled.records, buffer.records),
      bytes: counted(this.#pulled.bytes, pulled.bytes, buffer.bytes),
    }
  }

  /**
   * Returns true if new messages, as those that aren't pulled are called here, leave half of their room free.
   * What was pulled has to be left out: while queues last, it is always there.
   */
  #isHalfFree(): boolean {
    const { buffer } = this.#options
    const { records, bytes } = this.#countedPulled
    return (
      counted(this.#inside.records, this.#aside.inside.records, buffer.records) <=
        halfFree(buffer.records, records) &&
      counted(this.#inside.bytes, this.#aside.inside.bytes, buffer.bytes) <= halfFree(buffer.bytes, bytes)
    )
  }

  /**
   * Reports when the buffer becomes full, and when half of the room for new messages is free again. It
   * reports nothing in between, because single records would otherwise switch the fetching on and off.
   */
  #reportPressure(): void {
    const isFull = this.#isStalled || this.#fill >= 1 || (this.#isFull && !this.#isHalfFree())
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    this.#options.onPressure(isFull)
  }
}

/** Returns how much may be held at most while half of the room for new messages is free. */
function halfFree(limit: number, pulled: number): number {
  return pulled + Math.max(limit * (1 - pulledShare), limit - pulled) / 2
}

function emptyUnit(): UnitHolding {
  return { inside: nothing(), pulled: nothing(), detached: nothing() }
}

function nothing(): Holding {
  return { records: 0, bytes: 0 }
}

function add(to: Holding, records: number, bytes: number): void {
  to.records += records
  to.bytes += bytes
}

/**
 * Returns the part of `held` that counts against a limit. `aside` is the part of `held` that belongs to
 * stopped units. Of `aside`, only the amount above `limit * setAsideShare` counts.
 */
function counted(held: number, aside: number, limit: number): number {
  return held - Math.min(aside, limit * setAsideShare)
}
