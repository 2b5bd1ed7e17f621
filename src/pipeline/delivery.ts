import type { Endpoint } from '../delivery/endpoint.ts'
import type { Lane, LaneClass } from '../delivery/lane.ts'
import type { Rate } from '../pacing/token-bucket.ts'
import type { HeldRecord } from '../message/held-record.ts'
import type { PropertyHeader } from '../message/property-header.ts'
import type { Carried, Origin } from '../retry/carried.ts'
import { clockEnd, type Ladder, startClock } from '../retry/ladder.ts'
import type { Progress } from './decision.ts'
import type { OrderingKey } from './ordering-keys.ts'
import type { DeliveryTrace } from './delivery-trace.ts'

/** Is called as a pending record goes on. */
export type PendingRecordListener = {
  /** It is settled or given back. */
  ended(pending: PendingRecord): void
  /** All deliveries that are left wait for failing hooks, which have a budget of their own. Called once. */
  detached(pending: PendingRecord): void
  /**
   * All deliveries have ended, and the record only waits for notes. Returns true if it takes no room any
   * more.
   */
  onlyNoted(pending: PendingRecord): boolean
}

/** A record that is held until all its deliveries have ended. The last one to end settles it. */
export class PendingRecord {
  readonly record: HeldRecord
  readonly bytes: number
  #remaining: number
  /** Deliveries that count against the budget of failing hooks. */
  #detached = 0
  #isDetached = false
  /** Notes about it that are not written yet. It isn't settled before they are. */
  #notes = 0
  #takesRoom = true
  #isBegun = false
  #isVoid = false
  readonly #listener: PendingRecordListener

  constructor(record: HeldRecord, deliveries: number, bytes: number, listener: PendingRecordListener) {
    this.record = record
    this.#remaining = deliveries
    this.bytes = bytes
    this.#listener = listener
  }

  get isDetached(): boolean {
    return this.#isDetached
  }

  /** True once one of its deliveries was begun or sent on: dropping the others now would repeat that one. */
  get isBegun(): boolean {
    return this.#isBegun
  }

  /** One of its deliveries is begun, or sent on. */
  begin(): void {
    this.#isBegun = true
  }

  /** One of its deliveries waits only for failing hooks. */
  detach(): void {
    this.#detached++
    this.#checkDetached()
  }

  /** That one goes on in its lane, or has come to its end. */
  attach(): void {
    this.#detached--
  }

  /** False once it only waits for notes, which need nothing of it. */
  get takesRoom(): boolean {
    return this.#takesRoom
  }

  /** Waits for one more delivery, or for something else that has to end before. */
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

  /** One of its deliveries has ended. */
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

  /** One of its deliveries is let go, undelivered: the record must never be settled here. */
  abandon(): void {
    this.#isVoid = true
    this.complete()
  }
}

/** How a delivery travels in its lane. */
export type LaneTerms = { cap: number; laneClass: LaneClass; rate: Rate | undefined }

/** One message on its way to one destination. */
export class Delivery implements Carried {
  readonly pending: PendingRecord
  readonly key: Buffer | null
  /** The bytes to send. */
  body: Buffer
  readonly sourceId: string
  readonly destinationId: string
  messageId: string
  readonly kind: string
  readonly firstSeenMs: number
  readonly origin: Origin
  /** The destination's cap on requests in flight, as of when it was last looked at. */
  laneCap: number
  readonly laneClass: LaneClass
  readonly laneRate: Rate | undefined
  queuedAtMs = 0
  lane: Lane<Delivery> | undefined
  /** Its destination, as of the catalog `seenIn`. */
  endpoint: Endpoint | undefined
  seenIn: object | undefined
  #isDetached = false
  /** It has a place among those that its lane has in flight. */
  hasPlace = false
  /** Its attempt came to nothing since the proxy is down: it goes back to wait in its lane. */
  isToGoBack = false
  #nextRung: number
  #waits: number
  #attempts: number
  #expiresAtMs: number
  failedHooks: readonly string[]
  unsentHooks: readonly string[]
  notBeforeMs: ReadonlyMap<string, number>
  lastOutcome: string
  property: PropertyHeader | undefined
  isUncertain: boolean
  #isNewlyUncertain: boolean
  /** A hook has taken what it carries now: it has only to outlast what may still be done late. */
  isDelivered: boolean
  /** The delivery log has something of it, and so must have its end. */
  isInLog = false
  readonly replayJob: string
  /** What it has for itself until it comes to its end; only ever with a property. */
  orderingKey: OrderingKey<Delivery> | undefined
  /** Who waits for the same ordering key behind it. */
  behind: Delivery | undefined
  /** Only where tracing is on. */
  trace: DeliveryTrace | undefined

  constructor(
    carried: Carried,
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
    this.laneCap = lane.cap
    this.laneClass = lane.laneClass
    this.laneRate = lane.rate
    this.sourceId = carried.sourceId
    this.destinationId = carried.destinationId
    this.messageId = carried.messageId
    this.kind = carried.kind
    this.firstSeenMs = carried.firstSeenMs
    this.origin = carried.origin
    this.#nextRung = carried.nextRung
    this.#waits = carried.waits ?? 0
    this.#attempts = carried.attempts
    this.#expiresAtMs = carried.expiresAtMs
    this.failedHooks = carried.failedHooks
    this.unsentHooks = carried.unsentHooks ?? none
    this.notBeforeMs = carried.notBeforeMs
    this.lastOutcome = carried.lastOutcome
    this.property = carried.property
    this.isUncertain = carried.isUncertain ?? false
    // The record of a message says nothing of that: only one of a retry topic or of `replays` does.
    this.#isNewlyUncertain = this.isUncertain && lane.laneClass === 'fresh'
    this.isDelivered = carried.isDelivered ?? false
    this.replayJob = carried.replayJob ?? ''
    this.orderingKey = undefined
    this.behind = undefined
    this.trace = undefined
  }

  /** The rung that it takes next. */
  get nextRung(): number {
    return this.#nextRung
  }

  /** Steps of the ladder that it has waited since its last try without having had its turn. */
  get waits(): number {
    return this.#waits
  }

  get attempts(): number {
    return this.#attempts
  }

  /** When its last try may be due, in epoch milliseconds; 0: its clock doesn't run. */
  get expiresAtMs(): number {
    return this.#expiresAtMs
  }

  /** It has become uncertain since it was read: what its record says is no longer all. */
  get isNewlyUncertain(): boolean {
    return this.#isNewlyUncertain
  }

  /** An attempt begins: what it has waited for its turn doesn't count any more. */
  beginAttempt(): void {
    this.pending.begin()
    this.#attempts++
    this.#waits = 0
  }

  /** That was no attempt: nothing of it was sent. */
  takeBackAttempt(): void {
    this.#attempts--
  }

  /** Starts its clock, unless that runs already: it expires when the ladder's limit is over. */
  startClock(ladder: Ladder, nowMs: number): void {
    this.#expiresAtMs = startClock(ladder, this.#expiresAtMs, nowMs)
  }

  /** It doesn't expire until its clock is started anew. */
  stopClock(): void {
    this.#expiresAtMs = 0
  }

  /** Has it expire no later than if its clock were started now. */
  limitClock(ladder: Ladder, nowMs: number): void {
    this.#expiresAtMs = Math.min(this.#expiresAtMs, clockEnd(ladder, nowMs))
  }

  /** It waits on a rung without an attempt: the next one is next. */
  takeRung(rung: number): void {
    this.#nextRung = rung + 1
  }

  /** It had no turn, and has waited so many steps for it. */
  waitForTurn(waits: number): void {
    this.#waits = waits
  }

  /** Takes the place in the lane of an older one, and what that has waited there. */
  takePlaceOf(older: Delivery): void {
    this.queuedAtMs = older.queuedAtMs
  }

  /** It waits only for failing hooks. */
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

  /** It has come to its end. */
  complete(): void {
    this.trace?.end()
    this.attach()
    this.pending.complete()
  }

  /** It is let go, undelivered. */
  abandon(): void {
    this.trace?.end()
    this.attach()
    this.pending.abandon()
  }

  /** Takes over what an attempt, or a wait, has changed. */
  progress({ nextRung, expiresAtMs, failedHooks, notBeforeMs }: Progress): void {
    this.#nextRung = nextRung
    this.#expiresAtMs = expiresAtMs
    this.failedHooks = failedHooks
    this.notBeforeMs = notBeforeMs
  }

  /**
   * It is delivered, and has only to outlast what may still be done late: what is sent then, if anything,
   * begins at the first rung.
   */
  outlast(): void {
    this.isDelivered = true
    this.progress({ nextRung: 0, expiresAtMs: 0, failedHooks: this.failedHooks, notBeforeMs: nowhere })
  }

  /** What holds now goes in place of what it carried. */
  replaceBy({ messageId, body, since }: { messageId: string; body: Buffer; since: string }): void {
    this.isDelivered = false
    this.messageId = messageId
    this.body = body
    if (this.property !== undefined) this.property = { ...this.property, since }
  }

  becomeUncertain(): void {
    if (this.isUncertain) return
    this.isUncertain = true
    this.#isNewlyUncertain = true
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
