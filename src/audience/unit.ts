import { partitionOf } from '../message/partition.ts'
import { type Cell, compareStored, isUntold, type PropertyCell, saysSame, toldAnew } from './cell.ts'
import type { Change, Part } from './change.ts'
import type { Checkpoint } from './checkpoint.ts'
import { decideChange } from './decide.ts'
import type { DeletionRequest } from './deletion-request.ts'
import { Fifo } from './fifo.ts'
import { deleteOf, identifyOf } from './identify.ts'
import { Intake } from './intake.ts'
import type { KeyFilter } from './key-filter.ts'
import { Ledger, type Waiting, type WriteEnd } from './ledger.ts'
import type { AudiencePorts, ChangeOutcome, HeldRecord, RecordContent } from './ports.ts'
import { type Amiss, cellOf } from './restore.ts'
import type {
  DeletionFloor,
  DeletionSubject,
  PropertyState,
  PropertySubject,
  StateRecord,
} from './state-record.ts'
import { encodeDeletionFloor, encodeSubject } from './state-record.ts'
import { readStates, type StatesPage, type StatesQuery } from './states-page.ts'
import type { StateStore, StoreOperation } from './store.ts'
import {
  deletionKeyOf,
  knownPropertiesPrefix,
  knownPropertyOf,
  rangeOf,
  subjectKey,
  subjectOf,
} from './store-keys.ts'
import { Syncs } from './syncs.ts'
import { compareVersions, endOf, formatVersion, laterOf, parseVersion, type Version } from './version.ts'

export type UnitOptions = {
  readonly unit: number
  readonly partitions: number
  readonly store: StateStore
  readonly checkpoint: Checkpoint
  readonly deletions: KeyFilter
  readonly meta: (position: number) => StoreOperation
  /** As `readSyncFloors` gives it; kept up to date from here on. */
  readonly syncFloors: Map<string, Version>
  /** Keys that are not as they have to be, with the offsets that the checkpoint is blocked at. */
  readonly outOfOrder: ReadonlyMap<string, Amiss>
  readonly ports: AudiencePorts
}

/** What a waiting delivery of the unit is judged by. */
export type JudgedProperty = {
  readonly userId: string
  readonly spaceId: string
  readonly property: string
  readonly since: string
}

/** What to do with a delivery that waited. */
export type Judgement =
  | { kind: 'send' }
  | { kind: 'superseded' }
  | { kind: 'suppressed' }
  /** Send what holds now instead. */
  | { kind: 'send_current'; messageId: string; body: Buffer; since: string }

type ChangeItem = {
  readonly kind: 'change'
  readonly record: HeldRecord
  content: RecordContent | undefined
  readonly bytes: number
  readonly change: Change
  readonly key: string
  /** Where the turn finds what the store has of it. */
  at: number
  deletedUpToMs: number
  syncedAt: Known['syncedAt']
}
type Known = Parameters<typeof decideChange>[1]
type PartItem = {
  readonly kind: 'part'
  readonly record: HeldRecord
  readonly content: RecordContent
  readonly bytes: number
  readonly part: Part
}
type StateItem = {
  readonly kind: 'state'
  readonly record: HeldRecord
  readonly bytes: number
  readonly state: StateRecord
  readonly key: string
  /** Where the turn finds what the store has of it. */
  at: number
}
/** Buries what of a user is as old as the deletion floor, or older; what is newer is told anew where it wasn't since. */
type PurgeItem = {
  readonly kind: 'purge'
  readonly deletionKey: string
  readonly subjects: readonly PropertySubject[]
  /** Something to be buried was read there; -1: nothing was. */
  readonly deadAt: number
  readonly done: () => void
}
type ReadItem = {
  readonly kind: 'read'
  readonly keys: readonly string[]
  readonly resolve: (cells: readonly (Cell | undefined)[]) => void
}
/** Nothing of ours: it was read all the same. Its record is in other hands. */
type PassItem = { readonly kind: 'pass'; readonly record: Pick<HeldRecord, 'offset' | 'isAbandoned'> }
type PropertyRecord = Extract<StateRecord, { isQuiet: boolean }>
type AgainItem = { readonly kind: 'again'; readonly key: string; readonly amiss: Amiss }
type InboxItem = StateItem | PurgeItem | ReadItem | PassItem | AgainItem
type DeletionItem = {
  readonly record: HeldRecord
  readonly request: DeletionRequest
  readonly bytes: number
  /** Its record is settled, handed on or given back. */
  isOver: boolean
}

/** In one turn, of each kind. */
const mostAtOnce = 1_000
const mostInFlight = 2_000
/** What others wrote during a sync is kept in memory: past this the rest waits for its end. */
const mostForeign = 10_000
const writesAtOnce = 256
const endWithinMs = 5_000

/**
 * Holds the state of one unit, and decides what comes in. One turn after the other: what is waiting is taken, all that it
 * needs is read from the store at once, and then it is decided record by record. What is written meanwhile is in the ledger.
 */
export class AudienceUnit {
  readonly #options: UnitOptions
  readonly #ledger: Ledger
  readonly #syncs: Syncs
  readonly #changes = new Fifo<ChangeItem | PartItem>()
  readonly #inbox = new Fifo<InboxItem>()
  readonly #deletions = new Fifo<DeletionItem>()
  /** Wait for a sync: whom it has confirmed is known at its end. */
  #purges: PurgeItem[] = []
  /** On account of floors that were read: their records come to their ends with them. */
  readonly #purging = new Set<Promise<void>>()
  readonly changeIntake: Intake
  readonly #stateIntake: Intake
  readonly #deletionIntake: Intake
  /** A part is being taken: no change is decided. */
  #part: Promise<void> | undefined
  #turning: Promise<void> | undefined
  #deleting: DeletionItem | undefined
  /** When the last record of the changes that was decided was appended. */
  #latestMs = 0
  #lastSync = { spaceId: '', audienceId: '', key: '' }
  #isEnding = false
  #isClosed = false

  constructor(options: UnitOptions) {
    this.#options = options
    const { unit, store, checkpoint, deletions, syncFloors, meta, ports, partitions } = options
    const onTrouble = (error: unknown): void => this.#fail(error)
    this.#ledger = new Ledger({
      unit,
      store,
      checkpoint,
      deletions,
      syncFloors,
      writeState: (record) => ports.writeState(record),
      meta,
      onTrouble,
      onSuspect: (subject) => this.#suspect(subject),
      onLanded: () => {
        if (this.#isReady) this.#turn()
      },
    })
    this.#syncs = new Syncs({ unit, partitions, store, ledger: this.#ledger, deletions, ports, onTrouble })
    const intake = (): Intake => new Intake((topic, isFull) => ports.setUnitFull(topic, unit, isFull))
    this.changeIntake = intake()
    this.#stateIntake = intake()
    this.#deletionIntake = intake()
    for (const [key, amiss] of options.outOfOrder) this.#inbox.push({ kind: 'again', key, amiss })
    this.#turn()
  }

  acceptChange(record: HeldRecord, content: RecordContent, change: Change): void {
    const bytes = content.value?.length ?? 0
    this.changeIntake.add(record.topic, bytes)
    const key = subjectKey(change.subject)
    this.#changes.push({
      kind: 'change',
      record,
      content,
      bytes,
      change,
      key,
      at: unread,
      deletedUpToMs: -Infinity,
      syncedAt: undefined,
    })
    this.#turn()
  }

  acceptPart(record: HeldRecord, content: RecordContent, part: Part): void {
    const bytes = content.value?.length ?? 0
    this.changeIntake.add(record.topic, bytes)
    this.#changes.push({ kind: 'part', record, content, bytes, part })
    this.#turn()
  }

  acceptState(record: HeldRecord, state: StateRecord, bytes: number): void {
    this.#stateIntake.add(record.topic, bytes)
    this.#inbox.push({ kind: 'state', record, bytes, state, key: subjectKey(state.subject), at: unread })
    this.#turn()
  }

  /** A record of `memberships` that is no state. */
  passState(record: PassItem['record']): void {
    this.#inbox.push({ kind: 'pass', record })
    this.#turn()
  }

  acceptDeletion(record: HeldRecord, request: DeletionRequest, bytes: number): void {
    this.#deletionIntake.add(record.topic, bytes)
    this.#deletions.push({ record, request, bytes, isOver: false })
    this.#deleteNext()
  }

  /** Judges an Identify that waited. */
  async judgeProperty(judged: JudgedProperty, isUncertain: boolean): Promise<Judgement> {
    const { userId, spaceId, property, since } = judged
    const subject: PropertySubject = { kind: 'property', userId, spaceId, property }
    const [held, floor] = await this.#read([subjectKey(subject), deletionKeyOf(subject)])
    const told = parseVersion(since)
    if (told === undefined) return { kind: 'send' }
    const deleted =
      floor?.kind === 'deletion' && told.atMs <= floor.state.requestedAtMs ? floor.state : undefined
    const upToMs = floor?.kind === 'deletion' ? floor.state.requestedAtMs : -Infinity
    const alive = held?.kind === 'property' && held.state.version.atMs > upToMs ? held : undefined
    if (deleted !== undefined) {
      if (!isUncertain) return { kind: 'suppressed' }
      // It may have been done after the delete.
      if (alive === undefined) return deleteAfter(subject, deleted, since)
      return sendCurrent(subject, isToldBefore(alive, upToMs) ? toldAnew(alive) : alive)
    }
    if (alive === undefined) return { kind: 'send' }
    const order = compareVersions(told, alive.state.since)
    if (order === 0 || compareVersions(told, alive.state.version) > 0) return { kind: 'send' }
    // Another owner told it, between two that say the same: perhaps nobody has told the last one yet.
    if (order > 0) return sendCurrent(subject, toldAnew(alive))
    return isUncertain ? sendCurrent(subject, alive) : { kind: 'superseded' }
  }

  /** Whether what a source sent of a user at that time was deleted since. */
  async isDeleted(userId: string, sourceId: string, atMs: number): Promise<boolean> {
    if (this.#options.deletions.isEmpty) return false
    const key = subjectKey({ kind: 'deletion', userId, sourceId })
    if (!this.#options.deletions.mayHold(key)) return false
    const [floor] = await this.#read([key])
    return floor?.kind === 'deletion' && atMs <= floor.state.requestedAtMs
  }

  /** `undefined` once the unit comes to its end. From the first state on, nothing is missing that was told before the call. */
  async statesOf(query: StatesQuery): Promise<StatesPage | undefined> {
    if (this.#isEnding) return undefined
    if (query.after === null) await this.#ledger.stored()
    return readStates(this.#options.store, query)
  }

  get hasDeletions(): boolean {
    return !this.#options.deletions.isEmpty
  }

  mayBeDeleted(userId: string, spaceId: string): boolean {
    const { deletions } = this.#options
    return !deletions.isEmpty && deletions.mayHold(deletionKeyOf({ userId, spaceId }))
  }

  /** Time passes: syncs that can't become complete are refused. */
  tick(): void {
    if (this.#part !== undefined || !this.#syncs.hasOpen || this.#isEnding) return
    const { ports, unit } = this.#options
    const endSeenMs = this.#changes.length === 0 ? ports.endSeenMs(unit) : 0
    this.#hold(this.#syncs.expire({ latestMs: this.#latestMs, endSeenMs }))
  }

  /** Gives back what belongs to another owner and was not begun. */
  letGoAbandoned(): void {
    this.#letGo(({ isAbandoned }) => isAbandoned)
  }

  /** Begins nothing more; what is in flight comes to its end, or is given back after some seconds. */
  async close(): Promise<void> {
    this.#isEnding = true
    this.#letGo(() => true)
    this.#syncs.end()
    this.#ledger.letGoWaiting()
    const deadline = setTimeout(() => this.#ledger.letGo(), endWithinMs)
    try {
      await this.#turning
      await this.#part
      await this.#ledger.room(1)
    } finally {
      clearTimeout(deadline)
    }
    this.#ledger.letGo()
    this.#endPurges()
    await Promise.all(this.#purging)
    if (this.#deleting !== undefined) this.#leave(this.#deleting)
    await this.#ledger.close()
    this.#isClosed = true
    await this.#options.store.close()
  }

  /** Those that wait: whoever comes next begins them anew. */
  #endPurges(): void {
    for (const { done } of this.#purges.splice(0)) done()
    for (const item of this.#inbox.take(({ kind }) => kind === 'purge'))
      if (item.kind === 'purge') item.done()
  }

  #letGo(isToGo: (record: HeldRecord) => boolean): void {
    for (const { record, bytes } of this.#changes.take((item) => isToGo(item.record))) {
      this.changeIntake.remove(bytes)
      record.giveBack()
    }
    for (const item of this.#inbox.take((one) => one.kind === 'state' && isToGo(one.record))) {
      if (item.kind !== 'state') continue
      this.#stateIntake.remove(item.bytes)
      item.record.giveBack()
    }
    for (const { record, bytes } of this.#deletions.take((item) => isToGo(item.record))) {
      this.#deletionIntake.remove(bytes)
      record.giveBack()
    }
    this.#syncs.letGo(isToGo)
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return
    const { ports, unit } = this.#options
    ports.fatal(new Error(`the state of unit ${unit} can't be kept`, { cause: error }))
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
    return this.#changes.length > 0 && this.#part === undefined && this.#ledger.inFlight < mostInFlight
  }

  async #turns(): Promise<void> {
    // What comes in one go is decided in one go.
    await Promise.resolve()
    while (this.#isReady && !this.#isClosed) {
      const reading = new Reading()
      const inbox = this.#takeInbox(reading)
      const changes = this.#takeChanges(reading)
      this.#ledger.beginReading()
      await reading.read(this.#options.store)
      for (const item of inbox) this.#decideInbox(item, reading)
      for (const item of changes) this.#decideItem(item, reading)
      this.#ledger.endReading()
      this.#takePart()
    }
  }

  #takeInbox(reading: Reading): InboxItem[] {
    const taken: InboxItem[] = []
    if (!this.#isInboxOpen) return taken
    for (let item = this.#inbox.shift(); item !== undefined; item = this.#inbox.shift()) {
      taken.push(item)
      this.#wantInbox(item, reading)
      if (taken.length === mostAtOnce) break
    }
    return taken
  }

  #wantInbox(item: InboxItem, reading: Reading): void {
    const { deletions } = this.#options
    switch (item.kind) {
      case 'state': {
        if (this.#isTakenIn(item)) return
        if (this.#isOnly(item)) {
          item.at = only
          return
        }
        item.at = reading.add(item.key)
        const { subject } = item.state
        if (subject.kind !== 'property' || deletions.isEmpty) return
        const deletionKey = deletionKeyOf(subject)
        if (deletions.mayHold(deletionKey)) reading.want(deletionKey)
        return
      }
      case 'purge':
        reading.want(item.deletionKey)
        for (const subject of item.subjects) reading.want(subjectKey(subject))
        return
      case 'read':
        for (const key of item.keys) reading.want(key)
        return
      case 'again':
        reading.want(item.key)
        return
      case 'pass':
    }
  }

  /** A quiet record that was written here, and acknowledged: nothing is to be learnt from it, or to be sent. */
  #isTakenIn({ record, state }: StateItem): boolean {
    const { checkpoint, deletions } = this.#options
    const isQuiet = 'isQuiet' in state && state.isQuiet
    return isQuiet && deletions.isEmpty && record.offset < checkpoint.position
  }

  /** A record that was written here, and all that is known of its key: what the store has of it needs not be read. */
  #isOnly({ record, state, key }: StateItem): boolean {
    const isLoud = 'isQuiet' in state && !state.isQuiet
    return isLoud && this.#options.deletions.isEmpty && this.#ledger.isOnly(key, record.offset)
  }

  /** Changes up to the next part, which is taken alone. */
  #takeChanges(reading: Reading): ChangeItem[] {
    const taken: ChangeItem[] = []
    if (!this.#isChangesOpen) return taken
    const { deletions } = this.#options
    for (let item = this.#changes.peek(); item?.kind === 'change'; item = this.#changes.peek()) {
      this.#changes.shift()
      taken.push(item)
      item.at = reading.add(item.key)
      if (!deletions.isEmpty) {
        const deletionKey = deletionKeyOf(item.change.subject)
        if (deletions.mayHold(deletionKey)) reading.want(deletionKey)
      }
      if (taken.length === mostAtOnce) break
    }
    return taken
  }

  #takePart(): void {
    const item = this.#changes.peek()
    if (item?.kind !== 'part' || this.#part !== undefined || this.#isEnding) return
    this.#changes.shift()
    this.#latestMs = Math.max(this.#latestMs, item.record.timestampMs)
    if (item.record.isAbandoned) {
      this.changeIntake.remove(item.bytes)
      item.record.giveBack()
      return
    }
    const taking = this.#syncs
      .expire({ latestMs: this.#latestMs, endSeenMs: 0 })
      .then(() => this.#syncs.take(item.record, item.content, item.part))
    this.#hold(taking.finally(() => this.changeIntake.remove(item.bytes)))
  }

  /** No change is decided until it is done. */
  #hold(task: Promise<void>): void {
    this.#part = task
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#part = undefined
        for (const item of this.#purges.splice(0)) this.#inbox.push(item)
        this.#turn()
      })
  }

  #cell(key: string, reading: Reading): Cell | undefined {
    return this.#ledger.held(key, reading.textOf(key))
  }

  #deletedUpToMs(subject: PropertySubject, reading: Reading): number {
    if (this.#options.deletions.isEmpty) return -Infinity
    const floor = this.#cell(deletionKeyOf(subject), reading)
    return floor?.kind === 'deletion' ? floor.state.requestedAtMs : -Infinity
  }

  /** There are few audiences: changes one after the other are of the same. */
  #syncKeyOf(spaceId: string, audienceId: string): string {
    if (this.#lastSync.audienceId !== audienceId || this.#lastSync.spaceId !== spaceId)
      this.#lastSync = { spaceId, audienceId, key: subjectKey({ kind: 'sync', spaceId, audienceId }) }
    return this.#lastSync.key
  }

  #decideItem(item: ChangeItem, reading: Reading): void {
    const { record, change, key } = item
    this.#latestMs = Math.max(this.#latestMs, record.timestampMs)
    if (record.isAbandoned) {
      this.changeIntake.remove(item.bytes)
      record.giveBack()
      return
    }
    item.deletedUpToMs = this.#deletedUpToMs(change.subject, reading)
    const flight = this.#ledger.flightOf(key)
    const stored = reading.at(item.at)
    if (flight === undefined && item.deletedUpToMs === -Infinity) {
      const why = this.#isLate(item, stored)
      if (why !== undefined) {
        this.#drop(item, why)
        return
      }
    }
    if (change.kind === 'audience') {
      item.syncedAt = this.#options.syncFloors.get(this.#syncKeyOf(change.subject.spaceId, change.id))
    }
    if (flight === undefined) this.#apply(item, this.#ledger.held(key, stored))
    else this.#await(flight, item)
  }

  /** Whether a change comes too late, as `decideChange` finds too, where the text of the store tells. */
  #isLate({ change, key }: ChangeItem, stored: string | undefined): 'repeated' | 'outdated' | undefined {
    if (stored === undefined || this.#isEnding || this.#ledger.isKnown(key)) return undefined
    const order = compareStored(stored, change)
    if (order === undefined || order < 0) return undefined
    return order === 0 ? 'repeated' : 'outdated'
  }

  /** Of those that wait for a key, and are of one audience or trait, the newest counts. */
  #await(flight: NonNullable<ReturnType<Ledger['flightOf']>>, item: ChangeItem): void {
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

  #apply(item: ChangeItem, cell: Cell | undefined): void {
    const { change, record, content, key, deletedUpToMs, syncedAt } = item
    const { ports } = this.#options
    if (this.#isEnding || record.isAbandoned) {
      this.#giveBack(item)
      return
    }
    const held = cell?.kind === 'property' ? cell.state : undefined
    // Most users have nothing of another audience.
    const ownerSyncedAt =
      held !== undefined && held.id !== change.id
        ? this.#ledger.syncedAt(change.subject.spaceId, held.id)
        : undefined
    const decision = decideChange(change, { held, deletedUpToMs, syncedAt, ownerSyncedAt })
    switch (decision.kind) {
      case 'drop':
        this.#drop(item, decision.why)
        return
      case 'taken':
        this.changeIntake.remove(item.bytes)
        ports.refuse(
          record,
          content ?? noContent,
          'bad_property_name',
          `Set another ${change.kind}Key: of this user the property is another audience’s or trait’s.`,
        )
        return
      case 'write':
        item.content = undefined
        this.#ledger.launch({
          subject: change.subject,
          key,
          cell: { kind: 'property', state: decision.state, offset: -1 },
          isLoud: decision.isLoud,
          held: cell,
          onEnd: (end) => this.#written(item, end, decision.isLoud ? 'changed' : 'confirmed'),
        })
    }
  }

  #written(item: ChangeItem, end: WriteEnd, outcome: ChangeOutcome): void {
    switch (end) {
      case 'acknowledged':
        this.#drop(item, outcome)
        return
      case 'refused':
        this.changeIntake.remove(item.bytes)
        this.#options.ports.refuse(item.record, noContent, 'record_too_large', 'Send a smaller value.')
        return
      case 'given_back':
        this.#giveBack(item)
    }
  }

  /** Nothing more is owed for the change. */
  #drop(item: ChangeItem, outcome: ChangeOutcome): void {
    this.changeIntake.remove(item.bytes)
    item.record.settle()
    this.#options.ports.observer.changed(outcome, item.change.subject.spaceId)
  }

  #giveBack(item: ChangeItem): void {
    this.changeIntake.remove(item.bytes)
    item.record.giveBack()
  }

  #decideInbox(item: InboxItem, reading: Reading): void {
    switch (item.kind) {
      case 'state':
        this.#decideState(item, reading)
        return
      case 'purge':
        this.#purgeNow(item, reading)
        return
      case 'read':
        item.resolve(item.keys.map((key) => this.#acknowledged(key, reading)))
        return
      case 'again':
        this.#writeAgain(item, reading)
        return
      case 'pass':
        // Not past states that were given back.
        if (!item.record.isAbandoned && !this.#isEnding) this.#ledger.read(item.record.offset)
    }
  }

  /** What Kafka has, whatever is in flight. */
  #acknowledged(key: string, reading: Reading): Cell | undefined {
    return this.#acknowledgedOf(key, reading.textOf(key))
  }

  #acknowledgedOf(key: string, stored: string | undefined): Cell | undefined {
    const flight = this.#ledger.flightOf(key)
    const cell = flight === undefined ? this.#ledger.held(key, stored) : flight.held
    return cell?.kind === 'gone' ? undefined : cell
  }

  #writeAgain({ key, amiss }: AgainItem, reading: Reading): void {
    const { checkpoint } = this.#options
    const { olderAt, untold, untoldAt, blockedAt } = amiss
    const held = this.#acknowledged(key, reading)
    const subject = subjectOf(key)
    const flight = this.#ledger.flightOf(key)
    if (flight !== undefined) {
      if (olderAt !== -1) this.#ledger.olderThan(flight, olderAt)
      if (untold !== undefined) this.#ledger.mustTell(flight, untold, untoldAt)
    } else if (held !== undefined && subject !== undefined) {
      const isAmiss = held.offset < olderAt || isUntold(held, untold)
      if (isAmiss) this.#ledger.writeAgain(key, subject, held, amiss, nobody)
    }
    checkpoint.unblock(blockedAt)
  }

  /** A record of `memberships` that the group has read: it may be ours, or another owner's. */
  #decideState(item: StateItem, reading: Reading): void {
    const { record, state: read, key, bytes } = item
    const { offset } = record
    this.#stateIntake.remove(bytes)
    if (record.isAbandoned || this.#isEnding) {
      // From here on nothing is adopted any more: how far the store is stays where it is.
      record.giveBack()
      return
    }
    if (item.at === unread) {
      record.settle()
      this.#ledger.read(offset)
      return
    }
    const { subject } = read
    const deletedUpToMs = subject.kind === 'property' ? this.#deletedUpToMs(subject, reading) : -Infinity
    const incoming = cellOf(read, offset, deletedUpToMs)
    const isStillOnly =
      item.at === only && !this.#ledger.isKnown(key) && this.#ledger.flightOf(key) === undefined
    const held = isStillOnly ? incoming : this.#acknowledgedOf(key, reading.at(item.at))
    if (subject.kind === 'property' && isDead(incoming, deletedUpToMs)) {
      if (held === undefined || isDead(held, deletedUpToMs)) {
        this.#bury(subject, key, record, read)
        this.#ledger.read(offset)
        return
      }
    }
    const { best, isOutOfOrder, toldBetween } = this.#ledger.adopt(key, incoming, held)
    const deleted = isToldBefore(best, deletedUpToMs) ? endOf(deletedUpToMs) : undefined
    const flight = this.#ledger.flightOf(key)
    if (flight !== undefined && deleted !== undefined) this.#ledger.mustTell(flight, deleted, offset)
    const untold = flight === undefined ? laterUntold(toldBetween?.state.version, deleted) : flight.untold
    // What is done about it stands in the log before the record is settled.
    if (isOutOfOrder || untold !== undefined) {
      const waiting: Waiting = {
        resume: (now) => this.#end(record, read, now),
        giveBack: () => record.giveBack(),
      }
      const why = { olderAt: isOutOfOrder ? offset : -1, untold, untoldAt: toldBetween?.offset ?? offset }
      if (flight === undefined) this.#ledger.writeAgain(key, subject, best, why, waiting)
      else flight.wait(waiting)
      this.#ledger.read(offset)
      return
    }
    this.#ledger.read(offset)
    this.#end(record, read, best)
  }

  /** Something of the deleted user came after all: it is neither kept nor sent. */
  #bury(subject: PropertySubject, key: string, record: HeldRecord, read: StateRecord): void {
    const flight = this.#ledger.flightOf(key)
    if (flight !== undefined) this.#ledger.olderThan(flight, record.offset)
    this.#inbox.push({
      kind: 'purge',
      deletionKey: deletionKeyOf(subject),
      subjects: [subject],
      deadAt: record.offset,
      done: () => (this.#isEnding ? record.giveBack() : this.#endBuried(record, read)),
    })
  }

  /** An owner before may have sent it just before the delete: then that has to be the last once more. */
  #endBuried(record: HeldRecord, read: StateRecord): void {
    if ('isQuiet' in read && !read.isQuiet && record.mayHaveBegun === true) {
      this.#deliver(record, read, true)
      return
    }
    this.#options.ports.observer.notSent('suppressed')
    record.settle()
  }

  /** What is done with a record when the state is in order. `now` is what holds by then: newer ones may have been told. */
  #end(record: HeldRecord, read: StateRecord, now: Cell | undefined): void {
    if (read.subject.kind === 'deletion' && read.state !== null) {
      const purging = this.#purgeFor(record, read.subject).finally(() => this.#purging.delete(purging))
      this.#purging.add(purging)
      return
    }
    if (!('isQuiet' in read) || read.isQuiet) {
      record.settle()
      return
    }
    const { ports } = this.#options
    const { state } = read
    const isSuperseded = now?.kind !== 'property' || supersedes(now.state, state)
    if (isSuperseded && record.mayHaveBegun !== true) {
      ports.observer.notSent('superseded')
      record.settle()
      return
    }
    this.#deliver(record, read, isSuperseded)
  }

  #deliver(record: HeldRecord, { subject, state }: PropertyRecord, isSuperseded: boolean): void {
    const { userId, spaceId, property } = subject
    const since = formatVersion(state.since)
    this.#options.ports.deliver(record, {
      kind: 'identify',
      userId,
      spaceId,
      property,
      since,
      ...identifyOf(subject, state),
      isSuperseded,
    })
  }

  /** A state was written that may be as old as a deletion floor which came in between. */
  #suspect(subject: PropertySubject): void {
    this.#inbox.push({
      kind: 'purge',
      deletionKey: deletionKeyOf(subject),
      subjects: [subject],
      deadAt: -1,
      done: () => undefined,
    })
    this.#turn()
  }

  async #purgeFor(record: HeldRecord, { userId, sourceId }: DeletionSubject): Promise<void> {
    try {
      const isDone = await this.#purge(userId, sourceId)
      if (isDone) record.settle()
      else record.giveBack()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Buries all that is held of a user in a space and isn't newer than the deletion floor. False: the unit was left. */
  async #purge(userId: string, spaceId: string): Promise<boolean> {
    const { unit, partitions, store } = this.#options
    if (this.#isEnding) return false
    // Each unit has the floor, and only one the user.
    if (partitionOf(userId, partitions) !== unit) return true
    // A property is known once a state of it is stored.
    await this.#ledger.stored()
    const known = store.range(rangeOf(knownPropertiesPrefix(spaceId)))
    const deletionKey = deletionKeyOf({ userId, spaceId })
    let lastProperty: string | undefined
    try {
      for (
        let entries = await known.next(mostAtOnce);
        entries.length > 0;
        entries = await known.next(mostAtOnce)
      ) {
        const subjects: PropertySubject[] = []
        for (const [key] of entries) {
          const { property } = knownPropertyOf(key)
          if (property === lastProperty) continue
          lastProperty = property
          subjects.push({ kind: 'property', userId, spaceId, property })
        }
        if (this.#isEnding) return false
        await new Promise<void>((done) => {
          this.#inbox.push({ kind: 'purge', deletionKey, subjects, deadAt: -1, done })
          this.#turn()
        })
      }
    } finally {
      await known.close()
    }
    return !this.#isEnding
  }

  #purgeNow(item: PurgeItem, reading: Reading): void {
    const { deletionKey, subjects, deadAt, done } = item
    if (this.#part !== undefined && !this.#isEnding) {
      this.#purges.push(item)
      return
    }
    const floor = this.#acknowledged(deletionKey, reading)
    if (floor?.kind !== 'deletion') {
      done()
      return
    }
    const upToMs = floor.state.requestedAtMs
    let left = 1
    const ended = (): void => {
      left--
      if (left === 0) done()
    }
    for (const subject of subjects) {
      const key = subjectKey(subject)
      const bury = (held: Cell | undefined): void => {
        const cell = held === undefined && deadAt === -1 ? undefined : this.#purged(subject, held, upToMs)
        if (cell === undefined) ended()
        else this.#ledger.launch({ subject, key, cell, isLoud: cell.kind === 'property', held, onEnd: ended })
      }
      left++
      const flight = this.#ledger.flightOf(key)
      if (flight === undefined) bury(this.#cell(key, reading))
      else flight.wait({ resume: bury, giveBack: ended })
    }
    ended()
  }

  /** What is to be written in place of what is held of a deleted user. */
  #purged({ spaceId }: PropertySubject, held: Cell | undefined, upToMs: number): Cell | undefined {
    if (held?.kind !== 'property') return { kind: 'gone', upToMs, offset: -1 }
    const { state } = held
    // A newer version of a value that was told before: the delete takes it from the receivers, so they are told again.
    if (!isDead(held, upToMs)) {
      return isToldBefore(held, upToMs) ? { ...toldAnew(held), offset: -1 } : undefined
    }
    // The last sync has confirmed a member, and left the record as it was.
    const syncedAt =
      state.kind === 'audience' && state.value === 'true'
        ? this.#ledger.syncedAt(spaceId, state.id)
        : undefined
    if (syncedAt === undefined || syncedAt.atMs <= upToMs) return { kind: 'gone', upToMs, offset: -1 }
    return { kind: 'property', state: { ...state, version: syncedAt, since: syncedAt }, offset: -1 }
  }

  #read(keys: readonly string[]): Promise<readonly (Cell | undefined)[]> {
    if (this.#isEnding) return Promise.resolve(keys.map(() => undefined))
    return new Promise((resolve) => {
      this.#inbox.push({ kind: 'read', keys, resolve })
      this.#turn()
    })
  }

  #deleteNext(): void {
    if (this.#deleting !== undefined || this.#isEnding) return
    const item = this.#deletions.shift()
    if (item === undefined) return
    this.#deleting = item
    void this.#delete(item)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#leave(item)
        this.#deleting = undefined
        this.#deletionIntake.remove(item.bytes)
        this.#deleteNext()
      })
  }

  #leave(item: DeletionItem): void {
    if (item.isOver) return
    item.isOver = true
    item.record.giveBack()
  }

  /** Floors in every unit first, the user's own last: once it has one, all have. Then tombstones, then the messages. */
  async #delete(item: DeletionItem): Promise<void> {
    const { record, request } = item
    const { ports } = this.#options
    const { requestId, requestedAtMs, userId } = request
    const { partition, offset } = record
    const subjects = request.sources.map((sourceId): DeletionSubject => ({
      kind: 'deletion',
      userId,
      sourceId,
    }))
    const floors = await this.#read(subjects.map(subjectKey))
    if (this.#isEnding) return
    const floor: DeletionFloor = { requestedAtMs, requestId, partition, offset }
    const toTell: DeletionSubject[] = []
    for (const [index, subject] of subjects.entries()) {
      const held = floors[index]
      const known = held?.kind === 'deletion' ? held.state : undefined
      const isRepeat =
        known?.requestId === requestId && (known.partition !== partition || known.offset !== offset)
      if (isRepeat) continue
      toTell.push(subject)
      if (known === undefined || known.requestedAtMs < requestedAtMs) await this.#writeFloors(subject, floor)
      const isPurged = await this.#purge(userId, subject.sourceId)
      if (!isPurged) return
    }
    if (item.isOver) return
    item.isOver = true
    if (toTell.length === 0) record.settle()
    else ports.deliverDelete(record, { userId, deletes: toTell.map((subject) => deleteOf(subject, request)) })
  }

  async #writeFloors(subject: DeletionSubject, floor: DeletionFloor): Promise<void> {
    const { unit, partitions, ports } = this.#options
    const key = encodeSubject(subject)
    const value = encodeDeletionFloor(floor)
    const others = Array.from({ length: partitions }, (_, partition) => partition).filter(
      (one) => one !== unit,
    )
    for (let at = 0; at < others.length; at += writesAtOnce) {
      const some = others.slice(at, at + writesAtOnce)
      await Promise.all(some.map((partition) => ports.writeState({ partition, key, value })))
    }
    const storeKey = subjectKey(subject)
    const [held] = await this.#read([storeKey])
    if (this.#isEnding) return
    await new Promise<void>((resolve) => {
      const launch = (now: Cell | undefined): void =>
        this.#ledger.launch({
          subject,
          key: storeKey,
          cell: { kind: 'deletion', state: floor, offset: -1 },
          isLoud: false,
          held: now,
          onEnd: () => resolve(),
        })
      const flight = this.#ledger.flightOf(storeKey)
      if (flight === undefined) launch(held)
      else flight.wait({ resume: launch, giveBack: resolve })
    })
  }
}

const noContent: RecordContent = { key: null, value: null }

/** Nobody waits for it. */
const nobody: Waiting = { resume: () => undefined, giveBack: () => undefined }

function isDead(cell: Cell, deletedUpToMs: number): cell is PropertyCell {
  return cell.kind === 'property' && cell.state.version.atMs <= deletedUpToMs
}

/** Whether it is newer than the deletion floor, and was last told before: receivers don't have it any more. */
function isToldBefore(cell: Cell, deletedUpToMs: number): boolean {
  if (cell.kind !== 'property' || cell.state.since.atMs > deletedUpToMs) return false
  return !isDead(cell, deletedUpToMs)
}

/** Whether a state is no longer told, since another one holds. */
function supersedes(now: PropertyState, state: PropertyState): boolean {
  if (compareVersions(now.since, state.since) > 0) return true
  return compareVersions(now.version, state.version) > 0 && !saysSame(now, state)
}

function laterUntold(a: Version | undefined, b: Version | undefined): Version | undefined {
  return a === undefined || b === undefined ? (a ?? b) : laterOf(a, b)
}

function deleteAfter({ userId, spaceId }: PropertySubject, floor: DeletionFloor, since: string): Judgement {
  const { messageId, body } = deleteOf({ userId, sourceId: spaceId }, floor)
  return { kind: 'send_current', messageId, body, since }
}

function sendCurrent(subject: PropertySubject, { state }: PropertyCell): Judgement {
  return { kind: 'send_current', ...identifyOf(subject, state), since: formatVersion(state.since) }
}

/** A change that waits until its key is free. */
class WaitingChange implements Waiting {
  item: ChangeItem
  readonly #apply: (item: ChangeItem, held: Cell | undefined) => void
  readonly #giveBack: (item: ChangeItem) => void

  constructor(
    item: ChangeItem,
    apply: (item: ChangeItem, held: Cell | undefined) => void,
    giveBack: (item: ChangeItem) => void,
  ) {
    this.item = item
    this.#apply = apply
    this.#giveBack = giveBack
  }

  isReplaceableBy({ change }: ChangeItem): boolean {
    return this.item.change.id === change.id && this.item.change.kind === change.kind
  }

  resume(held: Cell | undefined): void {
    this.#apply(this.item, held)
  }

  giveBack(): void {
    this.#giveBack(this.item)
  }
}

/** The place of what no turn has read yet. */
const unread = -1
/** The place of what the store has just as it was read in the log. */
const only = -2

/** What one turn reads from the store. */
class Reading {
  readonly #keys: string[] = []
  #texts: readonly (string | undefined)[] = []
  /** Places of keys that are asked for by their name. */
  readonly #places = new Map<string, number>()

  /** Gives the place at which it is found. For a key that mostly comes once. */
  add(key: string): number {
    return this.#keys.push(key) - 1
  }

  /** As `add`, for a key that many ask for, or that is looked for by its name: it is read once. */
  want(key: string): number {
    const known = this.#places.get(key)
    if (known !== undefined) return known
    const place = this.add(key)
    this.#places.set(key, place)
    return place
  }

  async read(store: StateStore): Promise<void> {
    if (this.#keys.length > 0) this.#texts = await store.getMany(this.#keys)
  }

  at(place: number): string | undefined {
    return this.#texts[place]
  }

  textOf(key: string): string | undefined {
    const place = this.#places.get(key)
    return place === undefined ? undefined : this.#texts[place]
  }
}
