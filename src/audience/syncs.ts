import { hash } from 'node:crypto'
import { partitionOf } from '../message/partitioner.ts'
import { type Entry, hasIdMark, idMarkOf, isMemberText } from './entry.ts'
import type { Part } from './change-record.ts'
import { Cursor } from './cursor.ts'
import type { AudienceDeadReason } from './dead-reason.ts'
import { decideSync, isTaken } from './decide.ts'
import { filledHeader } from './headers.ts'
import type { KeyFilter } from './key-filter.ts'
import type { Ledger } from './ledger.ts'
import { Paced } from './paced.ts'
import type { AudiencePorts, HeldRecord, RecordContent } from './audience-ports.ts'
import { Staging } from './staging.ts'
import type { SyncFloor } from './state-record.ts'
import type { RangeReader, StateStore, StoreOperation } from './store.ts'
import {
  anyStaged,
  deletionPrefix,
  endedSyncKey,
  endedSyncsPrefix,
  escapeId,
  knownPropertiesPrefix,
  knownPropertyKey,
  knownPropertyOf,
  propertyPrefix,
  rangeOf,
  snapshotOfEnded,
  subjectKey,
  unescapeId,
} from './store-keys.ts'
import { compareVersions, type Version } from './version.ts'

export type SyncPorts = AudiencePorts & {
  /** So long after the first part of a sync the others have to be there, in milliseconds. Default: 10 minutes. */
  readonly syncTimeoutMs?: number
}

export type SyncsOptions = {
  readonly unit: number
  readonly partitions: number
  readonly store: StateStore
  readonly ledger: Ledger
  readonly deletions: KeyFilter
  readonly ports: SyncPorts
  readonly onTrouble: (error: unknown) => void
}

/** A part that waits for the others, or to be refused with them. */
type HeldPart = {
  readonly record: HeldRecord
  /** The number of its bytes in the staging. */
  readonly staged: number
  readonly key: Buffer | null
  readonly sourceId: string
}

type OpenSync = {
  readonly mark: string
  /** What all parts have in common. */
  readonly part: Part
  /** Of the first part: its offset is the lowest. */
  readonly version: Version
  /** When the first part was appended, by the broker's clock, and when it came to us, by ours: the two aren't compared. */
  readonly firstMs: number
  readonly takenMs: number
  readonly digests: Map<number, { digest: string; staged: number }>
  held: HeldPart[]
  readonly staging: Staging
}

const defaultTimeoutMs = 10 * 60_000
/** Users of all open syncs that are in memory. */
const mostGathered = 16_384
/** Parts of open syncs that are held at once. */
const mostHeldParts = 200_000
const mostInFlight = 2_000
const endedKeptMs = 8 * 86_400_000
/** Of parts that were removed: as much as the store gathers in memory before it writes a file. */
const mostRemovedBytes = 2 * 1024 ** 2

/**
 * The full syncs of one unit. Parts are staged on disk until all are there; then the whole is compared with the state, side by
 * side, and what differs is written. Parts are settled when that is done: whoever comes after a crash reads them again.
 */
export class Syncs {
  readonly #options: SyncsOptions
  readonly #open = new Map<string, OpenSync>()
  /** Syncs whose parts are on their way to the dead letters. */
  readonly #refusing = new Set<OpenSync>()
  readonly #timeoutMs: number
  #staged = 0
  /** Bytes of parts that were removed since the room was given back. */
  #removedBytes = 0
  #isEnding = false

  constructor(options: SyncsOptions) {
    this.#options = options
    this.#timeoutMs = options.ports.syncTimeoutMs ?? defaultTimeoutMs
  }

  get hasOpen(): boolean {
    return this.#open.size > 0
  }

  /** Takes a part; where it is the last, the sync is applied. No change is decided meanwhile. */
  async take(record: HeldRecord, content: RecordContent, part: Part): Promise<void> {
    const mark = endedSyncKey(part)
    const sync = this.#open.get(mark) ?? (await this.#begin(mark, record, content, part))
    if (sync === undefined) return
    const fault = this.#faultOf(sync, part, record.timestampMs)
    const isHeld = await this.#hold(sync, record, content, part)
    if (this.#isToStop(sync)) {
      this.#open.delete(mark)
      this.#giveBack(sync)
    } else if (fault !== undefined) await this.#refuse(sync, fault.reason, fault.detail)
    else if (!isHeld)
      await this.#refuse(
        sync,
        'sync_inconsistent',
        `Send each part once: there are two of number ${part.part}.`,
      )
    else if (sync.digests.size === part.parts) await this.#apply(sync)
    else await this.#bound()
  }

  /**
   * Refuses what can't become complete in time. By our clock the log was read to its end at `endSeenMs`; its last record is of
   * `latestMs` by the broker's.
   */
  async expire({ latestMs, endSeenMs }: { latestMs: number; endSeenMs: number }): Promise<void> {
    for (const sync of this.#open.values()) {
      if (Math.max(latestMs - sync.firstMs, endSeenMs - sync.takenMs) <= this.#timeoutMs) continue
      const { digests, part } = sync
      await this.#refuse(
        sync,
        'sync_incomplete',
        `Send the sync again, whole and with a new syncId: ${digests.size} of ${part.parts} parts came within ${inWords(this.#timeoutMs)}.`,
      )
    }
  }

  /** Begins nothing more, and gives back the parts that wait. */
  letGo(isToGo: (record: HeldRecord) => boolean): void {
    for (const [mark, sync] of this.#open) {
      if (!sync.held.some(({ record }) => isToGo(record))) continue
      this.#open.delete(mark)
      this.#giveBack(sync)
    }
  }

  end(): void {
    this.#isEnding = true
    this.letGo(() => true)
    for (const sync of this.#refusing) this.#giveBack(sync)
  }

  #giveBack(sync: OpenSync): void {
    const { held } = sync
    sync.held = []
    for (const { record } of held) record.giveBack()
  }

  async #begin(
    mark: string,
    record: HeldRecord,
    content: RecordContent,
    part: Part,
  ): Promise<OpenSync | undefined> {
    const { store, ports, unit } = this.#options
    const { snapshotAtMs } = part
    const [ended] = await store.getMany([mark])
    const floor = await this.#floorOf(part)
    if (ended === 'applied' || isSame(floor, part)) {
      // The floor outlives a disk, and the next sync replaces it.
      if (ended === undefined) await store.write([{ type: 'put', key: mark, value: 'applied' }])
      record.settle()
      return undefined
    }
    if (ended !== undefined) {
      const reason: AudienceDeadReason = isSyncReason(ended) ? ended : 'sync_incomplete'
      ports.refuse(
        record,
        content,
        reason,
        'Send the sync again with a new syncId: other parts of it were refused.',
      )
      return undefined
    }
    const version: Version = { atMs: snapshotAtMs, isNative: true, partition: unit, offset: record.offset }
    if (floor !== undefined && compareVersions(version, floor.version) < 0) {
      ports.refuse(record, content, 'sync_outdated', outdated)
      return undefined
    }
    const sync: OpenSync = {
      mark,
      part: { ...part, userIds: [] },
      version,
      firstMs: record.timestampMs,
      takenMs: ports.now(),
      digests: new Map(),
      held: [],
      staging: new Staging(store, this.#staged++),
    }
    this.#open.set(mark, sync)
    return sync
  }

  async #floorOf({ spaceId, audienceId }: Part): Promise<SyncFloor | undefined> {
    const { store, ledger } = this.#options
    const key = subjectKey({ kind: 'sync', spaceId, audienceId })
    const [stored] = await store.getMany([key])
    const entry = ledger.held(key, stored)
    return entry?.kind === 'sync' ? entry.state : undefined
  }

  #faultOf(
    sync: OpenSync,
    part: Part,
    timestampMs: number,
  ): { reason: AudienceDeadReason; detail: string } | undefined {
    const { unit, partitions } = this.#options
    const { parts, property, name } = sync.part
    if (timestampMs - sync.firstMs > this.#timeoutMs) {
      return {
        reason: 'sync_incomplete',
        detail: `Send all parts of a sync within ${inWords(this.#timeoutMs)}, with a new syncId.`,
      }
    }
    if (part.parts !== parts || part.property !== property || part.name !== name) {
      return {
        reason: 'sync_inconsistent',
        detail:
          'Use a new syncId for each sync: its parts differ in parts, or in the name or key of the audience.',
      }
    }
    if (part.userIds.some((userId) => partitionOf(userId, partitions) !== unit)) {
      return {
        reason: 'sync_wrong_partition',
        detail: `Write each user to the partition that Java's default partitioner (murmur2) chooses: part ${part.part} has others.`,
      }
    }
    return undefined
  }

  /** Keeps the part. False: another one of its number was there. */
  async #hold(sync: OpenSync, record: HeldRecord, content: RecordContent, part: Part): Promise<boolean> {
    const bytes = content.value ?? Buffer.alloc(0)
    const digest = hash('sha256', bytes, 'base64')
    const before = sync.digests.get(part.part)
    const isRepeat = before?.digest === digest
    const staged = isRepeat
      ? before.staged
      : await sync.staging.add(part.userIds.map(escapeId), Buffer.from(bytes))
    if (before === undefined) sync.digests.set(part.part, { digest, staged })
    const key = content.key === null ? null : Buffer.from(content.key)
    sync.held.push({ record, staged, key, sourceId: filledHeader(content.headers, 'source-id') ?? '' })
    return before === undefined || isRepeat
  }

  /** However many syncs are open, and however large they are. */
  async #bound(): Promise<void> {
    let gathered = 0
    let held = 0
    for (const sync of this.#open.values()) {
      gathered += sync.staging.gathered
      held += sync.held.length
    }
    if (gathered > mostGathered) {
      for (const { staging } of this.#open.values()) if (staging.gathered > 0) await staging.spill()
    }
    if (held <= mostHeldParts) return
    const largest = [...this.#open.values()].reduce((a, b) => (a.held.length >= b.held.length ? a : b))
    await this.#refuse(largest, 'sync_too_large', 'Send larger parts: too many of them wait for others.')
  }

  async #apply(sync: OpenSync): Promise<void> {
    const { ledger, ports, unit } = this.#options
    const startedMs = ports.now()
    ledger.beginSync()
    try {
      await ledger.room(1)
      await ledger.stored()
      const floor = await this.#floorOf(sync.part)
      if (floor !== undefined && compareVersions(sync.version, floor.version) < 0) {
        await this.#refuse(sync, 'sync_outdated', outdated)
        return
      }
      if (await this.#isTakenOf(sync)) {
        await this.#refuse(
          sync,
          'bad_property_name',
          'Set another audienceKey: of some users the property is another audience’s, or a trait’s.',
        )
        return
      }
      if (await this.#isRenamed(sync)) {
        await this.#refuse(
          sync,
          'bad_property_name',
          'Set audienceKey to the property that the audience has had, or end it by an empty sync under its old name: it has members there.',
        )
        return
      }
      const counts = await this.#compare(sync)
      if (counts === undefined || !(await this.#writeFloor(sync))) {
        this.#open.delete(sync.mark)
        this.#giveBack(sync)
        return
      }
      await this.#clear(sync, 'applied')
      this.#open.delete(sync.mark)
      const { held } = sync
      sync.held = []
      for (const { record } of held) record.settle()
      const { spaceId, audienceId, syncId } = sync.part
      ports.observer.synced({ unit, spaceId, audienceId, syncId, ...counts, tookMs: ports.now() - startedMs })
    } finally {
      ledger.endSync()
    }
    await this.#refuseOlder(sync)
  }

  #isToStop({ held }: OpenSync): boolean {
    return this.#isEnding || held.length === 0 || held.some(({ record }) => record.isAbandoned)
  }

  /** Whether some user of the sync has the property from another audience. Mostly nobody else ever wrote it. */
  async #isTakenOf(sync: OpenSync): Promise<boolean> {
    const { store } = this.#options
    const { spaceId, property, audienceId } = sync.part
    const known = await entriesOf(store.range(rangeOf(knownPropertyKey(spaceId, property, ''))))
    if (known.every(([key]) => knownPropertyOf(key).id === audienceId)) return false
    let isTakenOfOne = false
    const claim = { kind: 'audience', id: audienceId, version: sync.version } as const
    await this.#walk(sync, (user, isMember, stored, deletedUpToMs) => {
      const state = this.#heldOf(sync, user, stored)?.state
      if (!isMember || state === undefined || state.version.atMs <= deletedUpToMs) return
      if (isTaken(state, claim, this.#ownerSyncedAt(sync, state.id))) isTakenOfOne = true
    })
    return isTakenOfOne
  }

  /** Of another audience that has the property of a user. */
  #ownerSyncedAt({ part }: OpenSync, id: string): Version | undefined {
    return id === part.audienceId ? undefined : this.#options.ledger.syncedAt(part.spaceId, id)
  }

  /**
   * Whether users of this unit are in the audience by another property, as after a new name without a key of its own: of them
   * the sync can't say that they have left.
   */
  async #isRenamed(sync: OpenSync): Promise<boolean> {
    const { store, ledger } = this.#options
    const { spaceId, property, audienceId } = sync.part
    const idMark = idMarkOf(audienceId)
    const known = await entriesOf(store.range(rangeOf(knownPropertiesPrefix(spaceId))))
    for (const [knownKey] of known) {
      const other = knownPropertyOf(knownKey)
      if (other.id !== audienceId || other.property === property) continue
      const states = store.range(rangeOf(propertyPrefix(spaceId, other.property)))
      try {
        for (let entries = await states.next(entriesAtOnce); entries.length > 0;) {
          const isMember = ([key, text]: readonly [string, string]): boolean =>
            isMemberText(text) && hasIdMark(text, idMark) && ledger.held(key, text) !== undefined
          if (entries.some(isMember)) return true
          entries = await states.next(entriesAtOnce)
        }
      } finally {
        await states.close()
      }
    }
    return false
  }

  #heldOf({ part }: OpenSync, user: string, stored: string | undefined) {
    const { ledger } = this.#options
    const entry = ledger.held(propertyPrefix(part.spaceId, part.property) + user, stored)
    return entry?.kind === 'property' ? entry : undefined
  }

  /** Writes what differs. `undefined`: the unit was left before all was written. */
  async #compare(sync: OpenSync): Promise<{ joined: number; left: number; unchanged: number } | undefined> {
    const { ledger, onTrouble } = this.#options
    const { part, version } = sync
    const { spaceId, property, audienceId, name } = part
    const ofUser = { audienceId, name, version }
    const idMark = idMarkOf(audienceId)
    const counts = { joined: 0, left: 0, unchanged: 0 }
    const writes = { left: 0 }
    const isWhole = await this.#walk(sync, (user, isMember, stored, deletedUpToMs) => {
      if (stored !== undefined && deletedUpToMs === -Infinity && !ledger.hasForeign) {
        const wasMember = isMemberText(stored)
        if (wasMember === isMember && hasIdMark(stored, idMark)) {
          if (isMember) counts.unchanged++
          return
        }
      }
      const held = this.#heldOf(sync, user, stored)
      const ownerSyncedAt = held === undefined ? undefined : this.#ownerSyncedAt(sync, held.state.id)
      const state = decideSync(ofUser, isMember, { held: held?.state, deletedUpToMs, ownerSyncedAt })
      // Waits to be erased. After the sync it would look like a member whom the sync has confirmed.
      const isDead = !isMember && held !== undefined && held.state.version.atMs <= deletedUpToMs
      if (state === undefined && !isDead) {
        if (isMember) counts.unchanged++
        return
      }
      if (isMember) counts.joined++
      else if (!isDead) counts.left++
      const entry: Entry =
        state === undefined
          ? { kind: 'gone', upToMs: deletedUpToMs, offset: -1 }
          : { kind: 'property', state, offset: -1 }
      const subject = { kind: 'property', userId: unescapeId(user), spaceId, property } as const
      const key = subjectKey(subject)
      writes.left++
      const launch = (now: ReturnType<Ledger['held']>): void =>
        ledger.launch({
          subject,
          key,
          entry,
          isEmitting: state !== undefined,
          held: now,
          onEnd(end) {
            writes.left--
            if (end === 'refused')
              onTrouble(new Error('memberships refuses a state: see its max.message.bytes'))
          },
        })
      const flight = ledger.flightOf(key)
      if (flight === undefined) launch(held)
      else flight.wait({ resume: launch, giveBack: () => writes.left-- })
    })
    while (writes.left > 0 && !this.#isEnding) await ledger.room(1)
    return isWhole && !this.#isEnding ? counts : undefined
  }

  /**
   * Walks through the users of the sync and those who have the property, in one order. False: the unit was left in between.
   * `stored` is the state as text.
   */
  async #walk(
    sync: OpenSync,
    visit: (user: string, isMember: boolean, stored: string | undefined, deletedUpToMs: number) => void,
  ): Promise<boolean> {
    const { store, ledger, deletions } = this.#options
    const { spaceId, property } = sync.part
    const prefix = propertyPrefix(spaceId, property)
    const users = new Cursor(await sync.staging.sorted())
    const stateReader = store.range(rangeOf(prefix))
    const states = new Cursor(() => stateReader.next(entriesAtOnce))
    const floorPrefix = deletionPrefix(spaceId)
    const floorReader = deletions.isEmpty ? undefined : store.range(rangeOf(floorPrefix))
    const floors = new Cursor(async () => (await floorReader?.next(entriesAtOnce)) ?? [])
    const floorOf = (user: string): number => {
      const key = floorPrefix + user
      const floor = floors.current
      const entry = floor?.[0] === key ? ledger.held(key, floor[1]) : undefined
      return entry?.kind === 'deletion' ? entry.state.requestedAtMs : -Infinity
    }
    try {
      for (;;) {
        if (users.isToRefill || states.isToRefill) {
          if (this.#isToStop(sync)) return false
          if (users.isToRefill) await users.refill()
          if (states.isToRefill) await states.refill()
        }
        if (ledger.inFlight >= mostInFlight) {
          await ledger.room(mostInFlight / 2)
          if (this.#isToStop(sync)) return false
        }
        const user = users.current
        const entry = states.current
        if (user === undefined && entry === undefined) return true
        const stateUser = entry?.[0].slice(prefix.length)
        const isBoth = user === stateUser
        const isMember = isBoth || (user !== undefined && (stateUser === undefined || user < stateUser))
        const hasState = isBoth || !isMember
        const at = isMember ? user : stateUser
        if (at === undefined) return true
        if (floorReader !== undefined) await advanceTo(floors, floorPrefix + at)
        const deletedUpToMs = floorReader === undefined ? -Infinity : floorOf(at)
        visit(at, isMember, hasState ? entry?.[1] : undefined, deletedUpToMs)
        if (isMember) users.advance()
        if (hasState) states.advance()
      }
    } finally {
      await stateReader.close()
      await floorReader?.close()
    }
  }

  /** From now on nothing older than the sync counts for its audience. False: the unit was left. */
  async #writeFloor({ part, version }: OpenSync): Promise<boolean> {
    const { ledger, store } = this.#options
    const { spaceId, audienceId, syncId } = part
    const subject = { kind: 'sync', spaceId, audienceId } as const
    const key = subjectKey(subject)
    const [stored] = await store.getMany([key])
    const state: SyncFloor = { version, syncId }
    return new Promise((resolve) => {
      const launch = (held: ReturnType<Ledger['held']>): void =>
        ledger.launch({
          subject,
          key,
          entry: { kind: 'sync', state, offset: -1 },
          isEmitting: false,
          held,
          onEnd: (end) => resolve(end === 'acknowledged'),
        })
      const flight = ledger.flightOf(key)
      if (this.#isEnding) resolve(false)
      else if (flight === undefined) launch(ledger.held(key, stored))
      else flight.wait({ resume: launch, giveBack: () => resolve(false) })
    })
  }

  /** Older ones of the audience that are still open can only do harm. */
  async #refuseOlder({ part, version }: OpenSync): Promise<void> {
    for (const other of this.#open.values()) {
      const isOfAudience = other.part.spaceId === part.spaceId && other.part.audienceId === part.audienceId
      if (!isOfAudience || compareVersions(other.version, version) >= 0) continue
      await this.#refuse(other, 'sync_outdated', outdated)
    }
  }

  /** All parts that are here go to the dead letters, and those that still come will. */
  async #refuse(sync: OpenSync, reason: AudienceDeadReason, detail: string): Promise<void> {
    const { store, ports, unit, onTrouble } = this.#options
    const { spaceId, audienceId, syncId } = sync.part
    this.#open.delete(sync.mark)
    if (this.#isToStop(sync)) {
      this.#giveBack(sync)
      return
    }
    this.#refusing.add(sync)
    await store.write([{ type: 'put', key: sync.mark, value: reason }])
    ports.observer.syncRefused({ unit, spaceId, audienceId, syncId }, reason)
    // Its parts were given back meanwhile.
    if (this.#isEnding) return
    void this.#refuseParts(sync, reason, detail)
      .catch((error: unknown) => onTrouble(error))
      .finally(() => this.#refusing.delete(sync))
  }

  /** One after the other: together they may be any size. */
  async #refuseParts(sync: OpenSync, reason: AudienceDeadReason, detail: string): Promise<void> {
    for (let [part] = sync.held; part !== undefined; [part] = sync.held) {
      const { record, staged, key, sourceId } = part
      let bytes: Buffer | undefined
      try {
        bytes = await sync.staging.partBytes(staged)
      } catch (error) {
        if (this.#isEnding) return
        throw error
      }
      // All that was left was given back meanwhile.
      if (sync.held[0] !== part) return
      sync.held.shift()
      const paced = new Paced(record)
      this.#options.ports.refuse(
        paced,
        { key, value: bytes ?? null, headers: { 'source-id': sourceId } },
        reason,
        detail,
      )
      await paced.end
      if (this.#isEnding) return
    }
    await this.#clear(sync, reason)
  }

  /** Removes what was staged, and remembers what came of the sync; forgets that of syncs long gone. */
  async #clear({ staging, mark, part }: OpenSync, ended: AudienceDeadReason | 'applied'): Promise<void> {
    const { store, ports } = this.#options
    const operations: StoreOperation[] = [{ type: 'put', key: mark, value: ended }]
    for (const operation of staging.removal()) {
      operations.push(operation)
      if (operations.length >= operationsAtOnce) await store.write(operations.splice(0))
    }
    const { spaceId, audienceId } = part
    for (const [key] of await entriesOf(store.range(rangeOf(endedSyncsPrefix(spaceId, audienceId))))) {
      const isOld = ports.now() - snapshotOfEnded(key) > endedKeptMs
      if (isOld && key !== mark) operations.push({ type: 'del', key })
    }
    await store.write(operations)
    this.#giveRoomBack(staging.bytes)
  }

  /**
   * What is removed lies among the first keys, where nothing is written but by the next sync: the store would keep it until then,
   * and it is twice what the states of the same users take. That of small syncs isn't worth the work each time.
   */
  #giveRoomBack(removedBytes: number): void {
    this.#removedBytes += removedBytes
    if (this.#removedBytes < mostRemovedBytes) return
    this.#removedBytes = 0
    // Nobody waits for it.
    this.#options.store.compact(anyStaged).catch(this.#options.onTrouble)
  }
}

function inWords(timeoutMs: number): string {
  const minutes = timeoutMs / 60_000
  return Number.isInteger(minutes) && minutes > 1 ? `${minutes} minutes` : `${timeoutMs / 1_000} seconds`
}

const entriesAtOnce = 1_000
const operationsAtOnce = 1_000
const outdated =
  'Nothing has to be done where a newer sync of the audience was meant: it was applied already.'

const syncReasons: ReadonlySet<string> = new Set<AudienceDeadReason>([
  'sync_incomplete',
  'sync_outdated',
  'sync_inconsistent',
  'sync_too_large',
  'sync_wrong_partition',
  'bad_property_name',
])

function isSyncReason(text: string): text is AudienceDeadReason {
  return syncReasons.has(text)
}

function isSame(floor: SyncFloor | undefined, { snapshotAtMs, syncId }: Part): boolean {
  return floor !== undefined && floor.version.atMs === snapshotAtMs && floor.syncId === syncId
}

/** To the first entry whose key isn't below `key`. */
async function advanceTo(cursor: Cursor<readonly [key: string, value: string]>, key: string): Promise<void> {
  while (cursor.isToRefill || (cursor.current !== undefined && cursor.current[0] < key)) {
    if (cursor.isToRefill) await cursor.refill()
    else cursor.advance()
  }
}

async function entriesOf(reader: RangeReader): Promise<(readonly [key: string, value: string])[]> {
  const all: (readonly [key: string, value: string])[] = []
  try {
    for (let entries = await reader.next(1_000); entries.length > 0; entries = await reader.next(1_000)) {
      all.push(...entries)
    }
  } finally {
    await reader.close()
  }
  return all
}
