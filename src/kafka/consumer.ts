import { setTimeout as delay } from 'node:timers/promises'
import {
  type Admin,
  type Cluster,
  type Consumer,
  type EachBatchPayload,
  type Kafka,
  type KafkaMessage,
  type Offsets,
} from 'kafkajs'
import { createUnitAssigner } from './assigner.ts'
import { type Claim, readClaim } from './claim.ts'
import { CoordinatorLink } from './coordinator-link.ts'
import { dismissFormerSelf, sharedInstance } from './former-self.ts'
import { setLongestWait } from './group-fetch.ts'
import { type Join, joinOf } from './group-join.ts'
import { noCommit, Partition, type Standing, type StoredCommit } from './partition.ts'
import { isUnknownMember } from './protocol-error.ts'
import { type Ready, takeOver } from './takeover.ts'
import { UnitStates } from './unit-states.ts'
import { within } from './within.ts'

/** A record on loan: it isn't committed past before `settle` is called. Call that or `giveBack`, once. */
export type InboundRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** When the broker appended it, in epoch milliseconds. */
  readonly timestampMs: number
  /** It was taken long after it was there to be taken, or due: we are catching up. */
  readonly isLate: boolean
  /** True when the partition has moved to another member: start nothing more for it. */
  readonly isAbandoned: boolean
  /**
   * An owner before this one left without a word, and may have begun with it. Told for topics with `needsState` only, and
   * rather too often than not.
   */
  readonly mayHaveBegun: boolean
  settle(): void
  /** Nothing is done with it here any more, and it isn't settled: the next owner gets it. */
  giveBack(): void
}

/** What a record holds: slices of a whole fetch. Keep none of them, or the fetch stays in memory. */
export type RecordContent = Pick<KafkaMessage, 'key' | 'value' | 'headers'> & {
  /** Why it and those just before it can't be read; there is neither key nor value then. */
  readonly unreadable?: string
}

export type TopicSubscription = {
  topic: string
  /** How long a record waits after its append, in milliseconds. */
  waitMs: number
  /** A partition is begun only once `prepare` has resolved for its unit. */
  needsState?: boolean
  /**
   * Only the watermark is committed, not what is settled above it: whoever comes next reads all of that again. In
   * return nothing stops the fetching when records far apart are out.
   */
  hasWindow?: false
}

export type ConsumerLog = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type ConsumerOptions = {
  kafka: Kafka
  groupId: string
  /** Whether a client id is that of `kafka`, or was: given where no other member of the group has it. */
  isOwnName?: ((clientId: string) => boolean) | undefined
  sessionTimeoutMs: number
  commitIntervalMs: number
  /** How long the owner before of a partition may need to finish what it has in flight. */
  handoverMs: number
  topics: readonly TopicSubscription[]
  /** Takes one record. Must not throw, and must not wait. */
  onRecord: (record: InboundRecord, content: RecordContent) => void
  /** Told after each join which partition numbers are ours. Records of others are abandoned from then on. */
  onAssigned: (units: readonly number[]) => void
  /**
   * Makes the state of a unit ready for the topics with `needsState`: called when all of its owners before are done with
   * those, once for as long as the unit is ours. Where it rejects it is called again a second later.
   */
  prepare?: (unit: number) => Promise<void>
  /**
   * Told once after a `prepare`, which may still be under way (it should then come to its end): the unit was lost, nothing
   * of it is out any more and the last commit is made; or the time for that, `handoverMs`, is over; or the member stops.
   * The unit is prepared anew only when both this promise and that of `prepare` are settled.
   */
  released?: (unit: number) => void | Promise<void>
  /** The client gave up and won't come back by itself. */
  onFatal: (error: Error) => void
  log: ConsumerLog
}

export type GroupConsumer = {
  /** True while the group knows this member, and it has begun with all that it was given. */
  readonly isJoined: boolean
  /** It doesn't join yet: what it had begun before it was started again may still be under way. */
  readonly isResting: boolean
  /** Units whose state isn't ready yet: one reason for not being joined. Ascending. */
  readonly preparing: readonly number[]
  readonly partitions: Iterable<Partition>
  /** Epoch milliseconds of when all that had settled was last known to be committed; 0 before the first time. */
  readonly lastCommitMs: number
  /** Stops and starts fetching; membership goes on. */
  setFull(isFull: boolean): void
  /** Stops and starts fetching from partitions that are behind; the others go on. */
  setCongested(isCongested: boolean): void
  /**
   * Stops and starts fetching from one partition; what was fetched of it already still comes. Of a partition that isn't
   * ours nothing happens, and what was set ends with the ownership. It is stopped for as long as one of the holders wants it.
   */
  setPartitionFull(topic: string, id: number, isFull: boolean, holder?: string): void
  /**
   * When one of our partitions was last known to have no record beyond those that were taken, in epoch milliseconds; 0
   * while that isn't known. Looked at every few seconds.
   */
  endSeenMs(topic: string, id: number): number
  /** Takes no further record; what was taken can still settle and be committed. */
  quiesce(): void
  /** Commits what has settled. Throws when the broker refuses or can't be reached. */
  commit(): Promise<void>
  /** Leaves the group, and waits until all units are released. Commit first. */
  stop(): Promise<void>
}

/**
 * A fetch waits at the broker for so many bytes, but no longer than this: one that brings a handful of records costs as
 * much as one that brings hundreds. Also the longest that a resumed partition waits.
 */
const minFetchBytes = 16 * 1024
const fetchWaitMs = 25
/** The same where nothing comes: a record ends the wait, and no partition is about to be resumed. */
const idleFetchWaitMs = 250
/**
 * What is fetched beyond a full buffer is fetched again, and so is what stands behind the head of a waiting topic, each
 * time the head is looked at: not much more than is worth a request.
 */
const maxBytesPerPartition = 64 * 1024
/** How often the head of a busy waiting topic is looked at: each time costs a fetch, most of which isn't due yet. */
const headPeriodMs = 500
/** A record that is taken this long after its append, or after it was due, shows that we are behind. */
const lateAfterMs = 10_000
const endOffsetsEveryMs = 5_000
const lookAgainMs = 100
/** How long a stop waits for the client after leaving its join. */
const leaveTimeoutMs = 5_000
const afterTroubleMs = 1_000
/** So long before the next owner waits no more for it, a lost partition is committed for the last time. */
const leavingMarginMs = 500

/**
 * One member of the consumer group. It owns the pauses, seeks and commits of its partitions; all else only
 * calls what is above. kafkajs keeps the fetch position; offsets are committed here alone. Resolves once the group is asked to
 * take it: whether it has is `isJoined`.
 */
export async function startConsumer(options: ConsumerOptions): Promise<GroupConsumer> {
  const member = new GroupMember(options)
  await member.start()
  return member
}

/**
 * The n-th of a sequence between 0 and 1 of which any part is spread evenly (by the golden ratio, as in Fibonacci hashing).
 */
function turnOf(n: number): number {
  return (n * 0.618_033_988_749_895) % 1
}

/**
 * When to look at a head again, in epoch milliseconds: when it is due, or where that is soon, in the partition's turn. All
 * partitions of a busy tier are due all the time; looked at in one fetch, they would hold up everything else for its length.
 */
function lookAtMs({ turn }: Partition, dueMs: number): number {
  const nowMs = Date.now()
  if (dueMs - nowMs >= headPeriodMs) return dueMs
  const turnMs = turn * headPeriodMs
  const soonestMs = Math.max(dueMs, nowMs + headPeriodMs / 2)
  return Math.ceil((soonestMs - turnMs) / headPeriodMs) * headPeriodMs + turnMs
}

class GroupMember implements GroupConsumer {
  readonly #options: ConsumerOptions
  readonly #consumer: Consumer
  /** The client's. */
  #cluster: Cluster | undefined
  /** Used before it joins, and while it does. */
  readonly #link: CoordinatorLink
  readonly #admin: Admin
  readonly #partitions = new Map<string, Partition>()
  /** Lost partitions, until what they had in flight is done with and the final commit is made. */
  readonly #leaving = new Set<Partition>()
  readonly #timers: NodeJS.Timeout[] = []
  /** Of the partitions that need one. */
  readonly #units: UnitStates
  /** Units whose partitions are being begun with the state that is ready. */
  readonly #beginning = new Set<number>()
  /** Counts joins: what was begun in an earlier one must not touch the partitions of this one. */
  #joins = 0
  #memberId = ''
  /** What this member was given, and when: it tells the group, so that it keeps it. */
  #assigned: Pick<Claim, 'units' | 'sinceMs'> = { units: [], sinceMs: 0 }
  #isFull = false
  #isCongested = false
  #isQuiet = false
  #isStopped = false
  #isResting = false
  /**
   * From a join until the client stops, as it does before it restarts itself. In between, kafkajs throws at a pause or
   * a seek; neither is needed then, since the next join pauses anew and, under a new name, begins all partitions anew.
   */
  #isRunning = false
  /** When the group's coordinator last answered this member, in epoch milliseconds. */
  #heardAtMs = 0
  #lastCommitMs = 0
  /** Partitions that it was given since its start. */
  #taken = 0
  /** Commits that the broker has taken. */
  #commitsTaken = 0
  /** Commits without the retries of `Consumer.commitOffsets`, which would carry on into a later generation. */
  #commitOnce: ((offsets: Offsets) => Promise<void>) | undefined
  #committing: Promise<void> | undefined
  #committingNext: Promise<void> | undefined

  constructor(options: ConsumerOptions) {
    this.#options = options
    this.#admin = options.kafka.admin()
    this.#link = new CoordinatorLink(options.kafka, options.groupId, options.topics[0]?.topic ?? '')
    this.#units = new UnitStates({
      prepare: (unit) => options.prepare?.(unit) ?? Promise.resolve(),
      released: (unit) => options.released?.(unit),
      handoverMs: options.handoverMs,
      onPrepared: (unit) => void this.#beginPrepared(unit),
      onTrouble: (error, unit) => options.log.warn({ err: error, unit }, 'the state of a unit is in trouble'),
    })
    this.#consumer = options.kafka.consumer({
      groupId: options.groupId,
      partitionAssigners: [
        (given) => {
          this.#cluster = given.cluster
          setLongestWait(given.cluster, () => this.#longestWaitMs())
          return createUnitAssigner(() => this.#claim())(given)
        },
      ],
      sessionTimeout: options.sessionTimeoutMs,
      heartbeatInterval: Math.min(3_000, Math.floor(options.sessionTimeoutMs / 4)),
      rebalanceTimeout: 60_000,
      minBytes: minFetchBytes,
      maxWaitTimeInMs: fetchWaitMs,
      maxBytesPerPartition,
      metadataMaxAge: 60_000,
      retry: {
        initialRetryTime: 200,
        maxRetryTime: 5_000,
        retries: 8,
        // Stopping cuts off a join that is under way, which isn't to be tried again.
        restartOnFailure: async () => !this.#isStopped,
      },
    })
  }

  async start(): Promise<void> {
    const { GROUP_JOIN, HEARTBEAT, STOP, CRASH, COMMIT_OFFSETS, END_BATCH_PROCESS } = this.#consumer.events
    await this.#admin.connect()
    await this.#consumer.connect()
    // An expired or missing offset starts at the oldest record: with `false` it would jump to the end.
    await this.#consumer.subscribe({
      topics: this.#options.topics.map(({ topic }) => topic),
      fromBeginning: true,
    })
    this.#consumer.on(GROUP_JOIN, ({ payload }) => this.#joined(payload))
    this.#consumer.on(HEARTBEAT, () => this.#heard())
    this.#consumer.on(COMMIT_OFFSETS, () => this.#committed())
    this.#consumer.on(END_BATCH_PROCESS, ({ payload }) => this.#passOver(payload))
    this.#consumer.on(STOP, () => {
      this.#isRunning = false
      this.#commitOnce = undefined
    })
    this.#consumer.on(CRASH, ({ payload }) => {
      if (!payload.restart && !this.#isStopped) this.#options.onFatal(payload.error)
    })
    // Not awaited: the group may keep a join waiting for as long as a session of a member that was killed.
    this.#run().catch((error: Error) => {
      if (!this.#isStopped) this.#options.onFatal(error)
    })
    this.#every(this.#options.commitIntervalMs, () => this.commit())
    this.#every(endOffsetsEveryMs, () => this.#refreshEndOffsets())
  }

  async #run(): Promise<void> {
    await this.#dismissFormerSelf()
    if (this.#isStopped) return
    await this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: true,
      partitionsConsumedConcurrently: 16,
      eachBatch: async (payload) => this.#takeBatch(payload),
    })
  }

  async #dismissFormerSelf(): Promise<void> {
    const { isOwnName, handoverMs, sessionTimeoutMs, log } = this.#options
    if (isOwnName === undefined) return
    await dismissFormerSelf({
      isOwnName,
      settleMs: handoverMs,
      sessionTimeoutMs,
      readMembers: () => this.#link.readMembers(),
      leave: (member) => this.#link.leave(member),
      onResting: () => {
        this.#isResting = true
      },
      isOver: () => this.#isStopped,
      log,
    })
    this.#isResting = false
  }

  get isResting(): boolean {
    return this.#isResting
  }

  get isJoined(): boolean {
    const silentMs = Date.now() - this.#heardAtMs
    if (!this.#isRunning || silentMs > this.#options.sessionTimeoutMs) return false
    return [...this.#partitions.values()].every(({ isWaiting }) => !isWaiting)
  }

  get preparing(): readonly number[] {
    return this.#units.preparing
  }

  get partitions(): Iterable<Partition> {
    return this.#partitions.values()
  }

  get lastCommitMs(): number {
    return this.#lastCommitMs
  }

  setFull(isFull: boolean): void {
    if (this.#isFull === isFull) return
    this.#isFull = isFull
    this.#applyPauses()
  }

  setCongested(isCongested: boolean): void {
    if (this.#isCongested === isCongested) return
    this.#isCongested = isCongested
    this.#applyPauses()
  }

  setPartitionFull(topic: string, id: number, isFull: boolean, holder = ''): void {
    const partition = this.#partitions.get(nameOf(topic, id))
    if (partition === undefined) return
    partition.setFull(holder, isFull)
    this.#applyPause(partition)
  }

  endSeenMs(topic: string, id: number): number {
    return this.#partitions.get(nameOf(topic, id))?.endSeenMs ?? 0
  }

  quiesce(): void {
    this.#isQuiet = true
    for (const partition of this.#partitions.values()) clearTimeout(partition.dueTimer)
    this.#applyPauses()
  }

  commit(): Promise<void> {
    if (this.#committing === undefined) {
      this.#committing = this.#commitNews().finally(() => {
        this.#committing = undefined
      })
      return this.#committing
    }
    // The one under way doesn't hold what has settled since it began.
    this.#committingNext ??= this.#committing
      .catch(() => undefined)
      .then(() => {
        this.#committingNext = undefined
        return this.commit()
      })
    return this.#committingNext
  }

  async stop(): Promise<void> {
    this.quiesce()
    this.#isStopped = true
    for (const timer of this.#timers) clearInterval(timer)
    try {
      const disconnected = this.#consumer.disconnect()
      const join = this.#join
      if (join === undefined) await disconnected
      else {
        // It waits for what was asked, and the group may take as long for a join as the session of a member that was killed.
        const ended = disconnected.catch((error: unknown) => this.#notNow(error))
        if (await this.#leave(join)) await within(leaveTimeoutMs, ended)
      }
      this.#link.close()
      await this.#admin.disconnect()
    } finally {
      await this.#units.stop()
    }
  }

  /** False where it isn't out of the group then: one without a name can't leave, and is forgotten a session later. */
  async #leave({ membership }: Join): Promise<boolean> {
    if (membership === undefined) return false
    try {
      await this.#link.leave(membership)
    } catch (error) {
      // The client was faster.
      if (isUnknownMember(error)) return true
      this.#notNow(error)
      return false
    }
    return true
  }

  #every(everyMs: number, work: () => Promise<void>): void {
    let isUnderWay = false
    const timer = setInterval(() => {
      if (isUnderWay) return
      isUnderWay = true
      work()
        .catch((error: unknown) => this.#notNow(error))
        .finally(() => {
          isUnderWay = false
        })
    }, everyMs)
    this.#timers.push(timer)
  }

  #notNow(error: unknown): void {
    this.#options.log.warn({ err: error }, 'kafka: not now, trying again')
  }

  #heard(): void {
    this.#heardAtMs = Date.now()
  }

  #committed(): void {
    this.#heard()
    this.#commitsTaken++
  }

  get #join(): Join | undefined {
    return this.#cluster && joinOf(this.#cluster)
  }

  get #begun(): Partition[] {
    return [...this.#partitions.values()].filter(({ isWaiting }) => !isWaiting)
  }

  /** Asked for at each try to join. */
  #claim(): Claim {
    if (this.#isStopped) throw new Error('this member is stopping, and joins no more')
    const busy = [...this.#begun, ...this.#leaving]
    return {
      ...this.#assigned,
      busy: unitsOf(busy),
      busyWithState: unitsOf(busy.filter(({ needsState }) => needsState)),
    }
  }

  /** Runs inside the client's join, before its first fetch: what is paused here hasn't been fetched. */
  #joined({ memberId, memberAssignment }: GroupJoin): void {
    if (this.#isStopped) return
    this.#link.close()
    this.#joins++
    this.#isRunning = true
    this.#heard()
    // Under a new name this member was out of the group: others may have had its partitions meanwhile.
    if (memberId !== this.#memberId) this.#lose([...this.#partitions])
    this.#memberId = memberId
    const owned = new Set<string>()
    const gained: Partition[] = []
    for (const { topic, waitMs, ...kind } of this.#options.topics) {
      for (const id of memberAssignment[topic] ?? []) {
        const name = nameOf(topic, id)
        owned.add(name)
        if (this.#partitions.has(name)) continue
        const partition = new Partition(topic, id, waitMs, kind)
        partition.turn = turnOf(this.#taken++)
        this.#partitions.set(name, partition)
        gained.push(partition)
      }
    }
    this.#lose([...this.#partitions].filter(([name]) => !owned.has(name)))
    const units = [...new Set(Object.values(memberAssignment).flat())]
    this.#assigned = { units, sinceMs: Date.now() }
    this.#options.onAssigned(units)
    // A restarted client has forgotten its pauses, and one that rejoined has kept them: tell it all again.
    this.#applyPauses({ again: true })
    this.#options.log.info(
      { joins: this.#joins, partitions: owned.size, gained: gained.length, leaving: this.#leaving.size },
      'joined the group',
    )
    if (this.#leaving.size > 0) this.#commitSoon()
    this.#takeOverWaiting()
    void this.#lookForNamesakes()
  }

  /** Those that live: one that was killed doesn't join. */
  async #lookForNamesakes(): Promise<void> {
    const { isOwnName, log } = this.#options
    if (isOwnName === undefined) return
    const joins = this.#joins
    try {
      const { members } = await this.#consumer.describeGroup()
      if (joins !== this.#joins || this.#join !== undefined) return
      const namesakes = members.flatMap(({ clientId, memberId }) =>
        isOwnName(clientId) && memberId !== this.#memberId ? [memberId] : [],
      )
      if (namesakes.length > 0) log.error({ members: namesakes }, sharedInstance)
    } catch (error) {
      this.#notNow(error)
    }
  }

  #lose(lost: [string, Partition][]): void {
    for (const [name, partition] of lost) {
      this.#partitions.delete(name)
      clearTimeout(partition.dueTimer)
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
    const out = new Set([...this.#leaving].map(({ id }) => id))
    this.#units.release((unit) => !out.has(unit))
  }

  /** The group has gone on without this member, and gave its partitions to others: nothing more is begun of them. */
  #expelled(): void {
    this.#lose([...this.#partitions])
    this.#isRunning = false
    this.#options.onAssigned([])
  }

  #takeOverWaiting(): void {
    const waiting = [...this.#partitions.values()].filter(({ isWaiting }) => isWaiting)
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
    const joins = this.#joins
    return takeOver({
      partitions,
      handoverMs: this.#options.handoverMs,
      readStored: (waiting) => this.#readStored(waiting),
      readBusyUnits: () => this.#readBusyUnits(busyOf),
      isBusyHere: ({ topic, id }) =>
        [...this.#leaving].some((leaving) => leaving.topic === topic && leaving.id === id),
      begin,
      isOver: () => joins !== this.#joins || this.#isQuiet,
      onTrouble: (error) =>
        this.#options.log.warn({ err: error }, 'taking over partitions failed, trying again'),
    })
  }

  /** Others are done with these: they are begun as soon as the states of their units are there. */
  #clear(ready: readonly Ready[]): Promise<void> {
    for (const { partition, stored } of ready) partition.clear(stored)
    for (const unit of unitsOf(ready.map(({ partition }) => partition))) this.#prepare(unit)
    return Promise.resolve()
  }

  /** Not before all its partitions are cleared: an owner before may still write what belongs to the state. */
  #prepare(unit: number): void {
    const needing = [...this.#partitions.values()].filter(({ id, needsState }) => id === unit && needsState)
    if (needing.length === 0 || !needing.every(({ isCleared }) => isCleared)) return
    this.#units.prepare(unit)
    void this.#beginPrepared(unit)
  }

  /** Tries until it is done, through rejoins, for as long as the unit is ours. */
  async #beginPrepared(unit: number): Promise<void> {
    if (this.#beginning.has(unit)) return
    this.#beginning.add(unit)
    while (this.#units.isPrepared(unit) && !this.#isQuiet) {
      const joins = this.#joins
      const due = [...this.#partitions.values()].filter(
        ({ id, isCleared, isWaiting }) => id === unit && isCleared && isWaiting,
      )
      if (due.length === 0) break
      let waitMs = lookAgainMs
      try {
        if (this.#mayBegin) {
          const found = await this.#readStored(due)
          const ready = due.map((partition, index) => ({ partition, stored: found[index] ?? noCommit }))
          if (joins === this.#joins && this.#mayBegin) await this.#begin(ready)
        }
      } catch (error) {
        this.#notNow(error)
        waitMs = afterTroubleMs
      }
      if (due.some(({ isWaiting }) => isWaiting)) await delay(waitMs)
    }
    this.#beginning.delete(unit)
  }

  get #mayBegin(): boolean {
    return this.#isRunning && this.#join === undefined
  }

  /** Whoever is given a partition by a join that is under way takes it for idle here if it wasn't begun before. */
  #checkMayBegin(): void {
    if (this.#join !== undefined) throw new Error('nothing is begun while the group is being joined')
  }

  async #begin(ready: readonly Ready[]): Promise<void> {
    const joins = this.#joins
    const beginnings = await this.#withinLog(ready)
    if (joins !== this.#joins) return
    this.#checkMayBegin()
    const standings = beginnings.map(({ partition, stored }) => {
      partition.begin(stored)
      return { partition, standing: partition.standing(false) }
    })
    await this.#sendCommit(standings)
    if (joins !== this.#joins || this.#isQuiet) return
    this.#checkMayBegin()
    for (const { partition, standing } of standings) {
      this.#seek(partition, standing.position)
      partition.isWaiting = false
      this.#applyPause(partition)
    }
  }

  /**
   * Where the group has no commit, it stands at the partition's first record. What an owner before may have begun ends
   * with the partition's last one.
   */
  async #withinLog(ready: readonly Ready[]): Promise<readonly Ready[]> {
    const topics = new Set(
      ready.flatMap(({ partition, stored }) =>
        stored.offset < 0 || partition.wasLeftOpen ? [partition.topic] : [],
      ),
    )
    const logs = new Map<string, { low: string; high: string }>()
    for (const topic of topics) {
      for (const log of await this.#admin.fetchTopicOffsets(topic))
        logs.set(nameOf(topic, log.partition), log)
    }
    return ready.map(({ partition, stored }) => {
      const log = logs.get(nameOf(partition.topic, partition.id))
      if (partition.wasLeftOpen) partition.begunBelow = Math.max(partition.begunBelow, Number(log?.high ?? 0))
      return {
        partition,
        stored: stored.offset < 0 ? { offset: Number(log?.low ?? 0), metadata: null } : stored,
      }
    })
  }

  async #readStored(partitions: readonly Partition[]): Promise<StoredCommit[]> {
    const topics = [...new Set(partitions.map(({ topic }) => topic))]
    if (topics.length === 0) return []
    const stored = new Map<string, StoredCommit>()
    const fetched = await this.#admin.fetchOffsets({ groupId: this.#options.groupId, topics })
    for (const { topic, partitions: entries } of fetched) {
      for (const { partition, offset, metadata } of entries)
        stored.set(nameOf(topic, partition), { offset: Number(offset), metadata })
    }
    return partitions.map(({ topic, id }) => stored.get(nameOf(topic, id)) ?? noCommit)
  }

  /** From the claims that members came with to this join; the group has none to show while it joins again. */
  async #readBusyUnits(
    busyOf: (claim: Claim) => readonly number[],
  ): Promise<ReadonlySet<number> | undefined> {
    const { state, members } = await this.#consumer.describeGroup()
    if (state !== 'Stable') return undefined
    const others = members.filter(({ memberId }) => memberId !== this.#memberId)
    return new Set(others.flatMap(({ memberMetadata }) => busyOf(readClaim(memberMetadata))))
  }

  #takeBatch(payload: EachBatchPayload): void {
    const { batch } = payload
    // oxlint-disable-next-line typescript/unbound-method -- an arrow function in kafkajs; a closure would keep the batch
    this.#commitOnce = payload.commitOffsetsIfNecessary
    const partition = this.#partitions.get(nameOf(batch.topic, batch.partition))
    if (partition === undefined) return
    const [first] = batch.messages
    if (this.#isQuiet || partition.isWaiting) {
      // Fetched before the pause took hold: not taken, so it must be fetched again.
      if (first !== undefined) this.#seek(partition, Number(first.offset))
      return
    }
    partition.endOffset = Math.max(partition.endOffset, Number(batch.highWatermark))
    for (const message of batch.messages) {
      if (!this.#take(partition, message)) return
    }
    partition.watermark.skipTo(Number(batch.lastOffset()) + 1)
    this.#applyPause(partition)
  }

  /** A batch of nothing but transaction markers and aborted records isn't given to `eachBatch`. */
  #passOver({ topic, partition, batchSize, lastOffset }: BatchEnd): void {
    if (batchSize > 0) return
    this.#partitions.get(nameOf(topic, partition))?.watermark.skipTo(Number(lastOffset) + 1)
  }

  /** Gives false when the record isn't due: it and all behind it will be fetched again. */
  #take(partition: Partition, message: KafkaMessage): boolean {
    const offset = Number(message.offset)
    const timestampMs = Number(message.timestamp)
    const nowMs = Date.now()
    partition.see(offset, timestampMs)
    const dueMs = partition.dueMsOf(offset, timestampMs, nowMs)
    const lateByMs = nowMs - dueMs
    if (partition.waitMs > 0 && lateByMs < 0) {
      this.#waitForHead(partition, offset, dueMs)
      return false
    }
    partition.isBehind = lateByMs > lateAfterMs
    if (partition.take(offset)) {
      this.#options.onRecord(new LoanedRecord(partition, offset, timestampMs), message)
    }
    return true
  }

  /** A partition that is resumed waits for the end of the fetch that is under way. */
  #longestWaitMs(): number {
    let soonestMs = Date.now() + idleFetchWaitMs
    for (const { isPaused, headDueMs, lookAtMs: nextLookMs } of this.#partitions.values()) {
      if (!isPaused) continue
      if (headDueMs === 0) return fetchWaitMs
      soonestMs = Math.min(soonestMs, nextLookMs)
    }
    return Math.max(fetchWaitMs, Math.ceil(soonestMs - Date.now()))
  }

  /**
   * A retry topic is a queue in due order, since all its records wait equally long. Only the head is looked
   * at: the partition is paused and nothing of the batch is kept, so waiting costs neither memory nor a stall.
   */
  #waitForHead(partition: Partition, offset: number, dueMs: number): void {
    partition.headDueMs = dueMs
    partition.lookAtMs = lookAtMs(partition, dueMs)
    this.#applyPause(partition)
    const waitMs = partition.lookAtMs - Date.now()
    partition.dueTimer = setTimeout(() => {
      if (partition.isLost || this.#isQuiet) return
      partition.headDueMs = 0
      this.#seek(partition, offset)
      this.#applyPause(partition)
    }, waitMs)
  }

  #seek(partition: Partition, offset: number): void {
    if (!this.#isRunning) return
    this.#consumer.seek({ topic: partition.topic, partition: partition.id, offset: String(offset) })
  }

  #applyPauses({ again = false } = {}): void {
    for (const partition of this.#partitions.values()) this.#applyPause(partition, { again })
  }

  #applyPause(partition: Partition, { again = false } = {}): void {
    if (!this.#isRunning) return
    const isPaused =
      this.#isQuiet || this.#isFull || (this.#isCongested && partition.isBehind) || partition.wantsPause
    if (isPaused === partition.isPaused && !again) return
    partition.isPaused = isPaused
    const which = [{ topic: partition.topic, partitions: [partition.id] }]
    if (isPaused) this.#consumer.pause(which)
    else this.#consumer.resume(which)
  }

  #commitSoon(): void {
    this.commit().catch((error: unknown) => this.#notNow(error))
  }

  async #commitNews(): Promise<void> {
    const leaving = await this.#stillLeaving()
    // From here to the sending nothing may wait: what is sent is what is.
    const news = [...this.#begun, ...leaving]
      .map((partition) => ({ partition, standing: partition.standing(this.#isQuiet) }))
      .filter(({ partition, standing }) => partition.isNews(standing))
    if (news.length > 0) await this.#sendCommit(news)
    // With nothing to commit all is committed, as long as this member is known to the group.
    this.#lastCommitMs = Math.max(this.#lastCommitMs, this.#heardAtMs)
    for (const partition of leaving) {
      if (!partition.isNews(partition.standing(false)) && partition.isIdle) this.#leaving.delete(partition)
    }
    this.#releaseUnits()
    this.#applyPauses()
  }

  /** Lost partitions that are still ours to commit: their next owner has not begun. */
  async #stillLeaving(): Promise<readonly Partition[]> {
    const leaving = [...this.#leaving]
    const stored = await this.#readStored(leaving)
    return leaving.filter((partition, index) => {
      const isTooLate = Date.now() - partition.lostAtMs > this.#options.handoverMs - leavingMarginMs
      const isOver = isTooLate || partition.isOvertaken(stored[index])
      if (isOver) this.#leaving.delete(partition)
      return !isOver
    })
  }

  async #sendCommit(news: readonly { partition: Partition; standing: Standing }[]): Promise<void> {
    const commits = news.map(({ partition, standing }) => {
      const { offset, metadata } = partition.commitOf(standing)
      return { topic: partition.topic, partition: partition.id, offset: String(offset), metadata }
    })
    const taken = this.#commitsTaken
    const joins = this.#joins
    try {
      const join = this.#join
      if (join !== undefined) {
        if (join.membership === undefined) {
          this.#expelled()
          throw new Error('nothing was committed: the group does not know this member any more')
        }
        await this.#link.commit(join.membership, offsetsOf(commits))
        this.#committed()
      } else if (this.#commitOnce === undefined) await this.#consumer.commitOffsets(commits)
      else await this.#commitOnce(offsetsOf(commits))
    } catch (error) {
      // One that was sent while the client joined anew is refused under its old name, perhaps only when it has joined.
      if (joins === this.#joins && isUnknownMember(error)) this.#expelled()
      throw error
    }
    // kafkajs resolves without a word, and without a commit, while its consumer isn't running.
    if (this.#commitsTaken === taken) throw new Error('nothing was committed: the consumer is not running')
    for (const { partition, standing } of news) partition.committed(standing)
  }

  async #refreshEndOffsets(): Promise<void> {
    for (const { topic } of this.#options.topics) {
      const askedAtMs = Date.now()
      for (const { partition, offset } of await this.#admin.fetchTopicOffsets(topic))
        this.#partitions.get(nameOf(topic, partition))?.endsAt(Number(offset), askedAtMs)
    }
  }
}

class LoanedRecord implements InboundRecord {
  readonly #partition: Partition
  readonly offset: number
  readonly timestampMs: number
  readonly isLate: boolean

  constructor(partition: Partition, offset: number, timestampMs: number) {
    this.#partition = partition
    this.offset = offset
    this.timestampMs = timestampMs
    this.isLate = partition.isBehind
  }

  get topic(): string {
    return this.#partition.topic
  }

  get partition(): number {
    return this.#partition.id
  }

  get isAbandoned(): boolean {
    return this.#partition.isLost
  }

  get mayHaveBegun(): boolean {
    return this.offset < this.#partition.begunBelow
  }

  settle(): void {
    this.#partition.settle(this.offset)
  }

  giveBack(): void {
    this.#partition.giveBack()
  }
}

function unitsOf(partitions: readonly Partition[]): number[] {
  return [...new Set(partitions.map(({ id }) => id))]
}

function nameOf(topic: string, partition: number): string {
  return `${topic}/${partition}`
}

type BatchEnd = { topic: string; partition: number; batchSize: number; lastOffset: string }

type GroupJoin = { memberId: string; memberAssignment: Record<string, number[]> }

type Commit = { topic: string; partition: number; offset: string; metadata: string | null }

function offsetsOf(commits: readonly Commit[]): Offsets {
  const byTopic = Map.groupBy(commits, ({ topic }) => topic)
  return { topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })) }
}
