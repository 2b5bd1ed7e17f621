import type { HeldRecord } from '../../message/held-record.ts'
import { type Entry, isDead, isReportedBefore, isUnreported, saysSame } from '../store/entry.ts'
import { identifyOf } from '../records/made-message.ts'
import { TopicIntake } from './topic-intake.ts'
import type { KeyWaiter } from '../store/flight.ts'
import type { Purges } from './purges.ts'
import { type Reading, sameAsRead, unread } from '../store/reading.ts'
import { type RepairNeeded, entryOf } from './restore.ts'
import type { DeletionStateKey, StateRecord } from '../records/state-record.ts'
import { deletionKeyOf, storeKeyOf, stateKeyOf } from '../store/store-keys.ts'
import type { UnitContext } from './unit-context.ts'
import {
  compareVersions,
  endOf,
  formatVersion,
  laterOf,
  type Version,
  type PropertyState,
  type PropertyStateKey,
} from '../records/version.ts'

/** A record of `memberships` that the consumer group has read. */
export type StateItem = {
  readonly kind: 'state'
  readonly record: HeldRecord
  readonly bytes: number
  readonly state: StateRecord
  readonly key: string
  /** The number by which `Reading.at` finds the text that the store has for the key. */
  place: number
}

type PropertyRecord = Extract<StateRecord, { isSilent: boolean }>

/** A waiter that does nothing. It is used for a write whose end nobody waits for. */
const nobody: KeyWaiter = { resume: () => undefined, giveBack: () => undefined }

/**
 * Processes the records of a unit's `memberships`, which this owner or another owner wrote, and sends the
 * states in them to receivers.
 */
export class UnitStates {
  readonly #context: UnitContext
  readonly #purges: Purges
  readonly #intake: TopicIntake
  /**
   * The purges under way that were started by deletion floors. The record of a floor is settled when its
   * purge ends.
   */
  readonly #purging = new Set<Promise<void>>()

  constructor(context: UnitContext, purges: Purges) {
    this.#context = context
    this.#purges = purges
    const { ports, unit } = context
    this.#intake = new TopicIntake((topic, isFull) => ports.setUnitFull(topic, unit, isFull))
  }

  /**
   * Counts a record in `intake`, which limits the waiting records of the topic. Returns the item for the
   * queue.
   */
  accept(record: HeldRecord, state: StateRecord, bytes: number): StateItem {
    this.#intake.add(record.topic, bytes)
    return { kind: 'state', record, bytes, state, key: storeKeyOf(state.stateKey), place: unread }
  }

  giveBack({ record, bytes }: StateItem): void {
    this.#intake.remove(bytes)
    record.giveBack()
  }

  /** Resolves once the purges that were started have ended. */
  async purged(): Promise<void> {
    await Promise.all(this.#purging)
  }

  /** Adds to `reading` the keys that `decide` needs. */
  want(item: StateItem, reading: Reading): void {
    if (this.#isTakenIn(item)) return
    if (this.#isOnly(item)) {
      item.place = sameAsRead
      return
    }
    item.place = reading.add(item.key)
    const { stateKey } = item.state
    if (stateKey.kind === 'property') reading.wantFloor(stateKey)
  }

  /**
   * Returns true if nothing has to be done for a record: no message has to be sent for the record
   * (`isSilent`), and this unit already knows the record. The unit knows a record that the restore has read,
   * or that the unit wrote itself and Kafka has acknowledged.
   */
  #isTakenIn({ record, state }: StateItem): boolean {
    const { checkpoint, deletions } = this.#context
    const isSilent = 'isSilent' in state && state.isSilent
    return isSilent && deletions.isEmpty && record.offset < checkpoint.position
  }

  /**
   * Returns true if this unit already knows the record, and the record's key has had no other record. Then
   * the key doesn't have to be read from the store.
   */
  #isOnly({ record, state, key }: StateItem): boolean {
    const { ledger, deletions } = this.#context
    const isEmitting = 'isSilent' in state && !state.isSilent
    return isEmitting && deletions.isEmpty && ledger.isOnly(key, record.offset)
  }

  decide(item: StateItem, reading: Reading): void {
    const { record, state: read, key, bytes } = item
    const { ledger, isEnding } = this.#context
    const { offset } = record
    this.#intake.remove(bytes)
    if (record.isAbandoned || isEnding()) {
      // `ledger.read` isn't called, so the store's position doesn't pass a record that is left to the next
      // owner.
      record.giveBack()
      return
    }
    if (item.place === unread) {
      record.settle()
      ledger.read(offset)
      return
    }
    const { stateKey } = read
    const deletedUpToMs = stateKey.kind === 'property' ? reading.deletedUpToMs(stateKey) : -Infinity
    const incoming = entryOf(read, offset, deletedUpToMs)
    const held = this.#heldOf(item, incoming, reading)
    if (stateKey.kind === 'property' && isDead(incoming, deletedUpToMs)) {
      if (held === undefined || isDead(held, deletedUpToMs)) {
        this.#erase(stateKey, key, record, read)
        ledger.read(offset)
        return
      }
    }
    this.#adopt(item, { incoming, held, deletedUpToMs })
  }

  #heldOf({ place, key }: StateItem, incoming: Entry, reading: Reading): Entry | undefined {
    const { ledger } = this.#context
    const isStillOnly = place === sameAsRead && !ledger.isKnown(key) && ledger.flightOf(key) === undefined
    return isStillOnly ? incoming : ledger.acknowledged(key, reading.at(place))
  }

  #adopt(
    { record, state: read, key }: StateItem,
    { incoming, held, deletedUpToMs }: { incoming: Entry; held: Entry | undefined; deletedUpToMs: number },
  ): void {
    const { ledger } = this.#context
    const { offset } = record
    const { best, isOutOfOrder, reportedBetween } = ledger.adopt(key, incoming, held)
    const deleted = isReportedBefore(best, deletedUpToMs) ? endOf(deletedUpToMs) : undefined
    const flight = ledger.flightOf(key)
    if (flight !== undefined && deleted !== undefined) ledger.mustReport(flight, deleted, offset)
    const unreported =
      flight === undefined ? laterUnreported(reportedBetween?.state.version, deleted) : flight.unreported
    // The record is settled only after the best entry has been written to `memberships` again.
    if (isOutOfOrder || unreported !== undefined) {
      const waiting: KeyWaiter = {
        resume: (now) => this.#end(record, read, now),
        giveBack: () => record.giveBack(),
      }
      const why = {
        olderAt: isOutOfOrder ? offset : -1,
        unreported,
        unreportedAt: reportedBetween?.offset ?? offset,
      }
      if (flight === undefined) ledger.writeAgain({ key, stateKey: read.stateKey, held: best }, why, waiting)
      else flight.wait(waiting)
      ledger.read(offset)
      return
    }
    ledger.read(offset)
    this.#end(record, read, best)
  }

  /**
   * Writes a key again if `restore` has found that this is necessary, and if it is still necessary. Call this
   * method once `reading` has read the key.
   */
  putInOrder(key: string, repair: RepairNeeded, reading: Reading): void {
    const { ledger } = this.#context
    const { olderAt, unreported, unreportedAt, blockedAt } = repair
    const held = reading.acknowledged(key)
    const stateKey = stateKeyOf(key)
    const flight = ledger.flightOf(key)
    if (flight !== undefined) {
      if (olderAt !== -1) ledger.olderThan(flight, olderAt)
      if (unreported !== undefined) ledger.mustReport(flight, unreported, unreportedAt)
    } else if (held !== undefined && stateKey !== undefined) {
      const needsRepair = held.offset < olderAt || isUnreported(held, unreported)
      if (needsRepair) ledger.writeAgain({ key, stateKey, held }, repair, nobody)
    }
    ledger.unblock(blockedAt)
  }

  /**
   * Erases a state of a deleted user. The state's record was read after the deletion. The state is neither
   * kept nor sent.
   */
  #erase(stateKey: PropertyStateKey, key: string, record: HeldRecord, read: StateRecord): void {
    const { ledger, enqueuePurge, isEnding } = this.#context
    const flight = ledger.flightOf(key)
    if (flight !== undefined) ledger.olderThan(flight, record.offset)
    enqueuePurge({
      deletionKey: deletionKeyOf(stateKey),
      stateKeys: [stateKey],
      deadAt: record.offset,
      done: () => (isEnding() ? record.giveBack() : this.#endErased(record, read)),
    })
  }

  /**
   * Settles the record of an erased state. A previous owner may have sent the state shortly before the
   * `delete`. In this case, the method passes the record to `deliver` as a superseded Identify instead. When
   * this Identify is due, another `delete` is sent in its place.
   */
  #endErased(record: HeldRecord, read: StateRecord): void {
    if ('isSilent' in read && !read.isSilent && record.mayHaveBegun === true) {
      this.#deliver(record, read, true)
      return
    }
    this.#context.ports.observer.notSent('suppressed')
    record.settle()
  }

  /**
   * Finishes a record: starts its purge, sends its state or settles it. `now` is the present entry of the
   * record's key, which may be newer than the record.
   */
  #end(record: HeldRecord, read: StateRecord, now: Entry | undefined): void {
    if (read.stateKey.kind === 'deletion' && read.state !== null) {
      const purging = this.#purgeFor(record, read.stateKey).finally(() => this.#purging.delete(purging))
      this.#purging.add(purging)
      return
    }
    if (!('isSilent' in read) || read.isSilent) {
      record.settle()
      return
    }
    const isSuperseded = now?.kind !== 'property' || supersedes(now.state, read.state)
    if (isSuperseded && record.mayHaveBegun !== true) {
      this.#context.ports.observer.notSent('superseded')
      record.settle()
      return
    }
    this.#deliver(record, read, isSuperseded)
  }

  #deliver(record: HeldRecord, { stateKey, state }: PropertyRecord, isSuperseded: boolean): void {
    const { userId, spaceId, property } = stateKey
    const since = formatVersion(state.since)
    this.#context.ports.deliver(record, {
      kind: 'identify',
      userId,
      spaceId,
      property,
      since,
      ...identifyOf(stateKey, state),
      isSuperseded,
    })
  }

  async #purgeFor(record: HeldRecord, { userId, sourceId }: DeletionStateKey): Promise<void> {
    try {
      const isDone = await this.#purges.purgeUser(userId, sourceId)
      if (isDone) record.settle()
      else record.giveBack()
    } catch (error) {
      this.#context.fail(error)
    }
  }
}

/** Returns true if a state must not be sent any more, because the present state `now` replaces it. */
function supersedes(now: PropertyState, state: PropertyState): boolean {
  if (compareVersions(now.since, state.since) > 0) return true
  return compareVersions(now.version, state.version) > 0 && !saysSame(now, state)
}

function laterUnreported(a: Version | undefined, b: Version | undefined): Version | undefined {
  return a === undefined || b === undefined ? (a ?? b) : laterOf(a, b)
}
