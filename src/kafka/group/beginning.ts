import { setTimeout as delay } from 'node:timers/promises'
import type { Claim } from './claim.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { describeMoved } from '../wire/commit-binding.ts'
import type { News } from '../partitions/commits.ts'
import { Feed, type FeedOptions } from '../partitions/feed.ts'
import type { Partition } from '../partitions/partition.ts'
import { judgeSettled, locate, type Location, type LogPlace, type Truncation } from '../fetch/positions.ts'
import { memoryOf, noCommit, type StoredCommit } from '../wire/stored-commit.ts'
import { type Ready, takeOver } from './takeover.ts'
import type { UnitTenures } from './unit-tenures.ts'

/**
 * The rule for a partition whose log has been replaced by another log. With `earliest`, the partition is read
 * from the first offset at which the two logs differ. With `stop`, the partition isn't read.
 */
export type OnTruncation = 'earliest' | 'stop'

export type BeginningOptions = {
  readonly handoverMs: number
  readonly onTruncation: OnTruncation
  readonly view: ClusterView
  readonly units: UnitTenures
  readonly owned: () => readonly Partition[]
  /**
   * Returns the number of joins so far. Work that started after an earlier join must not touch the partitions
   * that this member got at a later join.
   */
  readonly joins: () => number
  /**
   * Returns false while a join is under way. If a unit began now, it would be missing from the claim that was
   * sent with this join. The other members would then assume that no requests for the unit are in flight
   * here.
   */
  readonly mayBegin: () => boolean
  /** Returns true once the member stops, so no further partition may begin. */
  readonly isStopping: () => boolean
  /**
   * Returns true if this member, or the killed process that it replaces, may have requests in flight for the
   * partition.
   */
  readonly isBusyHere: (partition: Partition, stored: StoredCommit) => boolean
  /**
   * Reads the claims that other members sent with the last join. Resolves with `undefined` while the group
   * doesn't report them.
   */
  readonly readClaims: () => Promise<readonly Claim[] | undefined>
  readonly readStored: (partitions: readonly Partition[]) => Promise<StoredCommit[]>
  /** Commits, and returns the partitions whose commits were refused. */
  readonly commit: (news: readonly News[]) => Promise<ReadonlySet<Partition>>
  readonly feed: (partition: Partition) => FeedOptions
  readonly onBegun: (partition: Partition, feed: Feed) => void
  readonly onLost: (partition: Partition, from: number, to: number, count: number) => void
  readonly onTruncated: (partition: Partition, truncation: Truncation) => void
  readonly log: Record<'debug' | 'warn' | 'error', (fields: object, message: string) => void>
}

const lookAgainMs = 100
const lookLessOften = 1.5
const longestPauseMs = 1_000

/**
 * Begins the partitions that a join has given to this member. Each partition begins once its previous owner
 * has finished with it.
 */
export class Beginning {
  readonly #options: BeginningOptions
  /** Units whose state is ready, and whose partitions this member is about to begin. */
  readonly #beginning = new Set<number>()

  constructor(options: BeginningOptions) {
    this.#options = options
  }

  /**
   * Takes over the given partitions, none of which has begun yet. Called after each join, and when partitions
   * have to begin again.
   */
  takeOver(waiting: readonly Partition[]): void {
    void this.#takeOver(
      waiting.filter(({ needsState }) => !needsState),
      ({ busy }) => busy,
      (ready) => this.#begin(ready),
    )
    void this.#takeOver(
      waiting.filter(({ needsState, isCleared }) => needsState && !isCleared),
      ({ busyWithState }) => busyWithState,
      (ready) => this.#clear(ready),
    )
  }

  #takeOver(
    partitions: readonly Partition[],
    busyOf: (claim: Claim) => readonly number[],
    begin: (ready: readonly Ready[]) => Promise<void>,
  ): Promise<void> {
    const { handoverMs, readStored, readClaims, isBusyHere, joins, isStopping } = this.#options
    const join = joins()
    return takeOver({
      partitions,
      handoverMs,
      readStored,
      readBusyUnits: async () => {
        const claims = await readClaims()
        return claims && new Set(claims.flatMap(busyOf))
      },
      isBusyHere,
      begin,
      isOver: () => join !== joins() || isStopping(),
      onTrouble: (error) =>
        this.#options.log.warn({ err: error }, 'taking over partitions failed, trying again'),
    })
  }

  /**
   * Marks partitions as cleared, because their previous owners have finished with them. The partitions begin
   * as soon as the states of their units are ready.
   */
  #clear(ready: readonly Ready[]): Promise<void> {
    for (const { partition, stored } of ready) partition.clear(stored)
    for (const unit of new Set(ready.map(({ partition }) => partition.id))) this.#prepare(unit)
    return Promise.resolve()
  }

  /**
   * Prepares a unit once all its partitions are cleared. Until then, a previous owner may still write records
   * of the state.
   */
  #prepare(unit: number): void {
    const needing = this.#options.owned().filter(({ id, needsState }) => id === unit && needsState)
    if (needing.length === 0 || !needing.every(({ isCleared }) => isCleared)) return
    this.#options.units.prepare(unit)
    void this.beginPrepared(unit)
  }

  /**
   * Begins the partitions of a prepared unit. Tries again until all of them have begun or this member no
   * longer owns the unit. A rejoin doesn't end these tries.
   */
  async beginPrepared(unit: number): Promise<void> {
    const { units, isStopping, log } = this.#options
    if (this.#beginning.has(unit)) return
    this.#beginning.add(unit)
    for (let pauseMs = lookAgainMs; units.isPrepared(unit) && !isStopping();) {
      const due = this.#dueOf(unit)
      if (due.length === 0) break
      try {
        await this.#beginNow(due)
      } catch (error) {
        log.warn({ err: error, unit }, 'taking over the partitions of a unit failed, trying again')
        pauseMs = longestPauseMs
      }
      if (due.some(({ isWaiting }) => isWaiting)) await delay(pauseMs)
      pauseMs = Math.min(pauseMs * lookLessOften, longestPauseMs)
    }
    this.#beginning.delete(unit)
  }

  #dueOf(unit: number): readonly Partition[] {
    return this.#options
      .owned()
      .filter(({ id, isCleared, isWaiting }) => id === unit && isCleared && isWaiting)
  }

  async #beginNow(due: readonly Partition[]): Promise<void> {
    const { joins, mayBegin, readStored } = this.#options
    if (!mayBegin()) return
    const join = joins()
    const found = await readStored(due)
    const ready = due.map((partition, index) => ({ partition, stored: found[index] ?? noCommit }))
    if (join === joins() && mayBegin()) await this.#begin(ready)
  }

  #checkMayBegin(): void {
    if (!this.#options.mayBegin()) throw new Error('nothing is begun while the group is being joined')
  }

  /**
   * Begins partitions. Leaves out partitions that this member loses meanwhile. This can also happen without a
   * join. If the log of a partition was replaced, all partitions of the unit that need the state are given up
   * and started again.
   */
  async #begin(ready: readonly Ready[]): Promise<void> {
    const { joins, isStopping, view, commit, onBegun, log } = this.#options
    const join = joins()
    const locations = await locate(view, ready.map(placeOf))
    // Without this refresh, the view would see a change only with its next periodic refresh, up to half a
    // minute later.
    if (locations.some(({ kind }) => kind === 'later')) void view.refresh()
    if (join !== joins()) return
    this.#checkMayBegin()
    const begun = ready.flatMap((one, index) => {
      const found = locations[index]
      if (found === undefined || one.partition.isLost) return []
      const location = asRead(one, found)
      const feed = this.#place(one, location)
      if (feed === undefined) return []
      return [{ partition: one.partition, standing: one.partition.standing(false), feed, one, location }]
    })
    const refused = await commit(begun)
    if (join !== joins() || isStopping()) return
    this.#checkMayBegin()
    for (const { partition, feed, one, location } of begun) {
      if (refused.has(partition) || partition.isLost) continue
      partition.begun()
      const { topic, id, watermark } = partition
      const { offset: stored, metadata } = one.stored
      log.debug({ topic, partition: id, at: watermark.position, stored, metadata }, 'a partition is begun')
      this.#tell(one, location)
      onBegun(partition, feed)
    }
  }

  /**
   * Reports that somebody has moved the commit, that records were lost, or that the log was replaced by
   * another log. Called only after the partition has begun. Before that, several tries to begin the partition
   * may fail, and each of these tries would make the same reports.
   */
  #tell(one: Ready, location: Location): void {
    const { onLost, onTruncated, log } = this.#options
    const { partition, stored } = one
    const { offset: movedTo, moved } = stored
    if (moved !== undefined) {
      const place = { topic: partition.topic, partition: partition.id }
      log.warn({ ...place, from: moved.from, to: movedTo }, describeMoved(moved, movedTo))
    }
    const truncation = truncationOf(one, location)
    if (truncation !== undefined && !partition.isTruncationReported) onTruncated(partition, truncation)
    if (location.kind !== 'retentionWon') return
    const { from, to } = location
    // Records that were settled before retention deleted them aren't lost.
    const settled = memoryOf(stored)?.settledAbove.filter((offset) => offset >= from && offset < to) ?? []
    onLost(partition, from, to, to - from - settled.length)
  }

  /**
   * Sets the offset at which the partition begins, and returns the partition's feed. Returns `undefined` if
   * the partition can't begin now.
   */
  #place(one: Ready, location: Location): Feed | undefined {
    const { partition, stored } = one
    if (location.kind === 'later') {
      this.#trouble(partition, location.reason)
      return undefined
    }
    const { log } = location
    const truncation = truncationOf(one, location)
    if (
      (truncation !== undefined || partition.isTruncationReported) &&
      this.#options.onTruncation === 'stop'
    ) {
      this.#stop(partition, truncation)
      return undefined
    }
    const { below } = judgeSettled(placeOf(one), log)
    partition.findLog({ below, end: log.end, stored, isSame: isCertainlySame(one, location) })
    const offset = location.kind === 'truncated' ? location.at : stored.offset < 0 ? log.start : stored.offset
    const to = location.kind === 'retentionWon' ? location.to : offset
    const leaderEpoch = offset === stored.offset && to === offset ? (stored.leaderEpoch ?? -1) : -1
    const begins = { offset, leaderEpoch, topicId: log.topicId }
    const feed = new Feed(this.#options.feed(partition), begins)
    if (location.kind === 'truncated') partition.beginAnew(stored, offset, feed)
    else partition.begin({ ...stored, offset }, feed)
    if (location.kind === 'retentionWon') partition.passOver(to)
    feed.startAt(partition.watermark.position)
    return feed
  }

  #stop(partition: Partition, truncation: Truncation | undefined): void {
    const isReported = partition.isStopped || partition.isTruncationReported
    if (truncation !== undefined && !isReported) this.#options.onTruncated(partition, truncation)
    partition.standStill(
      `${partition.topic}/${partition.id} is not the log that was read before, and kafka.onTruncation is stop`,
    )
  }

  #trouble(partition: Partition, trouble: string): void {
    if (partition.trouble === undefined) {
      const { topic, id } = partition
      this.#options.log.warn(
        { topic, partition: id, trouble },
        'a partition can not be read yet, trying again',
      )
    }
    partition.cannotBegin(trouble)
  }
}

function placeOf({ partition: { topic, id }, stored }: Ready): LogPlace {
  const { offset, leaderEpoch } = stored
  const memory = memoryOf(stored)
  const last = memory?.settledAbove.at(-1)
  return {
    topic,
    partition: id,
    offset,
    leaderEpoch,
    topicId: memory?.topicId,
    settled: last === undefined ? undefined : { last, leaderEpoch: memory?.settledEpoch ?? -1 },
  }
}

/**
 * Adds to a location what the worker knows of a partition that it reads itself. The commits of such a
 * partition have no leader epochs, so the brokers can't be asked whether the log is still the same below the
 * commit.
 */
function asRead({ partition }: Ready, location: Location): Location {
  const { isPulled, otherFrom } = partition
  if (!isPulled || otherFrom === Infinity || location.kind !== 'goOn') return location
  const { offset: from, log } = location
  return {
    kind: 'truncated',
    at: Math.max(log.start, Math.min(from, otherFrom)),
    from,
    reason: 'diverged',
    log,
  }
}

/**
 * Returns true if brokers have confirmed that the log has the same records below the committed offset: by the
 * topic's id, and by the leader epoch of the last of these records. `locate` has compared both.
 */
function isCertainlySame({ stored }: Ready, location: Location): boolean {
  if (location.kind !== 'goOn' || (stored.leaderEpoch ?? -1) < 0) return false
  const { topicId, epochEnd } = location.log
  return topicId !== undefined && memoryOf(stored)?.topicId === topicId && epochEnd !== undefined
}

/**
 * Returns how the present log differs from the log that the commit describes. Only the offsets from the
 * committed offset on are compared. Returns `undefined` if no difference is known.
 */
function truncationOf(one: Ready, location: Location): Truncation | undefined {
  if (location.kind === 'later') return undefined
  if (location.kind === 'truncated') return location
  const place = placeOf(one)
  const { below, isCutOff } = judgeSettled(place, location.log)
  if (!isCutOff || place.settled === undefined) return undefined
  const { last } = place.settled
  return { at: below, from: last + 1, reason: location.log.end <= last ? 'shorter' : 'diverged' }
}
