import type { Endpoint } from '../delivery/endpoint.ts'
import { laneCapOf } from '../delivery/lane-limits.ts'
import type { BatchLimits, Lane, LaneClass } from '../delivery/lanes/lane-queue.ts'
import type { Rate } from '../async/token-bucket.ts'
import type { HeldRecord } from '../message/held-record.ts'
import { type Origin, type RetryState, undecidedMapping } from '../retry/retry-state.ts'
import type { Shaped } from '../shape/shaper.ts'
import { clockEnd, type Ladder, startClock } from '../retry/ladder.ts'
import type { Progress } from './decision.ts'
import type { OrderingKey } from './ordering-keys.ts'
import type { DeliveryTrace } from './delivery-trace.ts'
import type { PropertyHeader } from '../message/record-headers.ts'

export type PendingRecordListener = {
  /** Called when the record has been settled or left to the next owner. */
  ended(pending: PendingRecord): void
  /**
   * Called once, when all remaining deliveries of the record wait for failing hooks. Such records have
   * separate limits.
   */
  detached(pending: PendingRecord): void
  /**
   * Called when only notes (marks in `backfills`) about the record must still be written. Returns true if the
   * record takes no room any more.
   */
  onlyNoted(pending: PendingRecord): boolean
}

/**
 * A record that is held until all of its deliveries have ended. The end of the last delivery settles the
 * record.
 */
export class PendingRecord {
  readonly record: HeldRecord
  readonly bytes: number
  /** True if the record was pulled from a queue in Kafka. */
  readonly isPulled: boolean
  #remaining: number
  /** The number of the record's deliveries that wait only for failing hooks. */
  #detached = 0
  #isDetached = false
  /** The number of notes about the record that must still be written before the record is settled. */
  #notes = 0
  #takesRoom = true
  #isBegun = false
  #isVoid = false
  readonly #listener: PendingRecordListener

  constructor(
    record: HeldRecord,
    { deliveries, bytes, isPulled }: { deliveries: number; bytes: number; isPulled: boolean },
    listener: PendingRecordListener,
  ) {
    this.record = record
    this.#remaining = deliveries
    this.bytes = bytes
    this.isPulled = isPulled
    this.#listener = listener
  }

  get isDetached(): boolean {
    return this.#isDetached
  }

  /**
   * True once one of the record's deliveries was started, was written to another topic, or was found there.
   * If the record were left to the next owner now, the next owner would repeat this delivery.
   */
  get isBegun(): boolean {
    return this.#isBegun
  }

  /**
   * True once one of the record's deliveries was left to the next owner, who then makes all deliveries of the
   * record.
   */
  get isVoid(): boolean {
    return this.#isVoid
  }

  /**
   * Call this when one of the record's deliveries is started, is written to another topic, or is found there.
   */
  begin(): void {
    this.#isBegun = true
  }

  /** Call this when one of the record's deliveries begins to wait only for failing hooks. */
  detach(): void {
    this.#detached++
    this.#checkDetached()
  }

  /** Undoes `detach`: one of the record's deliveries has ended or goes back into its lane. */
  attach(): void {
    this.#detached--
  }

  /** False once the record takes no room, because only its notes must still be written. */
  get takesRoom(): boolean {
    return this.#takesRoom
  }

  /**
   * Makes the record wait for one more delivery, or for another operation that must end before the record is
   * settled.
   */
  add(): void {
    this.#remaining++
  }

  addNote(): void {
    this.#notes++
    this.#checkOnlyNoted()
  }

  noteWritten(): void {
    this.#notes--
    this.#checkEnd()
  }

  /** Call this when one of the record's deliveries has ended. */
  complete(): void {
    this.#remaining--
    if (this.#remaining > 0) this.#checkDetached()
    else {
      this.#checkOnlyNoted()
      this.#checkEnd()
    }
  }

  #checkOnlyNoted(): void {
    if (this.#remaining > 0 || this.#notes === 0 || !this.#takesRoom) return
    this.#takesRoom = !this.#listener.onlyNoted(this)
  }

  #checkEnd(): void {
    if (this.#remaining > 0 || this.#notes > 0) return
    if (this.#isVoid) this.record.giveBack()
    else this.record.settle()
    this.#listener.ended(this)
  }

  #checkDetached(): void {
    if (this.#isDetached || this.#detached < this.#remaining) return
    this.#isDetached = true
    this.#listener.detached(this)
  }

  /**
   * Call this instead of `complete` when one of the record's deliveries is left to the next owner. The whole
   * record is then left to the next owner, and isn't settled.
   */
  abandon(): void {
    this.#isVoid = true
    this.complete()
  }
}

/**
 * The values of a delivery that its lane uses: the lane's `cap`, and the delivery's `LaneClass`.
 * `isFromQueue` is true if the delivery was pulled from its destination's queue in Kafka.
 */
export type LaneTerms = { cap: number; laneClass: LaneClass; isFromQueue?: boolean }

/** One message on its way to one destination. */
export class Delivery implements RetryState {
  readonly pending: PendingRecord
  key: Buffer | null
  /** The bytes to send. */
  body: Buffer
  readonly sourceId: string
  readonly destinationId: string
  messageId: string
  readonly kind: string
  readonly firstSeenMs: number
  readonly origin: Origin
  readonly laneClass: LaneClass
  /** True if the delivery was pulled from its destination's queue in Kafka. */
  readonly isFromQueue: boolean
  /** The destination's rate limit in this process, at the time when the delivery was last enqueued. */
  laneRate: Rate | undefined
  queuedAtMs = 0
  startedAtMs = 0
  lane: Lane<Delivery> | undefined
  /** The prepared destination, made from the catalog `seenIn`. */
  endpoint: Endpoint | undefined
  seenIn: object | undefined
  readonly #firstCap: number
  #isDetached = false
  /** True while the delivery counts as one of its lane's deliveries in flight. */
  hasPlace = false
  /**
   * True after an attempt that could reach no hook. The delivery then goes back to its lane and waits there.
   */
  isToGoBack = false
  #nextRung: number
  #waits: number
  #attempts: number
  #expiresAtMs: number
  failedHooks: readonly string[]
  unsentHooks: readonly string[]
  notBeforeMs: ReadonlyMap<string, number>
  hookContents: ReadonlyMap<string, string> | undefined
  lastOutcome: string
  property: PropertyHeader | undefined
  isUncertain: boolean
  /**
   * The number of deletions in its unit (`deletionsOf`) when it was decided last that the delivery is sent.
   * `undefined`: it wasn't decided yet.
   */
  deletionsKnown: number | undefined
  /** True if the conditions of its destination weren't asked yet, because the destination had to wait. */
  isUnjudged: boolean
  #isNewlyUncertain: boolean
  /**
   * True once a hook has accepted the present message. The delivery then only waits until earlier requests
   * can't take effect any more.
   */
  isDelivered: boolean
  /**
   * True once the delivery log has a record of the delivery. If so, it must also get a record of the
   * delivery's end.
   */
  isInLog = false
  readonly replayJob: string
  /**
   * The ordering key that the delivery holds until it ends. Only a delivery with a property has an ordering
   * key.
   */
  orderingKey: OrderingKey<Delivery> | undefined
  /** The next delivery that waits for the same ordering key. */
  behind: Delivery | undefined
  /** The trace of the delivery; `undefined` if tracing is off. */
  trace: DeliveryTrace | undefined
  #mapping: string
  /** What a mapping has made of the message for the next try. `undefined`: the message is sent as it is. */
  #shaped: Shaped | undefined
  /** The mapping that has made `#shaped`. '': none. */
  #shapedBy = ''

  constructor(
    state: RetryState,
    {
      pending,
      key,
      body,
      lane,
    }: { pending: PendingRecord; key: Buffer | null; body: Buffer; lane: LaneTerms },
  ) {
    this.pending = pending
    this.key = key
    this.body = body
    this.#firstCap = lane.cap
    this.laneClass = lane.laneClass
    this.isFromQueue = lane.isFromQueue ?? false
    this.laneRate = undefined
    this.sourceId = state.sourceId
    this.destinationId = state.destinationId
    this.messageId = state.messageId
    this.kind = state.kind
    this.firstSeenMs = state.firstSeenMs
    this.origin = state.origin
    this.#nextRung = state.nextRung
    this.#waits = state.waits ?? 0
    this.#attempts = state.attempts
    this.#expiresAtMs = state.expiresAtMs
    this.failedHooks = state.failedHooks
    this.unsentHooks = state.unsentHooks ?? none
    this.notBeforeMs = state.notBeforeMs
    this.hookContents = state.hookContents
    this.lastOutcome = state.lastOutcome
    this.property = state.property
    this.isUncertain = state.isUncertain ?? false
    this.isUnjudged = state.isUnjudged ?? false
    // If the record comes from a retry topic or from `replays`, its headers already say that the message is
    // uncertain. The record of a fresh message has no such header.
    this.#isNewlyUncertain = this.isUncertain && !this.hasWaited
    this.isDelivered = state.isDelivered ?? false
    this.replayJob = state.replayJob ?? ''
    this.#mapping = state.mapping ?? (state.attempts > 0 ? '' : undecidedMapping)
    this.deletionsKnown = undefined
    this.orderingKey = undefined
    this.behind = undefined
    this.trace = undefined
  }

  /**
   * True if the delivery's record was written when it began to wait. What was right then may not be right
   * now, so it may have to be judged.
   */
  get hasWaited(): boolean {
    return this.laneClass !== 'fresh' || this.isFromQueue
  }

  get nextRung(): number {
    return this.#nextRung
  }

  /** How many rungs the delivery has waited on since its last try, because its turn didn't come. */
  get waits(): number {
    return this.#waits
  }

  get attempts(): number {
    return this.#attempts
  }

  /**
   * The latest time for the delivery's last try, in epoch milliseconds; 0 while the delivery's clock isn't
   * running.
   */
  get expiresAtMs(): number {
    return this.#expiresAtMs
  }

  /** True if the delivery became uncertain after its record was written. */
  get isNewlyUncertain(): boolean {
    return this.#isNewlyUncertain
  }

  /**
   * The mapping that made the request of the first try, as JSON. '': the message was sent as it is.
   * `undecidedMapping`: it wasn't tried yet.
   */
  get mapping(): string {
    return this.#mapping
  }

  /** What a mapping has made of the message for the next try. `undefined`: the message is sent as it is. */
  get shaped(): Shaped | undefined {
    return this.#shaped
  }

  /** Sets what the next try sends. `by`: the mapping that has made it, as JSON. */
  shape(shaped: Shaped | undefined, by: string): void {
    this.#shaped = shaped
    this.#shapedBy = by
  }

  /** Starts an attempt. `waits` starts again at 0. From now on, its mapping stays the same. */
  beginAttempt(): void {
    this.pending.begin()
    if (this.#mapping === undecidedMapping) this.#mapping = this.#shapedBy
    this.#attempts++
    this.#waits = 0
  }

  /** Subtracts an attempt from `attempts`, because nothing was sent in it. */
  takeBackAttempt(): void {
    this.#attempts--
  }

  /**
   * Starts the delivery's clock, unless the clock is running. When the clock has run for the time limit of
   * the ladder, the delivery expires.
   */
  startClock(ladder: Ladder, nowMs: number): void {
    this.#expiresAtMs = startClock(ladder, this.#expiresAtMs, nowMs)
  }

  /** Stops the delivery's clock. The delivery doesn't expire until the clock is started again. */
  stopClock(): void {
    this.#expiresAtMs = 0
  }

  /** Lets the delivery's clock go on after it stood. `expiresAtMs` is the time at which it expires now. */
  continueClock(expiresAtMs: number): void {
    this.#expiresAtMs = expiresAtMs
  }

  /** Makes the delivery expire no later than if its clock started now. */
  limitClock(ladder: Ladder, nowMs: number): void {
    this.#expiresAtMs = Math.min(this.#expiresAtMs, clockEnd(ladder, nowMs))
  }

  /** Sets `nextRung` to the rung after `rung`, because the delivery waits on `rung` without an attempt. */
  takeRung(rung: number): void {
    this.#nextRung = rung + 1
  }

  /**
   * Sets `waits`, because the delivery waits for another turn. `waits`: the number of rungs on which it has
   * waited so far without a try.
   */
  waitForTurn(waits: number): void {
    this.#waits = waits
  }

  /** Takes an older delivery's place in the lane, with the time that the older delivery has waited. */
  takePlaceOf(older: Delivery): void {
    this.queuedAtMs = older.queuedAtMs
  }

  /** Call this when the delivery begins to wait only for failing hooks. */
  detach(): void {
    if (this.#isDetached) return
    this.#isDetached = true
    this.pending.detach()
  }

  attach(): void {
    if (!this.#isDetached) return
    this.#isDetached = false
    this.pending.attach()
  }

  complete(): void {
    this.trace?.end()
    this.attach()
    this.pending.complete()
  }

  /** Leaves the delivery to the next owner of its record. */
  abandon(): void {
    this.trace?.end()
    this.attach()
    this.pending.abandon()
  }

  /** Sets the fields that an attempt or a wait has changed. */
  progress({ nextRung, expiresAtMs, failedHooks, notBeforeMs }: Progress): void {
    this.#nextRung = nextRung
    this.#expiresAtMs = expiresAtMs
    this.failedHooks = failedHooks
    this.notBeforeMs = notBeforeMs
  }

  /**
   * Call this when the message is delivered, but an earlier request may still take effect. The delivery then
   * waits until this is no longer possible. If a correction has to be sent after this wait, it begins at the
   * first rung.
   */
  outlast(): void {
    this.isDelivered = true
    this.progress({ nextRung: 0, expiresAtMs: 0, failedHooks: this.failedHooks, notBeforeMs: nowhere })
  }

  /** Replaces the message by a message with the present value of the property. */
  replaceBy({ messageId, body, since }: { messageId: string; body: Buffer; since: string }): void {
    this.isDelivered = false
    this.messageId = messageId
    this.body = body
    this.#mapping = undecidedMapping
    if (this.property !== undefined) this.property = { ...this.property, since }
  }

  /**
   * Copies key and body into memory of their own, because the delivery waits for a write. A small buffer
   * shares 8 KiB with others. If the delivery outlived its youth, all of them would stay in memory.
   */
  copyBytes(): void {
    const own = Buffer.allocUnsafeSlow((this.key?.length ?? 0) + this.body.length)
    const bodyAt = this.key?.copy(own) ?? 0
    this.body.copy(own, bodyAt)
    if (this.key !== null) this.key = own.subarray(0, bodyAt)
    this.body = own.subarray(bodyAt)
  }

  becomeUncertain(): void {
    if (this.isUncertain) return
    this.isUncertain = true
    this.#isNewlyUncertain = true
  }

  /** The present limit on the destination's deliveries in flight. */
  get laneCap(): number {
    return this.endpoint === undefined ? this.#firstCap : laneCapOf(this.endpoint)
  }

  /** How the destination's deliveries are sent together, by the catalog when the delivery was enqueued. */
  get laneBatch(): BatchLimits | undefined {
    return this.endpoint?.definition.batch
  }

  get bytes(): number {
    return this.body.length
  }

  get laneKey(): string {
    return this.destinationId
  }

  get isLate(): boolean {
    return this.pending.record.isLate
  }

  get isAbandoned(): boolean {
    return this.pending.record.isAbandoned
  }
}

const none: readonly string[] = []
const nowhere: ReadonlyMap<string, number> = new Map()
