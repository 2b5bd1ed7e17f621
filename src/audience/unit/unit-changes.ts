import type { HeldRecord, RecordContent } from '../../message/held-record.ts'
import { type Entry, compareStored } from '../store/entry.ts'
import type { Change, Part } from '../records/change-record.ts'
import { decideChange, type Known } from '../decide.ts'
import { Fifo } from '../../async/fifo.ts'
import { TopicIntake } from './topic-intake.ts'
import type { Flight, KeyWaiter, WriteEnd } from '../store/flight.ts'
import type { ChangeOutcome } from '../audience-ports.ts'
import { type Reading, unread } from '../store/reading.ts'
import { storeKeyOf } from '../store/store-keys.ts'
import type { UnitContext } from './unit-context.ts'
import { compareVersions } from '../records/version.ts'

export type ChangeItem = {
  readonly kind: 'change'
  readonly record: HeldRecord
  content: RecordContent | undefined
  readonly bytes: number
  readonly change: Change
  readonly key: string
  /** The number by which `Reading.at` finds the text that the store has for the key. */
  place: number
  deletedUpToMs: number
  syncedAt: Known['syncedAt']
}

export type PartItem = {
  readonly kind: 'part'
  readonly record: HeldRecord
  readonly content: RecordContent
  readonly bytes: number
  readonly part: Part
}

const noContent: RecordContent = { key: null, value: null }

/**
 * Holds the changes and the parts of syncs that wait in one unit, in the order of their offsets. Decides what
 * happens to each change.
 */
export class UnitChanges {
  readonly #context: UnitContext
  readonly intake: TopicIntake
  readonly #waiting = new Fifo<ChangeItem | PartItem>()
  /**
   * The append time of the last change or part that was processed, in epoch milliseconds. An earlier one may
   * have a later time, if the broker's clock was ahead for a while.
   */
  #latestMs = 0
  #lastSync = { spaceId: '', audienceId: '', key: '' }

  constructor(context: UnitContext) {
    this.#context = context
    const { ports, unit } = context
    this.intake = new TopicIntake((topic, isFull) => ports.setUnitFull(topic, unit, isFull))
  }

  get length(): number {
    return this.#waiting.length
  }

  get latestMs(): number {
    return this.#latestMs
  }

  accept(record: HeldRecord, content: RecordContent, change: Change): void {
    const bytes = content.value?.length ?? 0
    this.intake.add(record.topic, bytes)
    this.#waiting.push({
      kind: 'change',
      record,
      content,
      bytes,
      change,
      key: storeKeyOf(change.stateKey),
      place: unread,
      deletedUpToMs: -Infinity,
      syncedAt: undefined,
    })
  }

  acceptPart(record: HeldRecord, content: RecordContent, part: Part): void {
    const bytes = content.value?.length ?? 0
    this.intake.add(record.topic, bytes)
    this.#waiting.push({ kind: 'part', record, content, bytes, part })
  }

  /**
   * Leaves items to the next owner: all items that have not been started yet and whose record `isToGo`
   * selects.
   */
  letGo(isToGo: (record: HeldRecord) => boolean): void {
    for (const item of this.#waiting.take(({ record }) => isToGo(record))) this.#giveBack(item)
  }

  /**
   * Removes at most `most` changes from the queue and returns them. Stops before the next part of a sync,
   * which is taken by `takePart`. Adds to `reading` the keys that `decide` needs.
   */
  take(reading: Reading, most: number): ChangeItem[] {
    const taken: ChangeItem[] = []
    for (let item = this.#waiting.peek(); item?.kind === 'change'; item = this.#waiting.peek()) {
      this.#waiting.shift()
      taken.push(item)
      item.place = reading.add(item.key)
      reading.wantFloor(item.change.stateKey)
      if (taken.length === most) break
    }
    return taken
  }

  /**
   * Removes the next item from the queue if it is a part of a sync. Returns the part if this member still
   * owns the part's partition. Call `partDone` once the part has been processed.
   */
  takePart(): PartItem | undefined {
    const item = this.#waiting.peek()
    if (item?.kind !== 'part') return undefined
    this.#waiting.shift()
    this.#latestMs = item.record.timestampMs
    if (!item.record.isAbandoned) return item
    this.#giveBack(item)
    return undefined
  }

  partDone({ bytes }: PartItem): void {
    this.intake.remove(bytes)
  }

  decide(item: ChangeItem, reading: Reading): void {
    const { record, change, key } = item
    const { ledger, syncFloors } = this.#context
    this.#latestMs = record.timestampMs
    if (record.isAbandoned) {
      this.#giveBack(item)
      return
    }
    item.deletedUpToMs = reading.deletedUpToMs(change.stateKey)
    const flight = ledger.flightOf(key)
    const stored = reading.at(item.place)
    if (flight === undefined && item.deletedUpToMs === -Infinity) {
      const why = this.#whyLate(item, stored)
      if (why !== undefined) {
        this.#drop(item, why)
        return
      }
    }
    if (change.kind === 'audience') {
      item.syncedAt = syncFloors.get(this.#syncKeyOf(change.stateKey.spaceId, change.id))
    }
    if (flight === undefined) this.#apply(item, ledger.held(key, stored))
    else this.#await(flight, item)
  }

  /**
   * Returns the reason why a change comes too late, with the same result as `decideChange`. Returns
   * `undefined` if the change isn't late, or if the text in the store doesn't show that the change is late.
   * For most late changes, the text shows it.
   */
  #whyLate({ change, key }: ChangeItem, stored: string | undefined): 'repeated' | 'outdated' | undefined {
    const { ledger, isEnding } = this.#context
    if (stored === undefined || isEnding() || ledger.isKnown(key)) return undefined
    const order = compareStored(stored, change)
    if (order === undefined || order < 0) return undefined
    return order === 0 ? 'repeated' : 'outdated'
  }

  /**
   * Returns the key of an audience's sync floor. Keeps the last key, because consecutive changes mostly
   * belong to the same audience.
   */
  #syncKeyOf(spaceId: string, audienceId: string): string {
    if (this.#lastSync.audienceId !== audienceId || this.#lastSync.spaceId !== spaceId)
      this.#lastSync = { spaceId, audienceId, key: storeKeyOf({ kind: 'sync', spaceId, audienceId }) }
    return this.#lastSync.key
  }

  /**
   * Makes a change wait until no write of its key is in flight. If consecutive changes wait for the same key
   * and belong to the same audience or trait, only the newest of them is kept.
   */
  #await(flight: Flight, item: ChangeItem): void {
    const last = flight.waiting?.at(-1)
    if (last instanceof WaitingChange && last.isReplaceableBy(item)) {
      const order = compareVersions(item.change.version, last.item.change.version)
      const older = order > 0 ? last.item : item
      if (order > 0) last.item = item
      this.#drop(older, order === 0 ? 'repeated' : 'outdated')
      return
    }
    flight.wait(
      new WaitingChange(
        item,
        (waiting, held) => this.#apply(waiting, held),
        (waiting) => this.#giveBack(waiting),
      ),
    )
  }

  #apply(item: ChangeItem, entry: Entry | undefined): void {
    const { change, record, content, key, deletedUpToMs, syncedAt } = item
    const { ledger, ports, isEnding } = this.#context
    if (isEnding() || record.isAbandoned) {
      this.#giveBack(item)
      return
    }
    const held = entry?.kind === 'property' ? entry.state : undefined
    // For most users, the property belongs to the change's own audience.
    const ownerSyncedAt =
      held !== undefined && held.id !== change.id
        ? ledger.syncedAt(change.stateKey.spaceId, held.id)
        : undefined
    const decision = decideChange(change, { held, deletedUpToMs, syncedAt, ownerSyncedAt })
    switch (decision.kind) {
      case 'drop':
        this.#drop(item, decision.why)
        return
      case 'taken':
        this.intake.remove(item.bytes)
        ports.refuse(
          record,
          content ?? noContent,
          'bad_property_name',
          `Set another ${change.kind}Key: of this user the property is another audience’s or trait’s.`,
        )
        return
      case 'write':
        item.content = undefined
        ledger.launch({
          stateKey: change.stateKey,
          key,
          entry: { kind: 'property', state: decision.state, offset: -1 },
          isEmitting: decision.isEmitting,
          held: entry,
          onEnd: (end) => this.#written(item, end, decision.isEmitting ? 'changed' : 'confirmed'),
        })
    }
  }

  #written(item: ChangeItem, end: WriteEnd, outcome: ChangeOutcome): void {
    switch (end) {
      case 'acknowledged':
        this.#drop(item, outcome)
        return
      case 'refused':
        this.intake.remove(item.bytes)
        this.#context.ports.refuse(item.record, noContent, 'record_too_large', 'Send a smaller value.')
        return
      case 'given_back':
        this.#giveBack(item)
    }
  }

  /** Settles a change that is dropped or done. */
  #drop(item: ChangeItem, outcome: ChangeOutcome): void {
    this.intake.remove(item.bytes)
    item.record.settle()
    this.#context.ports.observer.changed(outcome, item.change.stateKey.spaceId)
  }

  #giveBack({ record, bytes }: ChangeItem | PartItem): void {
    this.intake.remove(bytes)
    record.giveBack()
  }
}

/** A change that waits until no write of its key is in flight. */
class WaitingChange implements KeyWaiter {
  item: ChangeItem
  readonly #apply: (item: ChangeItem, held: Entry | undefined) => void
  readonly #giveBack: (item: ChangeItem) => void

  constructor(
    item: ChangeItem,
    apply: (item: ChangeItem, held: Entry | undefined) => void,
    giveBack: (item: ChangeItem) => void,
  ) {
    this.item = item
    this.#apply = apply
    this.#giveBack = giveBack
  }

  isReplaceableBy({ change }: ChangeItem): boolean {
    return this.item.change.id === change.id && this.item.change.kind === change.kind
  }

  resume(held: Entry | undefined): void {
    this.#apply(this.item, held)
  }

  giveBack(): void {
    this.#giveBack(this.item)
  }
}
