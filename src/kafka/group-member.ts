import { isOfOtherTopics } from './assignment.ts'
import type { Claim } from './claim.ts'
import { type ClusterView, createClusterView } from './cluster-view.ts'
import { Commits, type News } from './commits.ts'
import type { ConsumerOptions, GroupConsumer, RecordContent } from './consumer.ts'
import { Coordinator } from './coordinator.ts'
import { type FeedOptions, Gate, longestWaitMs } from './feed.ts'
import { createFetcher, type Fetcher, logLostRecords, logOtherLog } from './fetcher.ts'
import { FormerSelf } from './former-self.ts'
import { GroupWatch } from './group-watch.ts'
import { Handover } from './handover.ts'
import { Leaving } from './leaving.ts'
import { LoanedRecord } from './loaned-record.ts'
import { type Assigned, Membership } from './membership.ts'
import { OneAtATime } from './one-at-a-time.ts'
import { OwnedPartitions } from './owned-partitions.ts'
import type { Partition } from './partition.ts'
import type { Truncation } from './positions.ts'
import { UnitTenures } from './unit-tenures.ts'

/** A commit given up may still reach a broker that hangs, after a newer one: all is said again by then. */
const commitAgainMs = 15_000

/**
 * The member of a group behind `GroupConsumer`: it owns which partitions it has, and which of them leave.
 * Offsets are committed here alone.
 */
export class GroupMember implements GroupConsumer {
  readonly #options: ConsumerOptions
  readonly #view: ClusterView
  readonly #fetcher: Fetcher
  readonly #coordinator: Coordinator
  readonly #membership: Membership
  readonly #commits: Commits
  readonly #handover: Handover
  readonly #watch: GroupWatch
  readonly #units: UnitTenures
  readonly #owned: OwnedPartitions
  readonly #leaving: Leaving
  readonly #formerSelf: FormerSelf
  #commitTimer: NodeJS.Timeout | undefined
  readonly #gate = new Gate()
  /** Counts joins: what was begun in an earlier one must not touch the partitions of this one. */
  #joins = 0
  /** What this member was given, and when: it tells the group, so that it keeps it. */
  #assigned: Pick<Claim, 'units' | 'sinceMs'> = { units: [], sinceMs: 0 }
  #lastCommitMs = 0
  /** When all is committed once more, in epoch milliseconds; 0 where nobody doubts what the group has. */
  #commitAgainAtMs = 0
  readonly #committing = new OneAtATime(() => this.#commitNews())

  constructor(options: ConsumerOptions) {
    const { kafka, groupId, instanceId, sessionTimeoutMs, handoverMs, partitions, log } = options
    const topics = options.topics.map(({ topic }) => topic)
    this.#options = options
    this.#owned = new OwnedPartitions(options.topics)
    this.#leaving = new Leaving(handoverMs)
    this.#formerSelf = new FormerSelf({ instanceId, settleMs: handoverMs, log })
    this.#view = createClusterView({ kafka, topics, partitions, log })
    this.#fetcher = createFetcher({
      view: this.#view,
      longestWaitMs: () => longestWaitMs(this.#owned.each),
      log,
    })
    this.#coordinator = new Coordinator(kafka, groupId, topics[0] ?? '')
    this.#commits = new Commits({ coordinator: this.#coordinator, groupId, log })
    this.#membership = new Membership({
      kafka,
      groupId,
      instanceId,
      leaveOnStop: options.leaveOnStop ?? false,
      sessionTimeoutMs,
      topics,
      partitions,
      coordinator: this.#coordinator,
      claim: () => this.#claim(),
      onAssigned: (assigned) => this.#joined(assigned),
      onExpelled: () => this.#expelled(),
      onSilent: (isSilent) => {
        this.#gate.isSilent = isSilent
        this.#applyPauses()
        options.onSilent?.(isSilent)
      },
      onFatal: options.onFatal,
      log,
    })
    this.#watch = new GroupWatch({
      coordinator: this.#coordinator,
      groupId,
      topics,
      ownMemberId: () => this.#membership.identity?.memberId,
      isFormerProcess: options.isFormerProcess,
      settleMs: handoverMs,
      log,
    })
    this.#units = new UnitTenures({
      prepare: (unit) => options.prepare?.(unit) ?? Promise.resolve(),
      released: (unit) => options.released?.(unit),
      handoverMs,
      onPrepared: (unit) => void this.#handover.beginPrepared(unit),
      onTrouble: (error, unit) =>
        log.warn({ err: error, unit }, 'the state of a unit can not be read or kept, trying again'),
    })
    this.#handover = new Handover({
      handoverMs,
      onTruncation: options.onTruncation,
      view: this.#view,
      units: this.#units,
      owned: () => this.#owned.all,
      joins: () => this.#joins,
      mayBegin: () => !this.#membership.isJoining,
      isQuiet: () => this.#gate.isQuiet,
      isBusyHere: (partition, stored) =>
        this.#leaving.has(partition.topic, partition.id) ||
        (this.#joins === 1 && this.#formerSelf.mayHaveOut(partition, stored)),
      readClaims: () => this.#watch.claims(),
      readStored: (waiting) => this.#commits.read(waiting),
      commit: (news) => this.#sendCommit(news),
      feed: (partition) => this.#feedOf(partition),
      onBegun: (partition, feed) => this.#owned.begin(partition, feed),
      onLost: (partition, from, to, count) => {
        logLostRecords(log, { topic: partition.topic, partition: partition.id }, from, to)
        options.onLost?.(partition.topic, count)
      },
      onTruncated: (partition, truncation) => this.#sayTruncated(partition, truncation),
      log,
    })
  }

  async start(): Promise<void> {
    await this.#view.connect()
    this.#membership.start()
    this.#commitTimer = setInterval(() => this.#commitSoon(), this.#options.commitIntervalMs)
  }

  get isResting(): boolean {
    return this.#formerSelf.isResting
  }

  checkInTouch(): boolean {
    return this.#membership.checkInTouch()
  }

  get isJoined(): boolean {
    if (!this.#membership.isMember) return false
    return this.#owned.all.every(
      ({ isWaiting, trouble, isStopped }) => !isWaiting || (trouble !== undefined && !isStopped),
    )
  }

  get obstacles(): readonly string[] {
    const { foreign } = this.#watch
    const stopped = this.#owned.all.filter(({ isStopped }) => isStopped)
    return [
      ...(foreign.length > 0
        ? [`others with ${foreign.join(', ')} are in the consumer group ${this.#options.groupId}`]
        : []),
      ...stopped.flatMap(({ trouble }) => (trouble === undefined ? [] : [trouble])),
    ]
  }

  get troubled(): ReadonlyMap<string, number> {
    return this.#owned.troubled
  }

  get preparing(): readonly number[] {
    return this.#units.preparing
  }

  get partitions(): Iterable<Partition> {
    for (const partition of this.#owned.all) this.#learnEnd(partition)
    return this.#owned.all
  }

  get lastCommitMs(): number {
    return this.#lastCommitMs
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

  quiesce(): void {
    this.#gate.isQuiet = true
    this.#applyPauses()
  }

  commit(): Promise<void> {
    return this.#committing.run()
  }

  async stop(): Promise<void> {
    this.quiesce()
    clearInterval(this.#commitTimer)
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

  #notNow(error: unknown): void {
    this.#options.log.warn({ err: error }, 'a request to Kafka failed, trying again')
  }

  /** Asked for at each try to join. */
  #claim(): Omit<Claim, 'partitions'> {
    const busy = [...this.#owned.begun, ...this.#leaving.all]
    return {
      ...this.#assigned,
      busy: unitsOf(busy),
      busyWithState: unitsOf(busy.filter(({ needsState }) => needsState)),
    }
  }

  #joined({ isAnew, partitions: assignment }: Assigned): void {
    this.#joins++
    if (this.#joins > 1) this.#options.onRebalanced?.()
    // Under a new name this member was out of the group: others may have had its partitions meanwhile.
    if (isAnew) this.#lose(this.#owned.all)
    const before = new Set(this.#owned.all)
    const given = this.#options.topics.flatMap(({ topic }) =>
      (assignment.get(topic) ?? [])
        .filter((id) => id < this.#options.partitions)
        .map((id) => this.#owned.add(topic, id)),
    )
    const kept = new Set(given)
    this.#lose([...before].filter((partition) => !kept.has(partition)))
    const gained = given.filter((partition) => !before.has(partition)).length
    // Of other topics it may have partitions of more units, where a ladder changes step by step.
    const units = [...(assignment.get(this.#options.topics[0]?.topic ?? '') ?? [])]
    this.#assigned = { units, sinceMs: Date.now() }
    this.#options.onAssigned(unitsOf(given))
    this.#applyPauses()
    this.#options.log.info(
      { joins: this.#joins, partitions: given.length, gained, leaving: this.#leaving.size },
      'joined the group',
    )
    this.#watch.joined()
    if (this.#leaving.size > 0) this.#commitSoon()
    this.#handover.takeOver(this.#owned.waiting)
    // A static member that comes back is given what it had, though it may subscribe to other topics now.
    const isStatic = this.#options.instanceId !== undefined
    const topics = this.#options.topics.map(({ topic }) => topic)
    if (isAnew && isStatic && isOfOtherTopics(assignment, topics)) this.#membership.joinAgain()
  }

  #lose(lost: readonly Partition[]): void {
    for (const partition of lost) {
      this.#owned.remove(partition)
      partition.isLost = true
      partition.lostAtMs = Date.now()
      // Its next owner waits for the final commit.
      partition.onIdle = () => this.#commitSoon()
      if (!partition.isWaiting) this.#leaving.add(partition)
      if (partition.needsState) this.#units.lose(partition.id)
    }
    this.#releaseUnits()
  }

  /** Of the units that were lost, those of which nothing is out any more. */
  #releaseUnits(): void {
    const out = new Set(this.#leaving.all.map(({ id }) => id))
    this.#units.release((unit) => !out.has(unit))
  }

  /**
   * The group has gone on without this member, and gave its partitions to others: nothing more is begun of
   * them.
   */
  #expelled(): void {
    for (const partition of [...this.#owned.all, ...this.#leaving.all]) partition.isElsewhere = true
    this.#lose(this.#owned.all)
    this.#options.onAssigned([])
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

  readonly #onRecord: FeedOptions['onRecord'] = (partition, record) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs' type, which leaves out that a header may be null
    const content = record as object as RecordContent
    this.#options.onRecord(new LoanedRecord(partition, record.offset, record.timestampMs), content)
  }

  /**
   * Begins with the log that is there now; with all of its unit that needs the state which was made of the
   * former one.
   */
  #renew(partition: Partition, truncation: Truncation): void {
    this.#sayTruncated(partition, truncation)
    const renewed = this.#owned.all.filter(
      (one) => one === partition || (partition.needsState && one.needsState && one.id === partition.id),
    )
    this.#lose(renewed)
    this.#leaving.forget(partition)
    const fresh = renewed.map(({ topic, id }) => this.#owned.add(topic, id))
    for (const one of fresh) {
      if (one.topic !== partition.topic) continue
      one.knownBelow = truncation.at
      // The commit may be of the former log too.
      one.isTruncationReported = true
    }
    // What waits of the former log is let go.
    this.#options.onAssigned(unitsOf(this.#owned.all))
    this.#handover.takeOver(fresh)
  }

  #sayTruncated({ topic, id }: Partition, { at, from, reason }: Truncation): void {
    const { log, onTruncation, onTruncated } = this.#options
    logOtherLog(log, { topic, partition: id, from, at, reason, onTruncation })
    onTruncated?.(topic)
  }

  #applyPauses(): void {
    for (const feed of this.#owned.feeds) feed.applyPause()
  }

  #commitSoon(): void {
    this.commit().catch((error: unknown) => this.#notNow(error))
  }

  async #commitNews(): Promise<void> {
    const leaving = await this.#leaving.stillOurs((partitions) => this.#commits.read(partitions))
    const isAgain = this.#commitAgainAtMs > 0 && Date.now() >= this.#commitAgainAtMs
    if (isAgain) this.#commitAgainAtMs = 0
    // From here to the sending nothing may wait: what is sent is what is.
    const news = [...this.#owned.begun, ...leaving]
      .map((partition) => ({ partition, standing: partition.standing(this.#gate.isQuiet) }))
      .filter(({ partition, standing }) => isAgain || partition.isNews(standing))
    if (news.length > 0) await this.#sendCommit(news)
    // With nothing to commit all is committed, as long as this member is known to the group.
    this.#lastCommitMs = Math.max(this.#lastCommitMs, this.#membership.heardAtMs)
    this.#leaving.letGo()
    this.#releaseUnits()
    this.#applyPauses()
  }

  async #sendCommit(news: readonly News[]): Promise<ReadonlySet<Partition>> {
    const { identity } = this.#membership
    if (identity === undefined)
      throw new Error('the commit failed: the group does not know this member (any more)')
    try {
      const refused = await this.#commits.write(news, identity)
      this.#membership.heard(identity)
      return refused
    } catch (error) {
      this.#options.onCommitFailed?.()
      this.#commitAgainAtMs = Date.now() + commitAgainMs
      this.#membership.refused(error, identity)
      throw error
    }
  }

  #learnEnd(partition: Partition): void {
    const end = this.#owned.feedOf(partition)?.end
    if (end !== undefined && end.atMs > 0) partition.endsAt(end.offset, end.atMs)
  }
}

function unitsOf(partitions: readonly Partition[]): number[] {
  return [...new Set(partitions.map(({ id }) => id))]
}
