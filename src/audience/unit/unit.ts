import type { HeldRecord, RecordContent } from '../../message/held-record.ts'
import type { Entry } from '../store/entry.ts'
import type { Change, Part } from '../records/change-record.ts'
import type { Checkpoint } from '../store/checkpoint.ts'
import type { PlacedDeletion } from '../records/deletion-request.ts'
import type { Judgement } from '../../message/judgement.ts'
import { Fifo } from '../../async/fifo.ts'
import type { TopicIntake } from './topic-intake.ts'
import { judgeProperty } from './judge-property.ts'
import type { KeyFilter } from '../store/key-filter.ts'
import { Ledger } from '../store/ledger.ts'
import type { AudiencePorts } from '../audience-ports.ts'
import { Purges } from './purges.ts'
import { Reading } from '../store/reading.ts'
import type { RepairNeeded } from './restore.ts'
import type { StateRecord } from '../records/state-record.ts'
import { readStates, type StatesPage, type StatesQuery } from '../store/states-page.ts'
import type { StateStore, StoreOperation } from '../store/store.ts'
import { deletionKeyOf, storeKeyOf } from '../store/store-keys.ts'
import { Syncs } from '../syncs/syncs.ts'
import { type ChangeItem, type PartItem, UnitChanges } from './unit-changes.ts'
import type { Purge, UnitContext } from './unit-context.ts'
import { UnitDeletions } from './unit-deletions.ts'
import { type StateItem, UnitStates } from './unit-states.ts'
import type { Version } from '../records/version.ts'
import type { PropertyHeader } from '../../message/record-headers.ts'

export type UnitOptions = {
  readonly unit: number
  readonly partitions: number
  readonly store: StateStore
  readonly checkpoint: Checkpoint
  readonly deletions: KeyFilter
  readonly meta: (position: number) => StoreOperation
  /** The result of `readSyncFloors`. From now on, the unit updates this map. */
  readonly syncFloors: Map<string, Version>
  /** The keys that must be written again, with the offsets at which they block the checkpoint. */
  readonly outOfOrder: ReadonlyMap<string, RepairNeeded>
  readonly ports: AudiencePorts
}

/**
 * An item that waits in the unit's inbox. A turn of the unit takes items of the inbox, in the order in which
 * they came. The turn also takes changes, which wait elsewhere (`UnitChanges`).
 */
type InboxItem =
  | StateItem
  | { readonly kind: 'purge'; readonly purge: Purge }
  | {
      readonly kind: 'read'
      readonly keys: readonly string[]
      readonly resolve: (entries: readonly (Entry | undefined)[]) => void
    }
  /**
   * A record of `memberships` that isn't a valid state. `AudienceIntake` has refused the record. The unit
   * only counts the record as read.
   */
  | { readonly kind: 'pass'; readonly record: Pick<HeldRecord, 'offset' | 'isAbandoned'> }
  | { readonly kind: 'put_in_order'; readonly key: string; readonly repair: RepairNeeded }

/** Limit on the inbox items of one turn, and also on the changes of one turn. */
const mostAtOnce = 1_000
const mostInFlight = 2_000
/**
 * Limit on the number of entries, written by other owners, that are kept in memory during a sync. When this
 * many entries are kept, the inbox of the unit waits for the end of the sync.
 */
const mostForeign = 10_000
const endWithinMs = 5_000

/**
 * Holds the state of one unit, and processes the unit's records turn by turn. A turn takes the waiting items,
 * reads from the store all keys that these items need, and then processes the items one by one. Callers only
 * add items to the queues.
 */
export class AudienceUnit {
  readonly #options: UnitOptions
  readonly #ledger: Ledger
  readonly #syncs: Syncs
  readonly #purges: Purges
  readonly #changes: UnitChanges
  readonly #states: UnitStates
  readonly #deletions: UnitDeletions
  readonly #inbox = new Fifo<InboxItem>()
  /** Purges that wait for the end of a sync, because it isn't known earlier which users the sync confirms. */
  #heldPurges: Purge[] = []
  /** A running task of the syncs. No change is processed meanwhile. */
  #syncing: Promise<void> | undefined
  #turning: Promise<void> | undefined
  #isEnding = false
  #isClosed = false

  constructor(options: UnitOptions) {
    this.#options = options
    const { unit, partitions, store, checkpoint, deletions, syncFloors, ports } = options
    const onTrouble = (error: unknown): void => this.#fail(error)
    this.#ledger = this.#openLedger(onTrouble)
    const ledger = this.#ledger
    this.#syncs = new Syncs({ unit, partitions, store, ledger, deletions, ports, onTrouble })
    const context: UnitContext = {
      unit,
      partitions,
      store,
      ledger,
      checkpoint,
      deletions,
      syncFloors,
      ports,
      isEnding: () => this.#isEnding,
      enqueuePurge: (purge) => this.#enqueue({ kind: 'purge', purge }),
      readAcknowledged: (keys) => this.#readAcknowledged(keys),
      fail: onTrouble,
    }
    this.#purges = new Purges(context)
    this.#changes = new UnitChanges(context)
    this.#states = new UnitStates(context, this.#purges)
    this.#deletions = new UnitDeletions(context, this.#purges)
    for (const [key, repair] of options.outOfOrder) this.#inbox.push({ kind: 'put_in_order', key, repair })
    this.#turn()
  }

  #openLedger(onTrouble: (error: unknown) => void): Ledger {
    const { unit, store, checkpoint, deletions, syncFloors, meta, ports } = this.#options
    return new Ledger({
      unit,
      store,
      checkpoint,
      deletions,
      syncFloors,
      meta,
      onTrouble,
      writeState: (record) => ports.writeState(record),
      // A deletion floor may have arrived during the write, and the written state may be older than this
      // floor.
      onSuspect: (stateKey) => {
        const deletionKey = deletionKeyOf(stateKey)
        const purge = { deletionKey, stateKeys: [stateKey], deadAt: -1, done: () => undefined }
        this.#enqueue({ kind: 'purge', purge })
      },
      onLanded: () => {
        if (this.#isReady) this.#turn()
      },
    })
  }

  get changeIntake(): TopicIntake {
    return this.#changes.intake
  }

  get deletionIntake(): TopicIntake {
    return this.#deletions.intake
  }

  acceptChange(record: HeldRecord, content: RecordContent, change: Change): void {
    this.#changes.accept(record, content, change)
    this.#turn()
  }

  acceptPart(record: HeldRecord, content: RecordContent, part: Part): void {
    this.#changes.acceptPart(record, content, part)
    this.#turn()
  }

  acceptState(record: HeldRecord, state: StateRecord, bytes: number): void {
    this.#enqueue(this.#states.accept(record, state, bytes))
  }

  /** Remembers the epoch of the leader that appended a record of `memberships`. */
  readEpoch(leaderEpoch: number | undefined): void {
    this.#options.checkpoint.readEpoch(leaderEpoch)
  }

  /** Counts a record of `memberships` as read, although it isn't a valid state. */
  passState(record: Pick<HeldRecord, 'offset' | 'isAbandoned'>): void {
    this.#enqueue({ kind: 'pass', record })
  }

  acceptDeletion(record: HeldRecord, request: PlacedDeletion, bytes: number): void {
    this.#deletions.accept(record, request, bytes)
  }

  /** Decides about an Identify that waited (`judgeProperty` in `judge-property.ts`). */
  async judgeProperty(judged: PropertyHeader, isUncertain: boolean): Promise<Judgement> {
    const { userId, spaceId, property } = judged
    const key = storeKeyOf({ kind: 'property', userId, spaceId, property })
    const [held, floor] = await this.#readAcknowledged([key, deletionKeyOf(judged)])
    return judgeProperty(judged, { held, floor, isUncertain })
  }

  /**
   * Returns true if a deletion covers the data that a source sent about a user at `atMs`, in epoch
   * milliseconds.
   */
  async isDeleted(userId: string, sourceId: string, atMs: number): Promise<boolean> {
    if (!this.mayBeDeleted(userId, sourceId)) return false
    const [floor] = await this.#readAcknowledged([storeKeyOf({ kind: 'deletion', userId, sourceId })])
    return floor?.kind === 'deletion' && atMs <= floor.state.requestedAtMs
  }

  /**
   * Reads a page of states. Resolves with `undefined` once this owner has begun to leave the unit. A caller
   * that reads all pages gets every state that was acknowledged before the call for the first page.
   */
  async statesOf(query: StatesQuery): Promise<StatesPage | undefined> {
    if (this.#isEnding) return undefined
    if (query.after === null) await this.#ledger.stored()
    return readStates(this.#options.store, query)
  }

  get hasDeletions(): boolean {
    return !this.#options.deletions.isEmpty
  }

  /** A number that grows with each deletion of a user. */
  get deletions(): number {
    return this.#options.deletions.added
  }

  mayBeDeleted(userId: string, spaceId: string): boolean {
    const { deletions } = this.#options
    return !deletions.isEmpty && deletions.mayHold(deletionKeyOf({ userId, spaceId }))
  }

  /** Refuses syncs that can't become complete in time any more. Call this method regularly. */
  tick(): void {
    if (this.#syncing !== undefined || !this.#syncs.hasOpen || this.#isEnding) return
    const { ports, unit } = this.#options
    const endSeenMs = this.#changes.length === 0 ? ports.endSeenMs(unit) : 0
    this.#holdChanges(this.#syncs.expire({ latestMs: this.#changes.latestMs, endSeenMs }))
  }

  /** Leaves to the new owner the items that now belong to another owner and have not been started yet. */
  letGoAbandoned(): void {
    this.#letGo(({ isAbandoned }) => isAbandoned)
  }

  /**
   * Stops the unit. No more items are started. Waits some seconds for the writes in flight, and then leaves
   * the remaining items to the next owner.
   */
  async close(): Promise<void> {
    this.#isEnding = true
    this.#letGo(() => true)
    this.#syncs.end()
    this.#ledger.letGoWaiting()
    const deadline = setTimeout(() => this.#ledger.letGo(), endWithinMs)
    try {
      await this.#turning
      await this.#syncing
      await this.#ledger.room(1)
    } finally {
      clearTimeout(deadline)
    }
    this.#ledger.letGo()
    this.#endPurges()
    await this.#states.purged()
    this.#deletions.letGoCurrent()
    await this.#ledger.close()
    this.#isClosed = true
    await this.#options.store.close()
  }

  /** Ends the purges that wait. The next owner starts these purges again. */
  #endPurges(): void {
    for (const { done } of this.#heldPurges.splice(0)) done()
    for (const item of this.#inbox.take(({ kind }) => kind === 'purge'))
      if (item.kind === 'purge') item.purge.done()
  }

  #letGo(isToGo: (record: HeldRecord) => boolean): void {
    this.#changes.letGo(isToGo)
    for (const item of this.#inbox.take((one) => one.kind === 'state' && isToGo(one.record)))
      if (item.kind === 'state') this.#states.giveBack(item)
    this.#deletions.letGo(isToGo)
    this.#syncs.letGo(isToGo)
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return
    const { ports, unit } = this.#options
    ports.fatal(new Error(`the state of unit ${unit} can't be kept`, { cause: error }))
  }

  #enqueue(item: InboxItem): void {
    this.#inbox.push(item)
    this.#turn()
  }

  #readAcknowledged(keys: readonly string[]): Promise<readonly (Entry | undefined)[]> {
    if (this.#isEnding) return Promise.resolve(keys.map(() => undefined))
    return new Promise((resolve) => this.#enqueue({ kind: 'read', keys, resolve }))
  }

  #turn(): void {
    this.#turning ??= this.#turns()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#turning = undefined
        if (this.#isReady) this.#turn()
      })
  }

  get #isReady(): boolean {
    return this.#isInboxOpen || this.#isChangesOpen
  }

  get #isInboxOpen(): boolean {
    return this.#inbox.length > 0 && this.#ledger.foreignCount < mostForeign
  }

  get #isChangesOpen(): boolean {
    return this.#changes.length > 0 && this.#syncing === undefined && this.#ledger.inFlight < mostInFlight
  }

  async #turns(): Promise<void> {
    // Waits for other items that arrive now, so that items that arrive together are processed together.
    await Promise.resolve()
    while (this.#isReady && !this.#isClosed) {
      const reading = new Reading(this.#ledger, this.#options.deletions)
      const inbox = this.#isInboxOpen ? this.#takeInbox(reading) : []
      const changes: readonly ChangeItem[] = this.#isChangesOpen
        ? this.#changes.take(reading, mostAtOnce)
        : []
      this.#ledger.beginReading()
      await reading.read(this.#options.store)
      for (const item of inbox) this.#decide(item, reading)
      for (const item of changes) this.#changes.decide(item, reading)
      this.#ledger.endReading()
      this.#takePart()
    }
  }

  #takeInbox(reading: Reading): readonly InboxItem[] {
    const taken: InboxItem[] = []
    for (let item = this.#inbox.shift(); item !== undefined; item = this.#inbox.shift()) {
      taken.push(item)
      this.#want(item, reading)
      if (taken.length === mostAtOnce) break
    }
    return taken
  }

  #want(item: InboxItem, reading: Reading): void {
    switch (item.kind) {
      case 'state':
        this.#states.want(item, reading)
        return
      case 'purge':
        this.#purges.want(item.purge, reading)
        return
      case 'read':
        for (const key of item.keys) reading.want(key)
        return
      case 'put_in_order':
        reading.want(item.key)
        return
      case 'pass':
    }
  }

  #decide(item: InboxItem, reading: Reading): void {
    switch (item.kind) {
      case 'state':
        this.#states.decide(item, reading)
        return
      case 'purge':
        if (this.#syncing !== undefined && !this.#isEnding) this.#heldPurges.push(item.purge)
        else this.#purges.carryOut(item.purge, reading)
        return
      case 'read':
        item.resolve(item.keys.map((key) => reading.acknowledged(key)))
        return
      case 'put_in_order':
        this.#states.putInOrder(item.key, item.repair, reading)
        return
      case 'pass':
        // The store's position must not pass a record that is left to the next owner.
        if (!item.record.isAbandoned && !this.#isEnding) this.#ledger.read(item.record.offset)
    }
  }

  #takePart(): void {
    if (this.#syncing !== undefined || this.#isEnding) return
    const item = this.#changes.takePart()
    if (item !== undefined) this.#holdChanges(this.#takeIn(item).finally(() => this.#changes.partDone(item)))
  }

  async #takeIn({ record, content, part }: PartItem): Promise<void> {
    await this.#syncs.expire({ latestMs: this.#changes.latestMs, endSeenMs: 0 })
    await this.#syncs.take(record, content, part)
  }

  /** Lets no change be processed until a task of the syncs is done. */
  #holdChanges(task: Promise<void>): void {
    this.#syncing = task
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#syncing = undefined
        for (const purge of this.#heldPurges.splice(0)) this.#inbox.push({ kind: 'purge', purge })
        this.#turn()
      })
  }
}
