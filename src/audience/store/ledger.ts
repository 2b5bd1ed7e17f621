import type { Checkpoint } from './checkpoint.ts'
import {
  decodeEntry,
  type Entry,
  isUnreported,
  place,
  type Placing,
  type PropertyEntry,
  recordValueOf,
  reportedAnew,
} from './entry.ts'
import { Flight, type KeyWaiter, type Write } from './flight.ts'
import type { KeyFilter } from './key-filter.ts'
import { Overwritten } from './overwritten.ts'
import { encodeStateKey, type StateKey } from '../records/state-record.ts'
import type { StateStore, StoreOperation } from './store.ts'
import { deletionKeyOf, storeKeyOf } from './store-keys.ts'
import { UnstoredEntries } from './unstored-entries.ts'
import { laterOf, type Version, type PropertyStateKey } from '../records/version.ts'

export type LedgerOptions = {
  readonly unit: number
  readonly store: StateStore
  readonly checkpoint: Checkpoint
  readonly deletions: KeyFilter
  /**
   * The version of each audience's last applied sync, by the key of the audience's sync floor in the store.
   * `Ledger` updates this map.
   */
  readonly syncFloors: Map<string, Version>
  readonly writeState: (record: {
    partition: number
    key: Buffer
    value: Buffer | null
  }) => Promise<number | 'refused'>
  readonly meta: (position: number) => StoreOperation
  readonly onTrouble: (error: unknown) => void
  /** Called when a state was written for a user who may have been deleted during the write. */
  readonly onSuspect: (stateKey: PropertyStateKey) => void
  /** Called when a write has ended, so that there may be room for another write. */
  readonly onLanded: () => void
}

/**
 * Holds the entries that a unit's store on disk doesn't have yet: acknowledged entries that aren't stored
 * yet, and writes in flight. A value is valid once Kafka has acknowledged its record or the unit has read the
 * record. After that, the value is stored. After each write to the store, the store is complete up to one
 * offset of `memberships`.
 */
export class Ledger {
  readonly #options: LedgerOptions
  readonly #flights = new Map<string, Flight>()
  #isOver = false
  readonly #unstored: UnstoredEntries
  readonly #overwritten: Overwritten
  readonly #waiters: { readonly below: number; readonly resolve: () => void }[] = []

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#unstored = new UnstoredEntries(options)
    this.#overwritten = new Overwritten(options.checkpoint.known)
  }

  /** The number of writes that Kafka hasn't acknowledged yet. */
  get inFlight(): number {
    return this.#flights.size
  }

  get hasForeign(): boolean {
    return this.#unstored.foreignCount > 0
  }

  get foreignCount(): number {
    return this.#unstored.foreignCount
  }

  flightOf(key: string): Flight | undefined {
    return this.#flights.size === 0 ? undefined : this.#flights.get(key)
  }

  /** Returns true if an entry of the key is in memory, because the store may lack it. */
  isKnown(key: string): boolean {
    return this.#unstored.get(key) !== undefined
  }

  /**
   * Returns the last acknowledged entry of a key. Returns `undefined` if there is no entry or only a
   * tombstone. `stored` is the text that was last read from the store for the key.
   */
  held(key: string, stored: string | undefined): Entry | undefined {
    const known = this.#unstored.get(key)
    if (known !== undefined) return known.kind === 'gone' ? undefined : known
    return stored === undefined ? undefined : decodeEntry(stored)
  }

  /**
   * Returns the key's last acknowledged entry, even while a newer write of the key is in flight. `stored` is
   * the text that was last read from the store for the key.
   */
  acknowledged(key: string, stored: string | undefined): Entry | undefined {
    const flight = this.flightOf(key)
    const entry = flight === undefined ? this.held(key, stored) : flight.held
    return entry?.kind === 'gone' ? undefined : entry
  }

  /** Returns true if the unit knows the record at `offset`, and the key certainly has no other record. */
  isOnly(key: string, offset: number): boolean {
    return offset < this.#options.checkpoint.position && !this.#overwritten.mayHold(key, offset)
  }

  /**
   * Marks the start of a read of the store. Entries that are stored from now on also stay in memory until
   * `endReading` is called, because the read may miss them.
   */
  beginReading(): void {
    this.#unstored.beginReading()
  }

  endReading(): void {
    this.#unstored.endReading()
  }

  /**
   * Marks the start of a sync, which reads a snapshot of the store. Entries that other owners write are kept
   * in memory until `endSync` is called.
   */
  beginSync(): void {
    this.#unstored.beginSync()
  }

  endSync(): void {
    this.#unstored.endSync()
  }

  /** Writes a record to `memberships`. Don't call this while another write of its key is in flight. */
  launch(write: Write): void {
    this.#takeOff(new Flight(write))
  }

  /**
   * Processes a record of `memberships` that the group has read. Call this method in the order of the
   * offsets. `held` is the present entry of the key.
   */
  adopt(key: string, incoming: Entry, held: Entry | undefined): Placing {
    const placing = place(incoming, held)
    this.#overwritten.keep(key, incoming.offset, held === undefined || held.offset === incoming.offset)
    if (!placing.isKnown) {
      this.#unstored.keep(key, placing.best)
      this.#unstored.keepForeign(key, placing.best)
    }
    const flight = this.#flights.get(key)
    if (flight !== undefined) {
      flight.held = placing.best
      if (placing.isOutOfOrder) this.olderThan(flight, incoming.offset)
      if (placing.reportedBetween !== undefined) this.#tellAfter(flight, placing.reportedBetween)
    }
    return placing
  }

  /**
   * Remembers that the record at `offset` is older than the record that `flight` writes. The write may have
   * to be repeated, so that its record comes after the older record.
   */
  olderThan(flight: Flight, offset: number): void {
    flight.olderAt = Math.max(flight.olderAt, offset)
    this.#block(flight, offset)
  }

  /**
   * Remembers that receivers may have another value than the present one, with a version up to `upTo`. The
   * record at `offset` shows this. Until the present value has been sent again, the checkpoint stays before
   * this record, so that a restart reads the record again.
   */
  mustReport(flight: Flight, upTo: Version, offset: number): void {
    flight.unreported = flight.unreported === undefined ? upTo : laterOf(flight.unreported, upTo)
    this.#block(flight, offset)
  }

  /**
   * Lets the checkpoint pass an offset that `restore` blocked. Call this method when the key needs no rewrite
   * any more, or when a write in flight blocks the offset too.
   */
  unblock(offset: number): void {
    this.#options.checkpoint.unblock(offset)
  }

  #tellAfter(flight: Flight, { state, offset }: PropertyEntry): void {
    this.mustReport(flight, state.version, offset)
  }

  #block(flight: Flight, offset: number): void {
    this.#options.checkpoint.block(offset)
    if (flight.blocked === undefined) flight.blocked = [offset]
    else flight.blocked.push(offset)
  }

  /** Remembers that the record at the offset has been processed. */
  read(offset: number): void {
    this.#options.checkpoint.read(offset)
    this.#unstored.storeWhereFarBehind()
  }

  /**
   * Writes the entry of a key again. This is necessary in two cases. An older record may come after the
   * entry's record, so that compaction would keep the older record. Or receivers may have got another value
   * in the meantime. Don't call this method while a write of the key is in flight.
   */
  writeAgain(
    { key, stateKey, held }: { key: string; stateKey: StateKey; held: Entry },
    why: RewriteReason,
    waiting: KeyWaiter,
  ): void {
    const { olderAt, unreported, unreportedAt } = why
    const flight = new Flight({ stateKey, key, ...again(held, unreported), held, onEnd: () => undefined })
    flight.wait(waiting)
    flight.isRepair = true
    if (olderAt !== -1) this.olderThan(flight, olderAt)
    if (unreported !== undefined) this.mustReport(flight, unreported, unreportedAt)
    this.#takeOff(flight)
  }

  syncedAt(spaceId: string, audienceId: string): Version | undefined {
    const { syncFloors } = this.#options
    return syncFloors.size === 0
      ? undefined
      : syncFloors.get(storeKeyOf({ kind: 'sync', spaceId, audienceId }))
  }

  /** Resolves once fewer than `below` writes are in flight. */
  async room(below: number): Promise<void> {
    if (this.#flights.size < below) return
    await new Promise<void>((resolve) => {
      this.#waiters.push({ below, resolve })
    })
  }

  /** Resolves once all entries that are acknowledged now are stored. Rejects if the store has failed. */
  async stored(): Promise<void> {
    await this.#unstored.stored()
  }

  /**
   * Leaves the writes in flight to the unit's next owner, and ignores their results. The next owner processes
   * their records.
   */
  letGo(): void {
    this.#isOver = true
    const flights = [...this.#flights.values()]
    this.#flights.clear()
    for (const { write, waiting } of flights) {
      write.onEnd('given_back')
      for (const one of waiting ?? []) one.giveBack()
    }
    this.#wake()
  }

  /** Leaves to the unit's next owner all changes and records that wait for a free key. */
  letGoWaiting(): void {
    for (const flight of this.#flights.values()) {
      const { waiting } = flight
      flight.waiting = undefined
      for (const one of waiting ?? []) one.giveBack()
    }
  }

  /** Stores the position, and the entries that aren't stored yet. Writes nothing if the store has failed. */
  async close(): Promise<void> {
    await this.#unstored.close()
  }

  #takeOff(flight: Flight): void {
    const { write } = flight
    if (this.#isOver) {
      write.onEnd('given_back')
      for (const one of flight.waiting ?? []) one.giveBack()
      return
    }
    this.#flights.set(write.key, flight)
    const { unit, writeState, onTrouble } = this.#options
    const record = {
      partition: unit,
      key: encodeStateKey(write.stateKey),
      value: recordValueOf(write.entry, write.isEmitting),
    }
    writeState(record).then(
      (written) => {
        try {
          this.#landed(flight, written)
        } catch (error) {
          onTrouble(error)
        }
      },
      (error: unknown) => onTrouble(error),
    )
  }

  #landed(flight: Flight, written: number | 'refused'): void {
    const { write } = flight
    const { key } = write
    if (this.#flights.get(key) !== flight) return
    this.#flights.delete(key)
    if (written === 'refused') {
      write.onEnd('refused')
      const { held, olderAt, unreported, isRepair } = flight
      const needsRepair = held !== undefined && (olderAt > held.offset || isUnreported(held, unreported))
      if (needsRepair && !isRepair) this.#putInOrder(flight, held, olderAt, () => undefined)
      else {
        this.#unblock(flight)
        this.#resume(flight, held)
      }
      return
    }
    this.#options.checkpoint.wrote(written)
    const placing = place({ ...write.entry, offset: written }, flight.held)
    const { best, isKnown, isOutOfOrder } = placing
    if (placing.reportedBetween !== undefined) this.#tellAfter(flight, placing.reportedBetween)
    this.#overwritten.keep(key, written, flight.held === undefined)
    if (!isKnown) this.#unstored.keep(key, best)
    this.#suspect(write)
    const olderAt = Math.max(flight.olderAt, isOutOfOrder ? Math.max(written, flight.held?.offset ?? -1) : -1)
    if (olderAt > best.offset || isUnreported(best, flight.unreported))
      this.#putInOrder(flight, best, olderAt, write.onEnd)
    else {
      this.#unblock(flight)
      write.onEnd('acknowledged')
      this.#resume(flight, best)
    }
  }

  /**
   * Writes the best entry again, before a change or record that waits for the key continues. This is
   * necessary if an older record has a higher offset, or if an older value was sent later.
   */
  #putInOrder(flight: Flight, best: Entry, olderAt: number, onEnd: Write['onEnd']): void {
    const { stateKey, key } = flight.write
    const next = new Flight({ stateKey, key, ...again(best, flight.unreported), held: best, onEnd })
    next.waiting = flight.waiting
    next.blocked = flight.blocked
    next.unreported = flight.unreported
    next.isRepair = true
    if (olderAt > best.offset) this.olderThan(next, olderAt)
    this.#takeOff(next)
  }

  #unblock({ blocked }: Flight): void {
    for (const offset of blocked ?? []) this.#options.checkpoint.unblock(offset)
  }

  #resume({ write, waiting }: Flight, best: Entry | undefined): void {
    const held = best?.kind === 'gone' ? undefined : best
    const line = waiting ?? []
    for (const [index, one] of line.entries()) {
      one.resume(held)
      const next = this.#flights.get(write.key)
      if (next === undefined) continue
      for (const behind of line.slice(index + 1)) next.wait(behind)
      break
    }
    this.#wake()
    this.#options.onLanded()
  }

  #wake(): void {
    for (let index = this.#waiters.length - 1; index >= 0; index--) {
      const waiter = this.#waiters[index]
      if (waiter === undefined || this.#flights.size >= waiter.below) continue
      this.#waiters.splice(index, 1)
      waiter.resolve()
    }
  }

  #suspect({ stateKey, entry }: Write): void {
    const { deletions, onSuspect } = this.#options
    if (deletions.isEmpty || stateKey.kind !== 'property' || entry.kind !== 'property') return
    if (deletions.mayHold(deletionKeyOf(stateKey))) onSuspect(stateKey)
  }
}

/** The reason why a key is written again. */
export type RewriteReason = {
  /**
   * The offset of an older record that comes after the best entry's record; -1 if there is no such record.
   */
  readonly olderAt: number
  /**
   * The version up to which receivers may have got another value. `unreportedAt` is the offset of the record
   * that shows this.
   */
  readonly unreported: Version | undefined
  readonly unreportedAt: number
}

function again(best: Entry, unreported: Version | undefined): Pick<Write, 'entry' | 'isEmitting'> {
  const isEmitting = isUnreported(best, unreported)
  return { entry: { ...(isEmitting ? reportedAnew(best) : best), offset: -1 }, isEmitting }
}
