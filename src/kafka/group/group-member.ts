import { isOfOtherTopics } from './assignment.ts'
import type { Claim } from './claim.ts'
import { type ClusterView, createClusterView } from '../cluster/cluster-view.ts'
import { Commits } from '../partitions/commits.ts'
import { Committer } from './committer.ts'
import { Coordinator } from '../cluster/coordinator.ts'
import { type FeedOptions, Gate, longestWaitMs } from '../partitions/feed.ts'
import { createFetcher, type Fetcher, logLostRecords, logOtherLog } from '../fetch/fetcher.ts'
import { Predecessor } from './predecessor.ts'
import { GroupWatch } from './group-watch.ts'
import { Beginning } from './beginning.ts'
import { EarlyPartition } from '../partitions/early-partition.ts'
import { LostPartitions } from '../partitions/lost-partitions.ts'
import { LoanedRecord } from '../partitions/loaned-record.ts'
import { type Assigned, Membership } from './membership.ts'
import { OwnedPartitions } from '../partitions/owned-partitions.ts'
import type { Partition } from '../partitions/partition.ts'
import { PulledPartition } from '../partitions/pulled-partition.ts'
import type { PartitionState } from '../partitions/partition-state.ts'
import type { Truncation } from '../fetch/positions.ts'
import type { StoredCommit } from '../wire/stored-commit.ts'
import { UnitTenures } from './unit-tenures.ts'
import type { ConsumerOptions, GroupConsumer } from './consumer-ports.ts'
import type { RecordContent } from '../../message/held-record.ts'

/** The name under which a partition is stopped until the worker has read what was passed on. */
const inheriting = 'inherited'

/** One member of a group, with its partitions and the lost partitions that it has still to finish. */
export class GroupMember implements GroupConsumer {
  readonly #options: ConsumerOptions
  readonly #view: ClusterView
  readonly #fetcher: Fetcher
  readonly #coordinator: Coordinator
  readonly #membership: Membership
  readonly #commits: Commits
  readonly #beginning: Beginning
  readonly #watch: GroupWatch
  readonly #units: UnitTenures
  readonly #owned: OwnedPartitions
  readonly #lostPartitions: LostPartitions
  readonly #predecessor: Predecessor
  readonly #committer: Committer
  readonly #gate = new Gate()
  /**
   * The number of joins. Work that began before the latest join must not touch the latest join's partitions.
   */
  #joins = 0
  /** The units that this member was given, and the time when it was given them. The claim contains both. */
  #assigned: Pick<Claim, 'units' | 'sinceMs'> = { units: [], sinceMs: 0 }

  constructor(options: ConsumerOptions) {
    const { kafka, groupId, instanceId, handoverMs, partitions, log } = options
    const topics = topicsOf(options)
    this.#options = options
    this.#owned = new OwnedPartitions(options.topics, options.onInherited !== undefined)
    this.#lostPartitions = new LostPartitions(handoverMs)
    this.#predecessor = new Predecessor({ instanceId, settleMs: handoverMs, log })
    this.#view = createClusterView({ kafka, topics, partitions, log })
    this.#fetcher = createFetcher({
      view: this.#view,
      longestWaitMs: () => longestWaitMs(this.#owned.feeds),
      log,
    })
    this.#coordinator = new Coordinator(kafka, groupId, topics[0] ?? '')
    this.#commits = new Commits({ coordinator: this.#coordinator, groupId, log })
    this.#membership = this.#openMembership()
    this.#committer = this.#openCommitter()
    this.#watch = this.#openWatch()
    this.#units = this.#openUnits()
    this.#beginning = this.#openBeginning()
  }

  #openMembership(): Membership {
    const { kafka, groupId, instanceId, sessionTimeoutMs, partitions, onSilent, onFatal, log } = this.#options
    return new Membership({
      kafka,
      groupId,
      instanceId,
      leaveOnStop: this.#options.leaveOnStop ?? false,
      sessionTimeoutMs,
      topics: topicsOf(this.#options),
      partitions,
      coordinator: this.#coordinator,
      claim: () => this.#claim(),
      onAssigned: (assigned) => this.#joined(assigned),
      onExpelled: () => this.#expelled(),
      onSilent: (isSilent) => {
        this.#gate.isSilent = isSilent
        this.#applyPauses()
        onSilent?.(isSilent)
      },
      onFatal,
      log,
    })
  }

  #openCommitter(): Committer {
    const { commitIntervalMs, onCommitFailed, log } = this.#options
    return new Committer({
      commits: this.#commits,
      membership: this.#membership,
      owned: this.#owned,
      lostPartitions: this.#lostPartitions,
      everyMs: commitIntervalMs,
      isStopping: () => this.#gate.isStopping,
      onCommitted: () => {
        this.#releaseUnits()
        this.#applyPauses()
      },
      onFailed: () => onCommitFailed?.(),
      onTrouble: (error) => log.warn({ err: error }, 'committing offsets failed, trying again'),
    })
  }

  #openWatch(): GroupWatch {
    const { groupId, isFormerProcess, handoverMs, log } = this.#options
    return new GroupWatch({
      coordinator: this.#coordinator,
      groupId,
      topics: topicsOf(this.#options),
      ownMemberId: () => this.#membership.identity?.memberId,
      isFormerProcess,
      settleMs: handoverMs,
      log,
    })
  }

  #openUnits(): UnitTenures {
    const { prepare, released, handoverMs, log } = this.#options
    return new UnitTenures({
      prepare: (unit) => prepare?.(unit) ?? Promise.resolve(),
      released: (unit) => released?.(unit),
      handoverMs,
      onPrepared: (unit) => void this.#beginning.beginPrepared(unit),
      onTrouble: (error, unit) =>
        log.warn({ err: error, unit }, 'the state of a unit can not be read or kept, trying again'),
    })
  }

  #openBeginning(): Beginning {
    const { handoverMs, onTruncation, onLost, log } = this.#options
    return new Beginning({
      handoverMs,
      onTruncation,
      view: this.#view,
      units: this.#units,
      owned: () => this.#owned.all,
      joins: () => this.#joins,
      mayBegin: () => !this.#membership.isJoining,
      isStopping: () => this.#gate.isStopping,
      isBusyHere: (partition, stored) => this.#isBusyHere(partition, stored),
      readClaims: () => this.#watch.claims(),
      readStored: (waiting) => this.#commits.read(waiting),
      commit: (news) => this.#committer.send(news),
      feed: (partition) => this.#feedOf(partition),
      onBegun: (partition, feed) => {
        this.#holdUntilRead(partition)
        this.#owned.begin(partition, feed)
      },
      onLost: (partition, from, to, count) => {
        logLostRecords(log, { topic: partition.topic, partition: partition.id }, from, to)
        onLost?.(partition.topic, count)
      },
      onTruncated: (partition, truncation) => this.#sayTruncated(partition, truncation),
      log,
    })
  }

  /** Stops a partition until the worker has read what former owners have passed on. */
  #holdUntilRead(partition: Partition): void {
    const { onInherited, log } = this.#options
    if (partition.inherited === undefined || onInherited === undefined) return
    const { topic, id } = partition
    partition.setFull(inheriting, true)
    void onInherited(partition.inherited)
      .catch((error: unknown) =>
        log.error({ err: error, topic, partition: id }, 'what was passed on is not known'),
      )
      .then(() => {
        partition.forgetInherited()
        partition.setFull(inheriting, false)
        this.#owned.feedOf(partition)?.applyPause()
      })
  }

  /**
   * Returns true if this process, or the killed process that it replaces, may have requests in flight for the
   * partition.
   */
  #isBusyHere(partition: Partition, stored: StoredCommit): boolean {
    if (this.#lostPartitions.has(partition.topic, partition.id)) return true
    return this.#joins === 1 && this.#predecessor.mayHaveInFlight(partition, stored)
  }

  async start(): Promise<void> {
    await this.#view.connect()
    this.#membership.start()
    this.#committer.start()
  }

  get isWaitingForPredecessor(): boolean {
    return this.#predecessor.isAwaited
  }

  checkInTouch(): boolean {
    return this.#membership.checkInTouch()
  }

  get isMember(): boolean {
    return this.#membership.isMember
  }

  get isJoined(): boolean {
    return this.isMember && this.#owned.isStarted
  }

  get obstacles(): readonly string[] {
    const { foreign } = this.#watch
    return [
      ...(foreign.length > 0
        ? [
            `members that read other topics (${foreign.join(', ')}) are in the consumer group ${this.#options.groupId}`,
          ]
        : []),
      ...this.#owned.all.flatMap(({ isStopped, trouble = '' }) => (isStopped && trouble ? [trouble] : [])),
    ]
  }

  get troubled(): ReadonlyMap<string, number> {
    return this.#owned.troubled
  }

  get preparing(): readonly number[] {
    return this.#units.preparing
  }

  get partitions(): Iterable<PartitionState> {
    for (const partition of this.#owned.all) this.#learnEnd(partition)
    return this.#owned.states
  }

  get lastCommitMs(): number {
    return this.#committer.lastCommitMs
  }

  setFull(isFull: boolean): void {
    if (this.#gate.isFull === isFull) return
    this.#gate.isFull = isFull
    this.#applyPauses()
  }

  setCongested(isCongested: boolean): void {
    if (this.#gate.isCongested === isCongested) return
    this.#gate.isCongested = isCongested
    this.#applyPauses()
  }

  setPartitionFull(topic: string, id: number, isFull: boolean, holder = ''): void {
    const partition = this.#owned.get(topic, id)
    if (partition === undefined) return
    partition.setFull(holder, isFull)
    this.#owned.feedOf(partition)?.applyPause()
  }

  endSeenMs(topic: string, id: number): number {
    const partition = this.#owned.get(topic, id)
    if (partition === undefined) return 0
    this.#learnEnd(partition)
    return partition.endSeenMs
  }

  isReadByAll(topic: string): boolean {
    return !this.#watch.unread.has(topic)
  }

  pulled(topic: string, id: number): PulledPartition | undefined {
    const partition = this.#owned.get(topic, id)
    if (partition?.isPulled !== true) return undefined
    return new PulledPartition(partition, (truncation) => this.#renew(partition, truncation))
  }

  early(topic: string, id: number): EarlyPartition | undefined {
    const partition = this.#owned.get(topic, id)
    const feed = partition && this.#owned.feedOf(partition)
    if (feed === undefined || partition?.isWaiting !== false) return undefined
    return new EarlyPartition(partition, feed, this.#gate)
  }

  quiesce(): void {
    this.#gate.isStopping = true
    this.#units.quiesce()
    this.#applyPauses()
  }

  commit(): Promise<void> {
    return this.#committer.commit()
  }

  async stop(): Promise<void> {
    this.quiesce()
    this.#committer.stop()
    this.#watch.stop()
    try {
      await this.#membership.stop()
      for (const feed of this.#owned.feeds) feed.close()
      await this.#fetcher.stop()
      await this.#view.close()
      this.#coordinator.close()
    } finally {
      await this.#units.stop()
    }
  }

  /** Returns the present claim. Called at each try to join. */
  #claim(): Omit<Claim, 'partitions'> {
    const busy = [...this.#owned.begun, ...this.#lostPartitions.all]
    return {
      ...this.#assigned,
      busy: unitsOf(busy),
      busyWithState: unitsOf(busy.filter(({ needsState }) => needsState)),
    }
  }

  #joined({ isAnew, partitions: assignment }: Assigned): void {
    this.#joins++
    if (this.#joins > 1) this.#options.onRebalanced?.()
    // If the member id is new, this member was out of the group, and others may have owned its partitions.
    if (isAnew) this.#lose(this.#owned.all)
    const before = new Set(this.#owned.all)
    // The partitions of the first topic show the units. The owner of a unit has the unit's state, so it reads
    // all topics of the unit, and nothing of other units. A group leader of an earlier version may assign
    // fewer topics, because it doesn't know all of them, and partitions of other units.
    const units = assignment.get(this.#options.topics[0]?.topic ?? '') ?? []
    const readable = units.filter((id) => id < this.#options.partitions)
    const given = this.#options.topics.flatMap(({ topic }) =>
      readable.map((id) => this.#owned.add(topic, id)),
    )
    const kept = new Set(given)
    this.#lose([...before].filter((partition) => !kept.has(partition)))
    const gained = given.filter((partition) => !before.has(partition)).length
    this.#assigned = { units: [...units], sinceMs: Date.now() }
    this.#options.onAssigned(unitsOf(given), this.#membership.identity?.generationId)
    this.#applyPauses()
    this.#options.log.info(
      { joins: this.#joins, partitions: given.length, gained, leaving: this.#lostPartitions.size },
      'joined the group',
    )
    this.#watch.joined()
    if (this.#lostPartitions.size > 0) this.#committer.soon()
    this.#beginning.takeOver(this.#owned.waiting)
    // A static member that comes back gets its old partitions, even if it now subscribes to other topics.
    const isStatic = this.#options.instanceId !== undefined
    const topics = topicsOf(this.#options)
    if (isAnew && isStatic && isOfOtherTopics(assignment, topics)) this.#membership.joinAgain()
  }

  #lose(lost: readonly Partition[]): void {
    for (const partition of lost) {
      this.#owned.remove(partition)
      // The final commit is made soon, because the next owner waits for it.
      partition.lose(() => this.#committer.soon(), performance.now())
      if (!partition.isWaiting) this.#lostPartitions.add(partition)
      if (partition.needsState) this.#units.lose(partition.id)
    }
    this.#releaseUnits()
  }

  /** Releases each lost unit whose lost partitions are all finished. */
  #releaseUnits(): void {
    const out = new Set(this.#lostPartitions.all.map(({ id }) => id))
    this.#units.release((unit) => !out.has(unit))
  }

  /** Abandons all partitions, because the group has removed this member. */
  #expelled(): void {
    for (const partition of [...this.#owned.all, ...this.#lostPartitions.all]) partition.goElsewhere()
    this.#lose(this.#owned.all)
    this.#options.onAssigned([], undefined)
  }

  #feedOf(partition: Partition): FeedOptions {
    return {
      partition,
      fetcher: this.#fetcher,
      gate: this.#gate,
      onRecord: this.#onRecord,
      onLost: ({ topic }, count) => this.#options.onLost?.(topic, count),
      onTruncated: (of, truncation) => this.#renew(of, truncation),
    }
  }

  readonly #onRecord: FeedOptions['onRecord'] = (partition, record, isLate) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs' type, which leaves out that a header may be null
    const content = record as object as RecordContent
    this.#options.onRecord(new LoanedRecord(partition, record.offset, record.timestampMs, isLate), content)
  }

  /**
   * Starts a partition again with its present log. The state of a unit was made from the former logs of its
   * partitions. So if this partition needs the state, all partitions of the unit that need the state start
   * again.
   */
  #renew(partition: Partition, truncation: Truncation): void {
    this.#sayTruncated(partition, truncation)
    const renewed = this.#owned.all.filter(
      (one) => one === partition || (partition.needsState && one.needsState && one.id === partition.id),
    )
    this.#lose(renewed)
    this.#lostPartitions.forget(partition)
    const fresh = renewed.map(({ topic, id }) => this.#owned.add(topic, id))
    for (const one of fresh) {
      if (one.topic !== partition.topic) continue
      // The commit may describe the former log too.
      one.readsAnotherLog(truncation.at)
    }
    // This callback makes the worker drop the waiting records of the former log.
    this.#options.onAssigned(unitsOf(this.#owned.all), this.#membership.identity?.generationId)
    this.#beginning.takeOver(fresh)
  }

  #sayTruncated({ topic, id }: Partition, { at, from, reason }: Truncation): void {
    const { log, onTruncation, onTruncated } = this.#options
    logOtherLog(log, { topic, partition: id, from, at, reason, onTruncation })
    onTruncated?.(topic)
  }

  #applyPauses(): void {
    for (const feed of this.#owned.feeds) feed.applyPause()
  }

  #learnEnd(partition: Partition): void {
    const end = this.#owned.feedOf(partition)?.end
    if (end !== undefined && end.atMs > 0) partition.endsAt(end.offset, end.atMs)
  }
}

function unitsOf(partitions: readonly Partition[]): number[] {
  return [...new Set(partitions.map(({ id }) => id))]
}

function topicsOf({ topics }: ConsumerOptions): string[] {
  return topics.map(({ topic }) => topic)
}
