import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Judgement, WaitingDelivery } from '../message/judgement.ts'
import { guarded } from '../message/internal-fault.ts'
import { parseOrigin } from '../message/record-headers.ts'
import { parseJson } from '../message/json.ts'
import type { MessageLimits } from '../message/limits.ts'
import { partitionOf } from '../message/partitioner.ts'
import { type Change, type ReadChange, readChange } from './change-record.ts'
import { Checkpoint } from './checkpoint.ts'
import { readDeletion } from './deletion-request.ts'
import { filledHeader } from './headers.ts'
import { KeyFilter } from './key-filter.ts'
import { moveToItsUnit } from './moving.ts'
import type { AudiencePorts, HeldRecord, RecordContent, RestoreProgress } from './audience-ports.ts'
import { readDeletions, restore } from './restore.ts'
import { decodeState } from './state-record.ts'
import type { StatesPage, StatesQuery } from './states-page.ts'
import { levelStores, type StateStore, type StoreOperation, type Stores } from './store.ts'
import { anyStaged, metaKey } from './store-keys.ts'
import { readSyncFloors } from './sync-floors.ts'
import { AudienceUnit } from './unit.ts'

export type AudienceOptions = {
  /** Each unit's store is a folder in it. */
  readonly folder: string
  readonly partitions: number
  /** Before the last growth; `undefined`: there was none. */
  readonly formerPartitions?: number | undefined
  readonly limits: MessageLimits
  /**
   * Names the log that the stores are made of: the cluster and the topic. Stores of another are not trusted.
   */
  readonly logId: string
  /** Stores that are older may have missed tombstones, which are kept for so long: `delete.retention.ms`. */
  readonly trustedForMs: number
  readonly ports: AudiencePorts
  /** On disk, unless others are given. */
  readonly stores?: Stores
  /** How often it is looked for syncs that have become too old. */
  readonly tickEveryMs?: number
}

/** The state of audiences, traits and deletions of the units that this member owns. */
export type AudienceUnits = {
  /**
   * Opens the unit's store and brings it to the end of the log. Called once its owners before are done. May
   * be called again where it rejects.
   */
  prepare(unit: number): Promise<void>
  /** The unit went to another owner, or we stop: outstanding writes end, the store is closed clean. */
  release(unit: number): Promise<void>
  /** A record of `audience-changes`, its value as JSON. Settled, given back or handed on later. */
  acceptChange(record: HeldRecord, content: RecordContent): void
  /** A record of `memberships`, in the order of the log. */
  acceptState(record: HeldRecord, content: RecordContent): void
  /** A record of `deletions`, its value as JSON. */
  acceptDeletion(record: HeldRecord, content: RecordContent): void
  judge(waiting: WaitingDelivery): Promise<Judgement>
  /** Whether `judge` has anything to say of deliveries without a property. */
  hasDeletions(unit: number): boolean
  /** Whether something of a user may have been deleted in a space: rather too often than not. */
  mayBeDeleted(unit: number, userId: string, spaceId: string): boolean
  /**
   * Some of the states that a unit holds of a space, as they are on disk; `undefined` where it isn't ours.
   */
  statesOf(unit: number, query: StatesQuery): Promise<StatesPage | undefined>
  /** Gives back what was not begun of units that belong to another member. */
  letGoAbandoned(): void
  stop(): Promise<void>
  /** Of the units that are being restored. */
  readonly progress: readonly RestoreProgress[]
}

export function createAudienceUnits(options: AudienceOptions): AudienceUnits {
  return new OpenUnits(options)
}

/** What a store says of itself. */
type Meta = {
  readonly format: number
  readonly log: string
  readonly unit: number
  readonly partitions: number
  readonly position: number
  readonly atMs: number
}

const format = 1
/** So far may the clock have been put back. */
const mostAheadMs = 5 * 60_000
const madeAnew = 'its log was cut or made anew'
const tickEveryMs = 1_000
/** 128 KiB a unit: of 100,000 deleted users in it a tenth of the others is looked for without need. */
const deletionBits = 2 ** 20

class OpenUnits implements AudienceUnits {
  readonly #options: AudienceOptions
  readonly #units = new Map<number, AudienceUnit>()
  /** Stores that are open, though their units aren't ready. */
  readonly #stores = new Map<number, StateStore>()
  /** Where the stores are that are not in their own place, and are removed in the end. */
  readonly #spares = new Map<number, string>()
  #cleared: Promise<void> | undefined
  readonly #progress = new Map<number, RestoreProgress>()
  readonly #ticking: NodeJS.Timeout

  constructor(options: AudienceOptions) {
    this.#options = options
    this.#ticking = setInterval(() => {
      for (const unit of this.#units.values()) unit.tick()
    }, options.tickEveryMs ?? tickEveryMs)
    this.#ticking.unref()
  }

  get progress(): readonly RestoreProgress[] {
    return [...this.#progress.values()]
  }

  async prepare(unit: number): Promise<void> {
    if (this.#units.has(unit)) return
    const { ports, partitions } = this.#options
    const startedMs = ports.now()
    try {
      await (this.#cleared ??= this.#removeSpares())
      const range = await ports.rangeOfStates(unit)
      const { store, meta, mistrust } = await this.#open(unit, range)
      await clearStaged(store)
      const deletions = new KeyFilter(deletionBits)
      await readDeletions(store, deletions)
      const checkpoint = new Checkpoint(meta?.position ?? range.start)
      const from = checkpoint.position
      let count = 0
      const progress = (records: number, at: number): void => {
        count = records
        this.#progress.set(unit, { unit, records, from, at, end: range.end, startedMs })
      }
      progress(0, from)
      const metaOf = (position: number): StoreOperation => this.#metaOf(unit, position)
      const outOfOrder = await restore({
        store,
        isEmpty: meta === undefined,
        records: ports.readStates(unit, from),
        checkpoint,
        deletions,
        meta: metaOf,
        onProgress: progress,
      })
      await store.write([metaOf(checkpoint.position)])
      const syncFloors = await readSyncFloors(store)
      // Released meanwhile.
      if (this.#stores.get(unit) !== store) throw new Error(`unit ${unit} was left while it was restored`)
      this.#stores.delete(unit)
      this.#units.set(
        unit,
        new AudienceUnit({
          unit,
          partitions,
          store,
          checkpoint,
          deletions,
          syncFloors,
          meta: metaOf,
          outOfOrder,
          ports,
        }),
      )
      ports.observer.restored({ unit, mistrust, records: count, tookMs: ports.now() - startedMs })
    } catch (error) {
      await this.#closeStore(unit)
      throw error
    } finally {
      this.#progress.delete(unit)
    }
  }

  async release(unit: number): Promise<void> {
    const open = this.#units.get(unit)
    this.#units.delete(unit)
    await open?.close()
    await this.#closeStore(unit)
  }

  letGoAbandoned(): void {
    for (const unit of this.#units.values()) unit.letGoAbandoned()
  }

  async stop(): Promise<void> {
    clearInterval(this.#ticking)
    await Promise.all([...this.#units.keys(), ...this.#stores.keys()].map((unit) => this.release(unit)))
  }

  acceptChange(record: HeldRecord, content: RecordContent): void {
    const unit = this.#unitOf(record)
    if (unit === undefined) return
    const { ports, limits, partitions, formerPartitions } = this.#options
    const spaceId = this.#spaceOf(record, content)
    if (spaceId === undefined) return
    const origin = parseOrigin(filledHeader(content.headers, 'origin') ?? '')
    const { partition, offset, timestampMs } = record
    const read = guarded((): ReadChange =>
      readChange(
        content.value,
        { spaceId, partition, offset, timestampMs, origin },
        { limits, partitions, formerPartitions },
      ),
    )
    if (!read.ok) ports.refuse(record, content, read.reason, read.detail)
    else if (read.kind === 'part') unit.acceptPart(record, content, read.part)
    else if (read.change.unit === partition) unit.acceptChange(record, content, read.change)
    else this.#moveChange(unit, record, content, read.change)
  }

  acceptState(record: HeldRecord, content: RecordContent): void {
    const unit = this.#unitOf(record)
    if (unit === undefined) return
    const { key, value, unreadable } = content
    const decoded = unreadable === undefined ? decodeState(key, value) : undefined
    if (decoded?.ok === true) {
      unit.acceptState(record, decoded.record, (key?.length ?? 0) + (value?.length ?? 0))
      return
    }
    unit.passState(record)
    const { ports } = this.#options
    if (decoded === undefined) ports.refuse(record, content, 'unreadable_batch', unreadable ?? '')
    else
      ports.refuse(
        record,
        content,
        'bad_state',
        `Write to memberships through Sluice alone: ${decoded.fault}.`,
      )
  }

  acceptDeletion(record: HeldRecord, content: RecordContent): void {
    const unit = this.#unitOf(record)
    if (unit === undefined) return
    const { ports, limits, partitions } = this.#options
    if (content.unreadable !== undefined) {
      ports.refuse(record, content, 'unreadable_batch', content.unreadable)
      return
    }
    const read = guarded(() => readDeletion(content.value, record.timestampMs, limits))
    if (!read.ok) {
      ports.refuse(record, content, read.reason, read.detail)
      return
    }
    const { userId } = read.request
    const own = partitionOf(userId, partitions)
    if (own !== record.partition) {
      void moveToItsUnit({ record, content, userId, unit: own, intake: unit.deletionIntake }, ports)
      return
    }
    const origin = parseOrigin(filledHeader(content.headers, 'origin') ?? '')
    unit.acceptDeletion(record, { ...read.request, origin }, content.value?.length ?? 0)
  }

  async judge(waiting: WaitingDelivery): Promise<Judgement> {
    const { sourceId, firstSeenMs, property, body, isUncertain } = waiting
    const unit = this.#units.get(waiting.unit)
    if (unit === undefined) return { kind: 'send' }
    if (property !== undefined) return unit.judgeProperty(property, isUncertain)
    if (!unit.hasDeletions) return { kind: 'send' }
    const userId = userOf(body)
    if (userId === undefined) return { kind: 'send' }
    const isDeleted = await unit.isDeleted(userId, sourceId, firstSeenMs)
    return { kind: isDeleted ? 'suppressed' : 'send' }
  }

  hasDeletions(unit: number): boolean {
    return this.#units.get(unit)?.hasDeletions ?? false
  }

  mayBeDeleted(unit: number, userId: string, spaceId: string): boolean {
    return this.#units.get(unit)?.mayBeDeleted(userId, spaceId) ?? false
  }

  async statesOf(unit: number, query: StatesQuery): Promise<StatesPage | undefined> {
    return this.#units.get(unit)?.statesOf(query)
  }

  /** Records of a unit that isn't ours any more are for its next owner. */
  #unitOf(record: HeldRecord): AudienceUnit | undefined {
    const unit = this.#units.get(record.partition)
    if (unit === undefined || record.isAbandoned) {
      record.giveBack()
      return undefined
    }
    return unit
  }

  #spaceOf(record: HeldRecord, content: RecordContent): string | undefined {
    const { ports } = this.#options
    if (content.unreadable !== undefined) {
      ports.refuse(record, content, 'unreadable_batch', content.unreadable)
      return undefined
    }
    const sourceId = filledHeader(content.headers, 'source-id')
    if (sourceId === undefined) {
      ports.refuse(record, content, 'no_source', 'Send a header source-id with the id of an audience space.')
      return undefined
    }
    switch (ports.spaceOf(sourceId)) {
      case 'enabled':
        return sourceId
      case 'disabled':
        record.settle()
        ports.observer.changed('space_disabled', sourceId)
        return undefined
      case 'unknown':
        ports.refuse(
          record,
          content,
          'unknown_source',
          'Add the source to the catalog: it has none of this source-id.',
        )
        return undefined
      case 'no_space':
        ports.refuse(
          record,
          content,
          'unknown_source',
          'Send changes for a source of the kind audiences: the one of this source-id is not.',
        )
        return undefined
    }
  }

  #moveChange(from: AudienceUnit, record: HeldRecord, content: RecordContent, change: Change): void {
    const { ports } = this.#options
    const { userId, spaceId } = change.subject
    const { unit } = change
    const onMoved = (): void => ports.observer.changed('moved', spaceId)
    const intake = from.changeIntake
    void moveToItsUnit({ record, content, userId, unit, spaceId, intake, onMoved }, ports)
  }

  /** A store that can be trusted, with what it says of itself; else an empty one. */
  async #open(unit: number, range: { start: number; end: number }): Promise<Opened> {
    const location = join(this.#options.folder, `unit-${unit}`)
    const stores = this.#options.stores ?? levelStores
    const opened = await stores.open(location)
    let mistrust: string | undefined = 'it is broken'
    if (opened.ok) {
      const { store } = this.#keepOpen(unit, opened.store, undefined, undefined)
      const meta = await readMeta(store)
      mistrust = meta === undefined ? undefined : await this.#faultOf(unit, meta, range)
      if (meta !== undefined && mistrust === undefined) return { store, meta, mistrust }
      await this.#closeStore(unit)
    } else if (opened.why === 'locked') return this.#openSpare(unit, `${location}.${randomUUID()}`)
    await stores.remove(location)
    const anew = await stores.open(location)
    if (!anew.ok) throw new Error(`no store can be opened in ${location}`, { cause: anew.cause })
    return this.#keepOpen(unit, anew.store, undefined, mistrust)
  }

  /**
   * An owner before on this machine stands still, and has the store in its hands: the unit doesn't wait for
   * it. A store that nobody else opens, empty, which ends with the ownership.
   */
  async #openSpare(unit: number, location: string): Promise<Opened> {
    const opened = await (this.#options.stores ?? levelStores).open(location)
    if (!opened.ok) throw new Error(`no store can be opened in ${location}`, { cause: opened.cause })
    this.#spares.set(unit, location)
    return this.#keepOpen(unit, opened.store, undefined, 'another process has it open')
  }

  /**
   * What programs before have left that were killed. What can't be removed is tried again at the next start.
   */
  async #removeSpares(): Promise<void> {
    const { folder, stores = levelStores } = this.#options
    await stores.removeUnused(folder, isSpare).catch(() => undefined)
  }

  #keepOpen(unit: number, store: StateStore, meta: Meta | undefined, mistrust: string | undefined): Opened {
    this.#stores.set(unit, store)
    return { store, meta, mistrust }
  }

  async #closeStore(unit: number): Promise<void> {
    const store = this.#stores.get(unit)
    this.#stores.delete(unit)
    await store?.close()
    const spare = this.#spares.get(unit)
    if (spare === undefined) return
    this.#spares.delete(unit)
    await (this.#options.stores ?? levelStores).remove(spare)
  }

  /** Why a store is not to be used. */
  async #faultOf(
    unit: number,
    meta: Meta,
    { start, end }: { start: number; end: number },
  ): Promise<string | undefined> {
    const { logId, partitions, trustedForMs, ports } = this.#options
    if (meta.format !== format) return 'it has another format'
    if (meta.log !== logId || meta.unit !== unit || meta.partitions !== partitions)
      return 'it is of another log'
    if (meta.position > end || meta.position < start) return madeAnew
    const ageMs = ports.now() - meta.atMs
    if (ageMs > trustedForMs) return 'it is too old'
    if (ageMs < -mostAheadMs) return 'it is of a time to come'
    // All that a log begins with may be compacted away: then it is read once more, without need.
    const firstMs = await ports.firstStateMs(unit)
    return firstMs !== undefined && firstMs > meta.atMs ? madeAnew : undefined
  }

  #metaOf(unit: number, position: number): StoreOperation {
    const { logId, partitions, ports } = this.#options
    const meta: Meta = { format, log: logId, unit, partitions, position, atMs: ports.now() }
    return { type: 'put', key: metaKey, value: JSON.stringify(meta) }
  }
}

/** Beside those of units, which are named by their numbers alone. */
function isSpare(name: string): boolean {
  return /^unit-\d+\./.test(name)
}

type Opened = {
  readonly store: StateStore
  /** `undefined`: it is empty. */
  readonly meta: Meta | undefined
  /** Why the one before could not be used. */
  readonly mistrust: string | undefined
}

/** `undefined` where the store says nothing of itself: then nothing was ever finished in it. */
async function readMeta(store: StateStore): Promise<Meta | undefined> {
  const [text] = await store.getMany([metaKey])
  const parsed = text === undefined ? undefined : parseJson(text)
  return parsed?.ok === true && isMeta(parsed.value) ? parsed.value : undefined
}

function isMeta(value: unknown): value is Meta {
  if (typeof value !== 'object' || value === null) return false
  const fields = new Map<string, unknown>(Object.entries(value))
  const numbers = ['format', 'unit', 'partitions', 'position', 'atMs']
  return (
    numbers.every((name) => Number.isSafeInteger(fields.get(name))) && typeof fields.get('log') === 'string'
  )
}

/** Parts of syncs that were not applied: they are read again. */
async function clearStaged(store: StateStore): Promise<void> {
  const reader = store.range(anyStaged)
  try {
    for (let entries = await reader.next(staged); entries.length > 0; entries = await reader.next(staged)) {
      await store.write(entries.map(([key]) => ({ type: 'del', key })))
    }
  } finally {
    await reader.close()
  }
}

/** Few at once: each may be a whole part. */
const staged = 8

/**
 * Whom a message is of that a deletion may be about; a delete isn't stopped by the request that it comes
 * from.
 */
function userOf(body: Buffer): string | undefined {
  const parsed = parseJson(body.toString())
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return undefined
  const { type, userId }: { type?: unknown; userId?: unknown } = parsed.value
  return type !== 'delete' && typeof userId === 'string' && userId !== '' ? userId : undefined
}
