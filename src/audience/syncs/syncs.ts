import { hash } from 'node:crypto'
import type { HeldRecord, RecordContent } from '../../message/held-record.ts'
import type { AudiencePorts } from '../audience-ports.ts'
import type { Part } from '../records/change-record.ts'
import type { AudienceDeadReason } from '../../message/dead-letter-reasons.ts'
import { sourceIdOf } from '../../message/record-headers.ts'
import type { KeyFilter } from '../store/key-filter.ts'
import type { Ledger } from '../store/ledger.ts'
import { inWords, type OpenSync, partFault } from './open-sync.ts'
import { Staging } from './staging.ts'
import type { SyncFloor } from '../records/state-record.ts'
import type { StateStore } from '../store/store.ts'
import { endedSyncKey, escapeId, storeKeyOf } from '../store/store-keys.ts'
import { SyncCleanup } from './sync-cleanup.ts'
import { SyncComparison } from './sync-comparison.ts'
import { compareVersions, type Version } from '../records/version.ts'

export type SyncPorts = AudiencePorts & {
  /**
   * The time within which all parts of a sync must come, in milliseconds. It starts with the first part.
   * Default: 10 minutes.
   */
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

const defaultTimeoutMs = 10 * 60_000
/** Limit on the users that all open syncs together keep in memory. */
const mostGathered = 16_384
/** Limit on the parts that wait in all open syncs together. */
const mostHeldParts = 200_000

/**
 * Applies the syncs of one unit. The parts of a sync are staged on disk until all parts have arrived. Then
 * the whole sync is compared with the states of the unit, side by side, and the differences are written. The
 * parts are settled only after the differences have been written, so after a crash the parts are read again.
 */
export class Syncs {
  readonly #options: SyncsOptions
  readonly #open = new Map<string, OpenSync>()
  /** Syncs whose parts are on their way to the dead letters. */
  readonly #refusing = new Set<OpenSync>()
  readonly #timeoutMs: number
  #staged = 0
  readonly #comparison: SyncComparison
  readonly #cleanup: SyncCleanup
  #isEnding = false

  constructor(options: SyncsOptions) {
    this.#options = options
    this.#timeoutMs = options.ports.syncTimeoutMs ?? defaultTimeoutMs
    const isEnding = (): boolean => this.#isEnding
    this.#comparison = new SyncComparison({ ...options, isEnding, isToStop: (sync) => this.#isToStop(sync) })
    this.#cleanup = new SyncCleanup({ ...options, isEnding })
  }

  get hasOpen(): boolean {
    return this.#open.size > 0
  }

  /**
   * Adds a part of a sync. Applies the sync if this is its last missing part. The caller must not process a
   * change before the promise has resolved.
   */
  async take(record: HeldRecord, content: RecordContent, part: Part): Promise<void> {
    const mark = endedSyncKey(part)
    const sync = this.#open.get(mark) ?? (await this.#begin(mark, record, content, part))
    if (sync === undefined) return
    const { unit, partitions } = this.#options
    const timeoutMs = this.#timeoutMs
    const fault = partFault(sync, part, record.timestampMs, { unit, partitions, timeoutMs })
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
   * Refuses syncs that can't become complete in time. `endSeenMs` is the time at which `audience-changes` was
   * last read to its end, by this machine's clock. `latestMs` is the append time of the last change or part
   * that the unit has processed, by the broker's clock.
   */
  async expire({ latestMs, endSeenMs }: { latestMs: number; endSeenMs: number }): Promise<void> {
    const { ports } = this.#options
    // This machine's clock may be set while a sync waits, so only the time since the end was seen is taken
    // from it. This time is negative if the clock was set back since then.
    const agoMs = ports.now() - endSeenMs
    const endSeenAtMs = agoMs < 0 ? -Infinity : ports.monotonicMs() - agoMs
    for (const sync of this.#open.values()) {
      if (Math.max(latestMs - sync.firstMs, endSeenAtMs - sync.takenMs) <= this.#timeoutMs) continue
      const { digests, part } = sync
      await this.#refuse(
        sync,
        'sync_incomplete',
        `Send the sync again, whole and with a new syncId: ${digests.size} of ${part.parts} parts came within ${inWords(this.#timeoutMs)}.`,
      )
    }
  }

  /**
   * Drops each open sync with a part that `isToGo` selects. Leaves all parts of this sync to the next owner.
   */
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
      // The floor shows that this sync was applied, but the next sync will replace the floor. So an entry on
      // disk is added, which also shows this.
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
      takenMs: ports.monotonicMs(),
      digests: new Map(),
      held: [],
      staging: new Staging(store, this.#staged++),
    }
    this.#open.set(mark, sync)
    return sync
  }

  async #floorOf({ spaceId, audienceId }: Part): Promise<SyncFloor | undefined> {
    const { store, ledger } = this.#options
    const key = storeKeyOf({ kind: 'sync', spaceId, audienceId })
    const [stored] = await store.getMany([key])
    const entry = ledger.held(key, stored)
    return entry?.kind === 'sync' ? entry.state : undefined
  }

  /** Keeps a part. Returns false if a part with the same number and another content was kept before. */
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
    sync.held.push({ record, staged, key, sourceId: sourceIdOf(content.headers) ?? '' })
    return before === undefined || isRepeat
  }

  /** Limits the memory of all open syncs, whatever their number and size. */
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
    const startedMs = ports.monotonicMs()
    ledger.beginSync()
    try {
      await ledger.room(1)
      await ledger.stored()
      const floor = await this.#floorOf(sync.part)
      if (floor !== undefined && compareVersions(sync.version, floor.version) < 0) {
        await this.#refuse(sync, 'sync_outdated', outdated)
        return
      }
      if (await this.#comparison.isTakenByOther(sync)) {
        await this.#refuse(
          sync,
          'bad_property_name',
          'Set another audienceKey: of some users the property is another audience’s, or a trait’s.',
        )
        return
      }
      if (await this.#comparison.isRenamed(sync)) {
        await this.#refuse(
          sync,
          'bad_property_name',
          'Set audienceKey to the property that the audience has had, or end it by an empty sync under its old name: it has members there.',
        )
        return
      }
      const counts = await this.#comparison.writeDifferences(sync)
      if (counts === undefined || !(await this.#writeFloor(sync))) {
        this.#open.delete(sync.mark)
        this.#giveBack(sync)
        return
      }
      await this.#cleanup.clear(sync, 'applied')
      this.#open.delete(sync.mark)
      const { held } = sync
      sync.held = []
      for (const { record } of held) record.settle()
      const { spaceId, audienceId, syncId } = sync.part
      const tookMs = Math.round(ports.monotonicMs() - startedMs)
      ports.observer.synced({ unit, spaceId, audienceId, syncId, ...counts, tookMs })
    } finally {
      ledger.endSync()
    }
    await this.#refuseOlder(sync)
  }

  #isToStop({ held }: OpenSync): boolean {
    return this.#isEnding || held.length === 0 || held.some(({ record }) => record.isAbandoned)
  }

  /**
   * Writes the floor of a sync. From then on, no older value of the sync's audience counts. Resolves with
   * false if this owner has left the unit.
   */
  async #writeFloor({ part, version }: OpenSync): Promise<boolean> {
    const { ledger, store } = this.#options
    const { spaceId, audienceId, syncId } = part
    const stateKey = { kind: 'sync', spaceId, audienceId } as const
    const key = storeKeyOf(stateKey)
    const [stored] = await store.getMany([key])
    const state: SyncFloor = { version, syncId }
    return new Promise((resolve) => {
      const launch = (held: ReturnType<Ledger['held']>): void =>
        ledger.launch({
          stateKey,
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

  /** Refuses older syncs of the same audience that are still open. They must not be applied any more. */
  async #refuseOlder({ part, version }: OpenSync): Promise<void> {
    for (const other of this.#open.values()) {
      const isOfAudience = other.part.spaceId === part.spaceId && other.part.audienceId === part.audienceId
      if (!isOfAudience || compareVersions(other.version, version) >= 0) continue
      await this.#refuse(other, 'sync_outdated', outdated)
    }
  }

  /**
   * Sends all parts of a sync that have arrived to the dead letters. Stores the refusal, so that later parts
   * of the sync are refused too.
   */
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
    // `end` has left the parts of the sync to the next owner in the meantime.
    if (this.#isEnding) return
    void this.#cleanup
      .refuseParts(sync, reason, detail)
      .catch((error: unknown) => onTrouble(error))
      .finally(() => this.#refusing.delete(sync))
  }
}

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
