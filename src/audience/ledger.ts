import {
  type Entry,
  decodeEntry,
  encodeEntry,
  isUnreported,
  place,
  type Placing,
  type PropertyEntry,
  recordValueOf,
  reportedAnew,
} from './entry.ts'
import type { Checkpoint } from './checkpoint.ts'
import type { KeyFilter } from './key-filter.ts'
import { Overwritten } from './overwritten.ts'
import type { PropertySubject } from './property-state.ts'
import { encodeSubject, type Subject } from './state-record.ts'
import type { StateStore, StoreOperation } from './store.ts'
import { deletionKeyOf, knownPropertyKey, parted, subjectKey, subjectOf } from './store-keys.ts'
import { laterOf, type Version } from './version.ts'

/** How a write came to its end. `given_back`: the unit is left, and nobody knows. */
export type WriteEnd = 'acknowledged' | 'refused' | 'given_back'

/** Something that waits for a key to be free. */
export type Waiting = {
  /** The key is free: `held` is what it has. May write it again; what waits behind waits on then. */
  resume(held: Entry | undefined): void
  giveBack(): void
}

export type Write = {
  readonly subject: Subject
  readonly key: string
  /** Its offset is not known yet. */
  readonly entry: Entry
  readonly isEmitting: boolean
  /** What the key has so far. */
  readonly held: Entry | undefined
  readonly onEnd: (end: WriteEnd) => void
}

/** One write that isn't acknowledged; there is one at a time for a key. */
export class Flight {
  readonly write: Write
  /** What is acknowledged of the key. */
  held: Entry | undefined
  /** The highest offset at which something older than the best was read meanwhile; -1: none. */
  olderAt = -1
  /** Something else may have been told up to this version: what has landed in the end has to be newer, or be told anew. */
  unreported: Version | undefined
  /** It brings nothing new, and only puts the log in order. */
  isRepair = false
  waiting: Waiting[] | undefined
  /** Offsets that the checkpoint waits at until the key is in order. */
  blocked: number[] | undefined

  constructor(write: Write) {
    this.write = write
    this.held = write.held
  }

  wait(waiting: Waiting): void {
    if (this.waiting === undefined) this.waiting = [waiting]
    else this.waiting.push(waiting)
  }
}

export type LedgerOptions = {
  readonly unit: number
  readonly store: StateStore
  readonly checkpoint: Checkpoint
  readonly deletions: KeyFilter
  /** The version of the last applied sync, by its key in the store. Kept up to date here. */
  readonly syncFloors: Map<string, Version>
  readonly writeState: (record: {
    partition: number
    key: Buffer
    value: Buffer | null
  }) => Promise<number | 'refused'>
  readonly meta: (position: number) => StoreOperation
  readonly onTrouble: (error: unknown) => void
  /** A state was written of a user of whom something was deleted, perhaps in between. */
  readonly onSuspect: (subject: PropertySubject) => void
  /** A write has come to its end: there may be room for more. */
  readonly onLanded: () => void
}

/**
 * What a unit knows beyond its store: what is acknowledged and not stored yet, and what is not acknowledged. Kafka comes first:
 * a value is held only once it is acknowledged or read there, and the store follows, always up to one point of the log.
 */
export class Ledger {
  readonly #options: LedgerOptions
  readonly #flights = new Map<string, Flight>()
  /** Acknowledged, to be stored next. */
  #fresh = new Map<string, Entry>()
  /** Being stored. */
  #storing = new Map<string, Entry>()
  /** Stored while a read of the store was under way that may not have seen it. */
  readonly #lingering = new Map<string, Entry>()
  /** What others wrote while a sync walks through the store as it was before; `undefined` while none does. */
  #foreign: Map<string, Entry> | undefined
  #isReading = false
  #isOver = false
  #storingTask: Promise<void> | undefined
  #storedPosition: number
  /** A write to the store has failed: it lacks something, and may not say that it has what comes behind. */
  #isBroken = false
  readonly #knownProperties = new Set<string>()
  readonly #overwritten: Overwritten
  readonly #waiters: { readonly below: number; readonly resolve: () => void }[] = []

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#storedPosition = options.checkpoint.position
    this.#overwritten = new Overwritten(options.checkpoint.known)
  }

  /** Writes that aren't acknowledged. */
  get inFlight(): number {
    return this.#flights.size
  }

  get hasForeign(): boolean {
    return this.#foreign !== undefined && this.#foreign.size > 0
  }

  get foreignCount(): number {
    return this.#foreign?.size ?? 0
  }

  flightOf(key: string): Flight | undefined {
    return this.#flights.size === 0 ? undefined : this.#flights.get(key)
  }

  /** Whether anything is known of a key beyond what the store has. */
  isKnown(key: string): boolean {
    return this.#isAhead && this.#knownOf(key) !== undefined
  }

  /** What is acknowledged of a key. `stored` is what the store had when it was last read. */
  held(key: string, stored: string | undefined): Entry | undefined {
    const known = this.#knownOf(key)
    if (known !== undefined) return known.kind === 'gone' ? undefined : known
    return stored === undefined ? undefined : decodeEntry(stored)
  }

  /** What Kafka has of a key, whatever is in flight. `stored` is what the store had when it was last read. */
  acknowledged(key: string, stored: string | undefined): Entry | undefined {
    const flight = this.flightOf(key)
    const entry = flight === undefined ? this.held(key, stored) : flight.held
    return entry?.kind === 'gone' ? undefined : entry
  }

  /** Whether anything is known beyond what the store has: mostly not, where nothing changes. */
  get #isAhead(): boolean {
    return this.#fresh.size + this.#storing.size + this.#lingering.size + this.foreignCount > 0
  }

  #knownOf(key: string): Entry | undefined {
    return (
      this.#fresh.get(key) ?? this.#storing.get(key) ?? this.#lingering.get(key) ?? this.#foreign?.get(key)
    )
  }

  /** Whether a record that the group has read was written here, and is all that was ever kept of its key. */
  isOnly(key: string, offset: number): boolean {
    return offset < this.#options.checkpoint.position && !this.#overwritten.mayHold(key, offset)
  }

  /** The store is read from here to `endReading`: what is stored meanwhile is remembered. */
  beginReading(): void {
    this.#isReading = true
  }

  endReading(): void {
    this.#isReading = false
    this.#lingering.clear()
  }

  /** From here on a snapshot of the store is walked through: what others write is remembered. */
  beginSync(): void {
    this.#foreign = new Map()
  }

  endSync(): void {
    this.#foreign = undefined
  }

  /** Writes a record; the key must be free. */
  launch(write: Write): void {
    this.#takeOff(new Flight(write))
  }

  /** A record of the log was read, by the group and so in order. `held` is what the key has so far. */
  adopt(key: string, incoming: Entry, held: Entry | undefined): Placing {
    const placing = place(incoming, held)
    this.#overwritten.keep(key, incoming.offset, held === undefined || held.offset === incoming.offset)
    if (!placing.isKnown) {
      this.#keep(key, placing.best)
      this.#foreign?.set(key, placing.best)
    }
    const flight = this.#flights.get(key)
    if (flight !== undefined) {
      flight.held = placing.best
      if (placing.isOutOfOrder) this.olderThan(flight, incoming.offset)
      if (placing.reportedBetween !== undefined) this.#tellAfter(flight, placing.reportedBetween)
    }
    return placing
  }

  /** Something older than what is in flight was read at an offset: what is in flight may have to be written again. */
  olderThan(flight: Flight, offset: number): void {
    flight.olderAt = Math.max(flight.olderAt, offset)
    this.#block(flight, offset)
  }

  /** Something else may have been told up to a version, as the record at `offset` shows: it is read again until that is put right. */
  mustReport(flight: Flight, upTo: Version, offset: number): void {
    flight.unreported = flight.unreported === undefined ? upTo : laterOf(flight.unreported, upTo)
    this.#block(flight, offset)
  }

  #tellAfter(flight: Flight, { state, offset }: PropertyEntry): void {
    this.mustReport(flight, state.version, offset)
  }

  #block(flight: Flight, offset: number): void {
    this.#options.checkpoint.block(offset)
    if (flight.blocked === undefined) flight.blocked = [offset]
    else flight.blocked.push(offset)
  }

  /** The record was adopted. */
  read(offset: number): void {
    this.#options.checkpoint.read(offset)
    // A store that nothing is written to would start ever further back.
    if (this.#options.checkpoint.position - this.#storedPosition >= positionsUnstored) this.#storeSoon()
  }

  /**
   * Writes again what a key holds: something older stands behind it in the log, which compaction would keep, or something else may
   * have been told since. The key must be free.
   */
  writeAgain(key: string, subject: Subject, held: Entry, why: RewriteReason, waiting: Waiting): void {
    const { olderAt, unreported, unreportedAt } = why
    const flight = new Flight({ subject, key, ...again(held, unreported), held, onEnd: () => undefined })
    flight.wait(waiting)
    flight.isRepair = true
    if (olderAt !== -1) this.olderThan(flight, olderAt)
    if (unreported !== undefined) this.mustReport(flight, unreported, unreportedAt)
    this.#takeOff(flight)
  }

  /** The version of the last sync of an audience that was applied. */
  syncedAt(spaceId: string, audienceId: string): Version | undefined {
    const { syncFloors } = this.#options
    return syncFloors.size === 0
      ? undefined
      : syncFloors.get(subjectKey({ kind: 'sync', spaceId, audienceId }))
  }

  /** Resolves once fewer writes than that are in flight. */
  async room(below: number): Promise<void> {
    if (this.#flights.size < below) return
    await new Promise<void>((resolve) => {
      this.#waiters.push({ below, resolve })
    })
  }

  /** Resolves once all that is acknowledged so far is stored. Rejects where the store takes nothing any more. */
  async stored(): Promise<void> {
    await this.#allStored()
    if (this.#isBroken) throw new Error('a write to the store has failed before')
  }

  /** Nothing more is heard of writes that are still in flight: their records go to the next owner. */
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

  /** What waits for keys to be free goes to the next owner. */
  letGoWaiting(): void {
    for (const flight of this.#flights.values()) {
      const { waiting } = flight
      flight.waiting = undefined
      for (const one of waiting ?? []) one.giveBack()
    }
  }

  /** Stores what is left, and how far it is; nothing where the store has failed. */
  async close(): Promise<void> {
    await this.#allStored()
    if (this.#isBroken) return
    const { store, meta, checkpoint } = this.#options
    await store.write([meta(checkpoint.position)])
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
      key: encodeSubject(write.subject),
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
    if (!isKnown) this.#keep(key, best)
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

  /** Something older has landed behind it, or was told after it: the best is written again, before anything that waits. */
  #putInOrder(flight: Flight, best: Entry, olderAt: number, onEnd: Write['onEnd']): void {
    const { subject, key } = flight.write
    const next = new Flight({ subject, key, ...again(best, flight.unreported), held: best, onEnd })
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

  #suspect({ subject, entry }: Write): void {
    const { deletions, onSuspect } = this.#options
    if (deletions.isEmpty || subject.kind !== 'property' || entry.kind !== 'property') return
    if (deletions.mayHold(deletionKeyOf(subject))) onSuspect(subject)
  }

  #keep(key: string, entry: Entry): void {
    this.#fresh.set(key, entry)
    if (this.#foreign?.has(key) === true) this.#foreign.set(key, entry)
    if (entry.kind === 'deletion') this.#options.deletions.add(key)
    else if (entry.kind === 'sync') this.#options.syncFloors.set(key, entry.state.version)
    this.#storeSoon()
  }

  async #allStored(): Promise<void> {
    while (!this.#isBroken && (this.#storingTask !== undefined || this.#fresh.size > 0)) {
      this.#storeSoon()
      await this.#storingTask
    }
  }

  #storeSoon(): void {
    if (this.#isBroken) return
    this.#storingTask ??= this.#storeAll()
      .catch((error: unknown) => {
        this.#isBroken = true
        this.#options.onTrouble(error)
      })
      .finally(() => {
        this.#storingTask = undefined
      })
  }

  async #storeAll(): Promise<void> {
    const { store, checkpoint, meta } = this.#options
    do {
      // Acknowledgements come many at a time.
      await new Promise((resolve) => setImmediate(resolve))
      const entries = this.#fresh
      this.#storing = entries
      this.#fresh = new Map()
      // Read now: all that is below is in these entries, or was stored before.
      const { position } = checkpoint
      const operations: StoreOperation[] = []
      for (const [key, entry] of entries) this.#addTo(operations, key, entry)
      operations.push(meta(position))
      await store.write(operations)
      this.#storedPosition = position
      if (this.#isReading) for (const [key, entry] of entries) this.#lingering.set(key, entry)
      this.#storing = new Map()
    } while (this.#fresh.size > 0)
  }

  #addTo(operations: StoreOperation[], key: string, entry: Entry): void {
    const value = encodeEntry(entry)
    if (value === undefined) {
      operations.push({ type: 'del', key })
      return
    }
    operations.push({ type: 'put', key, value })
    if (entry.kind !== 'property') return
    const mark = key.slice(0, key.lastIndexOf(parted) + 1) + entry.state.id
    if (this.#knownProperties.has(mark)) return
    if (this.#knownProperties.size >= maxKnownProperties) this.#knownProperties.clear()
    this.#knownProperties.add(mark)
    operations.push({ type: 'put', key: knownKeyOf(key, entry.state.id), value: '' })
  }
}

/** Why a key is written again. */
export type RewriteReason = {
  /** Where something older stands behind what it holds; -1: nowhere. */
  readonly olderAt: number
  /** Up to which version something else may have been told, and the offset of the record that shows it. */
  readonly unreported: Version | undefined
  readonly unreportedAt: number
}

function again(best: Entry, unreported: Version | undefined): Pick<Write, 'entry' | 'isEmitting'> {
  const isEmitting = isUnreported(best, unreported)
  return { entry: { ...(isEmitting ? reportedAnew(best) : best), offset: -1 }, isEmitting }
}

const maxKnownProperties = 10_000
const positionsUnstored = 10_000

function knownKeyOf(key: string, id: string): string {
  const subject = subjectOf(key)
  if (subject?.kind !== 'property') throw new Error('a property is held under a key of something else')
  return knownPropertyKey(subject.spaceId, subject.property, id)
}
