import { SharedBreath } from '../async/shared-breath.ts'
import type { RecordProducer } from '../kafka/produce/producer.ts'
import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import type { HeldRecord } from '../message/held-record.ts'
import type { OriginPlace } from '../message/record-headers.ts'
import { lookAt } from './look.ts'
import { queuedText } from './marks.ts'
import type { QueuePartition } from './mark-writer.ts'
import { Owners, type QueueClass, queueClasses } from './owners.ts'
import { Pieces } from './pieces.ts'
import type { NewMessage } from './queued-before.ts'
import { queuedHeaders } from './queued-message.ts'
import type { AppendedRecord, QueueLog, TakeWaiting } from './queue-options.ts'
import { UnitQueue } from './unit-queue.ts'

export type WaitingQueuesOptions = {
  /** The names of the topics `waiting` and `waiting-marks`. */
  readonly topic: string
  readonly marksTopic: string
  readonly reader: PartitionReader
  readonly producer: Pick<RecordProducer, 'produce' | 'produceAt'>
  readonly group: {
    /** Returns a partition of `waiting` that is assigned to this member. */
    readonly pulled: (topic: string, unit: number) => QueuePartition | undefined
    /** Returns false if the next owner of a unit may be a member that doesn't read `waiting`. */
    readonly isReadByAll: (topic: string) => boolean
  }
  readonly take: TakeWaiting
  /**
   * Returns false while `take` must not be called, because what it has taken holds too much memory. How large
   * messages are is known only when they are read.
   */
  readonly hasRoom?: () => boolean
  /** Takes a message that has waited for longer than `maxAgeMs`. */
  readonly expire: TakeWaiting
  /** Takes a message that was given up by `drop`. */
  readonly drop: TakeWaiting
  /** Returns how long a message may wait, in milliseconds. */
  readonly maxAgeMs: () => number
  /** Called with a destination that has a message to pull. */
  readonly onWaiting: (destinationId: string) => void
  /** Called when a unit's queues are known. From then on, new messages of the unit may be delivered. */
  readonly onReady: (unit: number) => void
  /** Called with the number of messages that Kafka deleted before they were delivered. */
  readonly onLost: (count: number) => void
  /** False if no message joins a queue any more, so that the installation can go back to an older version. */
  readonly isOpen: boolean
  /** The memory for messages that were fetched and not delivered yet, in bytes. */
  readonly cacheBytes: number
  readonly log: QueueLog
}

/** What waits of a destination in the queues of this member's units. */
export type QueueBacklog = {
  /** The number of messages that wait in the queue. Those in the lane aren't counted. */
  readonly messages: number
  /** The number of messages of replays and first syncs that aren't done, those in the lane included. */
  readonly replayed: number
}

const tickMs = 100
/** For how long messages from queues are handed on in one turn of the event loop, in milliseconds. */
const handingMs = 5
const cannotLook = 'the ends of queues can not be looked up'
const isClosed =
  'workers without queues are in the consumer group: what waits for its turn goes to the retry topics until they have left'
const isOpenAgain = 'all workers of the consumer group have queues: what waits for its turn joins them'
/**
 * A unit that this member gets within this time after an order gives up its messages too, in milliseconds.
 */
const dropLastsMs = 120_000

/** The part of a delivery by which it finds its queue. */
type Waiting = {
  readonly destinationId: string
  readonly laneClass: QueueClass
  readonly pending: { readonly record: { readonly partition: number } }
}

/** A delivery, with the record from which this member has it, and the record that first had its message. */
type FromRecord = NewMessage & {
  readonly property: unknown
  readonly pending: {
    readonly record: Pick<
      HeldRecord,
      'topic' | 'partition' | 'offset' | 'isAbandoned' | 'isReadAgain' | 'isReadAgainOver'
    >
  }
}

/**
 * Returns true for a message that was made from its record, and has neither failed nor waited. A value of an
 * audience isn't such a message.
 */
function isNew({ origin, property, pending: { record } }: FromRecord): boolean {
  return property === undefined && origin.topic === record.topic && origin.offset === record.offset
}

/** The queues of all destinations in the units that this member owns. */
export class WaitingQueues {
  readonly #options: WaitingQueuesOptions
  readonly #owners = new Owners()
  readonly #pieces: Pieces
  readonly #handing = new SharedBreath(handingMs)
  readonly #units = new Map<number, UnitQueue>()
  /** The destinations that were given up a short while ago, with the time of the order. */
  readonly #drops = new Map<string, number>()
  /** The units of which nothing may be delivered at present. */
  readonly #stopped = new Set<number>()
  readonly #timer: NodeJS.Timeout
  #isLooking = false
  #isClosedTold = false
  #isStopped = false

  constructor(options: WaitingQueuesOptions) {
    this.#options = options
    this.#pieces = new Pieces(options.cacheBytes)
    this.#timer = setInterval(() => {
      for (const queue of this.#units.values()) queue.tick()
      this.#lookIfDue()
      this.#tellIfClosed()
    }, tickMs)
    this.#timer.unref()
  }

  /**
   * False if no message joins a queue: by `WaitingQueuesOptions.isOpen`, or while members of a version
   * without queues are in the group. If such a member got the unit, its queues would wait until the unit
   * moves on. If the upgrade is given up, this may be never.
   */
  get isOpen(): boolean {
    const { isOpen, group, topic } = this.#options
    return isOpen && group.isReadByAll(topic)
  }

  #tellIfClosed(): void {
    const { isOpen, group, topic, log } = this.#options
    const isForOthers = isOpen && !group.isReadByAll(topic)
    if (isForOthers === this.#isClosedTold) return
    this.#isClosedTold = isForOthers
    if (isForOthers) log.warn({ topic }, isClosed)
    else log.info({ topic }, isOpenAgain)
  }

  /** If a look at a unit's log is due, looks at those of all units, because this takes no more requests. */
  #lookIfDue(): void {
    const nowMs = performance.now()
    if (this.#isLooking || ![...this.#units.values()].some((queue) => queue.isLookDue(nowMs))) return
    this.#isLooking = true
    void this.#look(nowMs).finally(() => {
      this.#isLooking = false
    })
  }

  async #look(nowMs: number): Promise<void> {
    const { topic, reader, log } = this.#options
    try {
      const units = await lookAt(this.#units, { reader, topic, nowMs })
      if (units.length > 0) log.warn({ units }, cannotLook)
    } catch (error) {
      if (!this.#isStopped) log.warn({ err: error }, cannotLook)
    }
  }

  /** True once the queues of a unit are known. */
  isReady(unit: number): boolean {
    return this.#units.get(unit)?.isReady ?? false
  }

  /** Reads the queues of a unit that this member has got. Rejects if they can't be read. */
  async prepare(unit: number): Promise<void> {
    const { group, topic } = this.#options
    const partition = group.pulled(topic, unit)
    if (partition === undefined) throw new Error(`${topic}/${unit} is not assigned to this member`)
    await this.#units.get(unit)?.close()
    const queue = new UnitQueue({
      ...this.#options,
      unit,
      owners: this.#owners,
      pieces: this.#pieces,
      handing: this.#handing,
      partition,
      onWaiting: (code) => this.#options.onWaiting(this.#owners.destinationOf(code)),
    })
    this.#units.set(unit, queue)
    await queue.load()
    for (const [destinationId, atMs] of this.#drops) this.#dropIn(queue, destinationId, atMs)
    if (this.#units.get(unit) === queue) this.#options.onReady(unit)
  }

  /**
   * Gives up what waits for a destination now, or what waited at the time of the order if the order isn't
   * new. `atMs` is this time, in epoch milliseconds. The order also holds for the units that this member gets
   * in the next two minutes.
   */
  drop(destinationId: string, atMs: number, isAtOnce: boolean): void {
    this.#drops.set(destinationId, atMs)
    setTimeout(() => {
      if (this.#drops.get(destinationId) === atMs) this.#drops.delete(destinationId)
    }, dropLastsMs).unref()
    // A member that reads the order at once needn't compare its time with times of brokers.
    const untilMs = isAtOnce ? Infinity : atMs
    for (const queue of this.#units.values()) if (queue.isReady) this.#dropIn(queue, destinationId, untilMs)
  }

  #dropIn(queue: UnitQueue, destinationId: string, untilMs: number): void {
    for (const queueClass of queueClasses) {
      const code = this.#owners.knownCodeOf(destinationId, queueClass)
      if (code !== undefined) queue.drop(code, untilMs)
    }
  }

  /**
   * Stops a unit, or resumes it: no outcome of its deliveries can be written. Its messages would only take
   * the room of other units.
   */
  setUnitStopped(unit: number, isStopped: boolean): void {
    if (!isStopped) this.#stopped.delete(unit)
    else if (!this.#stopped.has(unit)) {
      this.#stopped.add(unit)
      this.#units.get(unit)?.leaveWanted()
    }
  }

  /** Ends the tenure of a unit. Resolves once its marks are written. */
  async release(unit: number): Promise<void> {
    const queue = this.#units.get(unit)
    this.#units.delete(unit)
    await queue?.close()
  }

  /** Returns true if a delivery has to join the end of its queue, because others wait there. */
  has({ destinationId, laneClass, pending }: Waiting): boolean {
    const queue = this.#units.get(pending.record.partition)
    if (queue === undefined || queue.isEmpty) return false
    const has = (queueClass: QueueClass): boolean => {
      const code = this.#owners.knownCodeOf(destinationId, queueClass)
      return code !== undefined && queue.has(code)
    }
    return has(laneClass) || (laneClass === 'fresh' && has('front'))
  }

  /**
   * Returns true if an earlier owner of the unit has queued a message, was killed before it could commit
   * this, and its successor reads the record of the message again. After a kill, a value of an audience has
   * to be sent again in any case.
   */
  wasQueued({ destinationId, messageId, property, pending: { record } }: FromRecord): boolean {
    const queue = this.#units.get(record.partition)
    if (queue === undefined || record.isAbandoned || record.topic === this.#options.topic) return false
    const message = { destinationId, messageId, source: record }
    if (record.isReadAgain !== true) {
      // A delivery may line up later than those of later records: it waits for others of its destination.
      if (record.isReadAgainOver !== false) queue.before.forget(record.topic)
    } else if (property === undefined && queue.before.has(message)) return true
    queue.begin(record.topic)
    return false
  }

  /** Returns true if an earlier owner has queued messages that came after this one. */
  isOvertaken(delivery: FromRecord): boolean {
    const { record } = delivery.pending
    const isAgain = record.isReadAgain === true && isNew(delivery)
    return isAgain && this.#units.get(record.partition)?.before.hasLater(delivery) === true
  }

  /**
   * Appends the record of a delivery that was made from the record `source` to its queue. Resolves once Kafka
   * has it, or has refused it as too large. If this member has lost the unit meanwhile, the next owner finds
   * the record in the log.
   */
  async append(
    { topic: sourceTopic, partition: unit, offset }: OriginPlace,
    destinationId: string,
    queueClass: QueueClass,
    { key, value, headers: own }: AppendedRecord,
  ): Promise<'acknowledged' | 'refused'> {
    const { topic, producer } = this.#options
    const source = { topic: sourceTopic, partition: unit, offset }
    const queue = this.#units.get(unit)
    if (queue !== undefined)
      return queue.append(
        { key, value, headers: own, source },
        this.#owners.codeOf(destinationId, queueClass),
      )
    const queued = queuedText({ writer: '', sequence: 0, queueClass })
    const headers = queuedHeaders(own, source, queued)
    return producer.produce({ key, value, topic, partition: unit, headers })
  }

  /** Yields the destinations with a message to pull. One may come several times. */
  *waiting(): Generator<string> {
    for (const queue of this.#units.values())
      for (const code of queue.codes()) yield this.#owners.destinationOf(code)
  }

  /** Returns how many messages of a destination wait in its queues in this member's units. */
  countOf(destinationId: string): number {
    return this.#sum(destinationId, (queue, code) => queue.untakenOf(code))
  }

  /** Returns how many messages of a destination were pulled, and come as soon as they are read. */
  wantedOf(destinationId: string): number {
    return this.#sum(destinationId, (queue, code) => (queue.wanted === 0 ? 0 : queue.wantedOf(code)))
  }

  /** The number of all messages that were pulled, and come as soon as they are read. */
  get wanted(): number {
    let sum = 0
    for (const queue of this.#units.values()) sum += queue.wanted
    return sum
  }

  #sum(destinationId: string, of: (queue: UnitQueue, code: number) => number): number {
    let sum = 0
    for (const queueClass of queueClasses) {
      const code = this.#owners.knownCodeOf(destinationId, queueClass)
      if (code === undefined) continue
      for (const queue of this.#units.values()) sum += of(queue, code)
    }
    return sum
  }

  /** The units whose queues are known. */
  get readyUnits(): readonly number[] {
    return [...this.#units].flatMap(([unit, queue]) => (queue.isReady ? [unit] : []))
  }

  /**
   * Returns what waits in the queues of this member's units, by destination.
   */
  backlogs(): ReadonlyMap<string, QueueBacklog> {
    const backlogs = new Map<string, { messages: number; replayed: number }>()
    for (const queue of this.#units.values()) {
      for (const code of queue.undoneCodes()) {
        const id = this.#owners.destinationOf(code)
        let backlog = backlogs.get(id)
        if (backlog === undefined) backlogs.set(id, (backlog = { messages: 0, replayed: 0 }))
        backlog.messages += queue.untakenOf(code) + queue.wantedOf(code)
        if (this.#owners.classOf(code) === 'backfill') backlog.replayed += queue.undoneOf(code)
      }
    }
    return backlogs
  }

  /** Returns how many messages of a destination that come from replays and first syncs aren't done. */
  replayedOf(destinationId: string): number {
    const code = this.#owners.knownCodeOf(destinationId, 'backfill')
    if (code === undefined) return 0
    let sum = 0
    for (const queue of this.#units.values()) sum += queue.undoneOf(code)
    return sum
  }

  /**
   * Returns since when the oldest message of a destination waits, in epoch milliseconds. `undefined`: not
   * known, or none waits.
   */
  oldestOf(destinationId: string): number | undefined {
    let oldestMs: number | undefined
    for (const queueClass of queueClasses) {
      const code = this.#owners.knownCodeOf(destinationId, queueClass)
      if (code === undefined) continue
      for (const queue of this.#units.values()) {
        if (queue.untakenOf(code) === 0) continue
        const atMs = queue.oldestOf(code)
        if (atMs === undefined) return undefined
        oldestMs = Math.min(oldestMs ?? atMs, atMs)
      }
    }
    return oldestMs
  }

  /**
   * Since when the oldest message of all that this member knows waits, in epoch milliseconds. `undefined`:
   * not known, or none waits.
   */
  get oldestMs(): number | undefined {
    const all = [...this.#units.values()].flatMap(({ oldestMs }) =>
      oldestMs === undefined ? [] : [oldestMs],
    )
    return all.length === 0 ? undefined : Math.min(...all)
  }

  /** Finds out some of the times that `oldestOf` didn't know. Rejects if the topic can't be read. */
  async learnTimes(): Promise<void> {
    await Promise.all([...this.#units.values()].map((queue) => queue.learnTimes()))
  }

  /** Yields how many messages of each destination wait. A destination may come several times. */
  *counts(): Generator<readonly [destinationId: string, count: number]> {
    for (const queue of this.#units.values())
      for (const code of queue.codes()) yield [this.#owners.destinationOf(code), queue.untakenOf(code)]
  }

  /** The approximate memory of the index of all messages that wait in this member's units, in bytes. */
  get indexBytes(): number {
    let bytes = 0
    for (const queue of this.#units.values()) bytes += queue.indexBytes
    return bytes
  }

  /**
   * Takes up to `most` messages of a class of a destination, those first that have waited for longest in any
   * unit. All destinations then read a log at about the same place, if they have waited for equally long.
   * `take` is called with each of them, at once or when it is read. Returns how many were taken.
   */
  pull(destinationId: string, queueClass: QueueClass, most: number): number {
    const code = this.#owners.knownCodeOf(destinationId, queueClass)
    if (code === undefined || most <= 0) return 0
    const having: UnitQueue[] = []
    for (const [unit, queue] of this.#units)
      if (!this.#stopped.has(unit) && queue.mayPull && queue.untakenOf(code) > 0) having.push(queue)
    if (having.length < 2) return having[0]?.pull(code, most) ?? 0
    const heads = having.map((queue) => ({ queue, atMs: queue.aboutOldestOf(code) }))
    let left = most
    while (left > 0) {
      const first = heads.reduce((a, b) => (b.atMs < a.atMs ? b : a))
      if (first.atMs === Infinity) break
      const untilMs = heads.reduce((ms, one) => (one === first ? ms : Math.min(ms, one.atMs)), Infinity)
      const pulled = first.queue.pull(code, left, untilMs)
      left -= pulled
      first.atMs = pulled > 0 ? first.queue.aboutOldestOf(code) : Infinity
    }
    return most - left
  }

  /** Looks once more for what others have appended, and writes the marks that are due. */
  async flush(): Promise<void> {
    await this.#look(performance.now())
    await Promise.all([...this.#units.values()].map((queue) => queue.flush()))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    await Promise.all([...this.#units.keys()].map((unit) => this.release(unit)))
  }
}
