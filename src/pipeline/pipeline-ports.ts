import type { BreakerOptions } from '../delivery/lanes/breaker.ts'
import type { SickLoadOptions } from '../delivery/lanes/sick-load.ts'
import type { BulkheadOptions } from '../delivery/lanes/bulkhead.ts'
import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { AskedToken } from '../delivery/login/token-login.ts'
import type { Sender } from '../delivery/send/sender.ts'
import type { MessageLimits } from '../message/limits.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import type { Judgement, WaitingDelivery } from '../message/judgement.ts'
import type { RetryHeaders } from '../retry/retry-state.ts'
import type { Ladder } from '../retry/ladder.ts'
import type { SkipReason } from '../routing/route.ts'
import type { LaneClass } from '../delivery/lanes/lane-queue.ts'
import type { OmitReason } from './attempt.ts'
import type { Delivery } from './delivery.ts'
import type { WhileAutoPaused } from './paused-or-off.ts'
import type { RuleLimit } from './rule-time.ts'
import type { HookResult } from './decision.ts'
import type { DeliveryTrace } from './delivery-trace.ts'
import type { OriginPlace, PropertyHeader } from '../message/record-headers.ts'
import type { OutboundRecord } from '../message/records.ts'

export type { OutboundRecord } from '../message/records.ts'

export type CatalogView = {
  readonly sources: ReadonlyMap<string, { readonly enabled: boolean; readonly kind?: 'events' | 'audiences' }>
  readonly destinations: ReadonlyMap<string, DestinationDefinition>
  readonly destinationsBySource: ReadonlyMap<string, readonly DestinationDefinition[]>
}

export type Outlet = {
  produce(record: OutboundRecord): Promise<'acknowledged' | 'refused'>
}

/**
 * The classes of a destination's queue. `fresh`: new messages. `front`: new messages that left their lane
 * later than others joined the queue, and so go before them. `retry` and `backfill`: see `LaneClass`.
 */
export type QueueClass = LaneClass | 'front'

/** The part of a delivery by which it finds its queue. */
export type Queueing = Pick<
  Delivery,
  'destinationId' | 'messageId' | 'laneClass' | 'property' | 'origin' | 'pending'
>

/**
 * The queues of the destinations in Kafka, for deliveries that only wait for their turn. Each queue belongs
 * to one class of one destination in one unit.
 */
export type WaitingQueue = {
  /**
   * False if nothing joins the queues any more, because the installation is to go back to an older version,
   * and while workers of an older version are in the group.
   */
  readonly isOpen: boolean
  /** Returns true if a delivery has to join the end of its queue, because others wait there. */
  has(delivery: Queueing): boolean
  /**
   * Returns true if the delivery is in its queue, or was there: a previous owner has queued it, and was
   * killed before it could commit this. So its record was read again. Otherwise, the queue knows from now on
   * that this owner makes the delivery.
   */
  wasQueued(delivery: Queueing): boolean
  /** Returns true if a previous owner that was killed has queued deliveries that came after this one. */
  isOvertaken(delivery: Queueing): boolean
  /**
   * Appends the record of a delivery that was made from the record `source`. Resolves once Kafka has it, or
   * has refused it as too large.
   */
  append(
    source: OriginPlace,
    destinationId: string,
    queueClass: QueueClass,
    record: Pick<OutboundRecord, 'key' | 'value' | 'headers'>,
  ): Promise<'acknowledged' | 'refused'>
  /** The destinations with a delivery to pull. One may come several times. */
  waiting(): Iterable<string>
  /** The number of a destination's deliveries that can be pulled. */
  countOf(destinationId: string): number
  /** Since when the oldest of them waits, in epoch milliseconds. `undefined`: not known, or there is none. */
  oldestOf(destinationId: string): number | undefined
  /** The number of a destination's deliveries that were pulled, and come as soon as they are read. */
  wantedOf(destinationId: string): number
  /** The number of all deliveries that were pulled, and come as soon as they are read. */
  readonly wanted: number
  /**
   * Pulls up to `most` deliveries, and returns how many. The pipeline's `acceptWaiting` is called with each
   * of them, at once or as soon as it is read.
   */
  pull(destinationId: string, queueClass: QueueClass, most: number): number
}

/** The reason why a delivery was written to a retry topic or to its destination's queue. */
export type ParkReason =
  | 'failed'
  | 'not_before'
  | 'overflow'
  | 'paced'
  | 'proxy'
  | 'uncertain'
  | 'paused'
  | 'login'
  | 'shutdown'
  | 'handover'

export type NotRoutedReason = 'source_disabled' | 'no_destination' | SkipReason

/**
 * The way in which a delivery came to its first try. `direct`: from its lane, without the bulkhead. `paced`:
 * through the bulkhead, because its hook fails or has asked for a pause. `parked`: after a wait on the
 * ladder or in the queue of its destination. `replayed`: from a replay.
 */
export type FirstTryWay = 'direct' | 'paced' | 'parked' | 'replayed'

/** Callbacks for metrics and logs. */
export type PipelineObserver = {
  /**
   * Called before the first request of the first attempt. If nothing could be sent because the proxy or the
   * system of this process failed, it is called again for the next attempt.
   */
  firstTried(delivery: Delivery, way: FirstTryWay): void
  attempted(delivery: Delivery, result: HookResult, durationMs: number): void
  /** Called for each request with several messages, with their number. */
  batched?(messages: number): void
  delivered(delivery: Delivery): void
  /**
   * Called for a hook that never gets a message, because another hook of its destination has accepted the
   * message first.
   */
  omitted(delivery: Delivery, hookId: string, why: OmitReason): void
  parked(delivery: Delivery, why: ParkReason, waitMs: number): void
  deadLettered(reason: DeadReason, detail: string, where: HeldRecord, delivery: Delivery | undefined): void
  notRouted(reason: NotRoutedReason): void
  /**
   * Called after `notRouted`, for each destination that is connected to the source of a message but doesn't
   * get the message.
   */
  filtered?(reason: SkipReason, message: FilteredMessage, where: HeldRecord): void
  /**
   * Called when a delivery has ended without another request, because its message must not be sent any more.
   * This isn't a failure.
   */
  dropped(delivery: Delivery, why: DropReason): void
  /**
   * Called when a deletion names a source that the catalog doesn't have. In that case, no destination gets a
   * `delete` message for this source.
   */
  unknownSource(sourceId: string, where: HeldRecord): void
  /** Called when a message was dropped because the same message has come before. */
  repeated(where: HeldRecord, sourceId: string, messageId: string): void
  /**
   * Called when the conditions and mappings of a destination have taken longer than they may. Its messages
   * then wait for a moment.
   */
  rulesTooLong?(destinationId: string, limit: RuleLimit): void
  /**
   * Called with the result of each request for a token to log in with. `definition`: the destination as it is
   * now. Absent: it was removed.
   */
  askedForToken?(
    destinationId: string,
    hookId: string,
    asked: AskedToken,
    definition: DestinationDefinition | undefined,
  ): void
  /** Called with the error of a bug in Sluice that has not harmed a message. */
  failed(error: unknown): void
}

/** A message that a destination doesn't get. */
export type FilteredMessage = {
  readonly destinationId: string
  readonly sourceId: string
  readonly messageId: string
  /** The message's `type`. */
  readonly kind: string
  /** The canonical body, if there is one. It may be in the buffer of a fetch. */
  readonly body?: Buffer | undefined
}

/** A memory of earlier messages, which recognizes repeats. */
export type RepeatFilter = {
  /**
   * Returns true if an earlier record of the same partition had the same message. Otherwise remembers the
   * message and returns false. May wrongly return false, but never wrongly returns true.
   */
  isRepeat(record: HeldRecord, sourceId: string, messageId: string): boolean
}

/**
 * The methods of tracing that the pipeline uses. If tracing is off, there is no such object, and so no cost.
 */
export type PipelineTracing = {
  /**
   * Continues the trace of a record for one of the record's deliveries. If the record has no trace, starts a
   * trace.
   */
  begin(delivery: Delivery): DeliveryTrace
  /**
   * Returns the headers with which readers of another topic continue the trace of a record. Use this for a
   * record from which no delivery was made.
   */
  headersOf(record: HeldRecord): RetryHeaders
}

export type PipelineOptions = {
  catalog: () => CatalogView
  sender: Sender
  outlet: Outlet
  observer: PipelineObserver
  /** The filter of repeats. Without this option, repeats are delivered. */
  repeats?: RepeatFilter
  ladder: Ladder
  topics: { events: string; retryPrefix: string; replays: string; deadLetters: string }
  /** The queues for deliveries that wait for their turn. Without them, these wait on the retry topics. */
  queue?: WaitingQueue
  /**
   * How long a message waits in its queue while no token to log in with can be had, in milliseconds. Without
   * this option, it waits as long as the queue keeps it.
   */
  loginWaitMs?: number
  /** What becomes of messages for destinations that Sluice has paused. Default: `wait`. */
  whileAutoPaused?: WhileAutoPaused
  /**
   * Called when a hook has answered 410 (Gone). `definition`: the destination as it was when the request was
   * made. Returns true if no message is sent to the hook from now on. The catalog then has the destination
   * without the hook, or as `auto_paused` if it has no other hook. Without this function, a 410 concerns only
   * its message.
   */
  answeredGone?: (definition: DestinationDefinition, hookId: string, lastOutcome: string) => boolean
  limits: MessageLimits
  /** The time that the conditions and mappings of a destination may take of each second, in milliseconds. */
  maxRuleMs?: number
  maxInFlight: number
  laneWaitMs: number
  lanePatienceMs: number
  breaker: BreakerOptions
  /** True if requests have headers with the id of their message and the number of the attempt. */
  namesRequests: boolean
  /** How many requests to failing hooks are few. Default: `usualSickLoad`. */
  sickLoad?: SickLoadOptions
  /** The limits on requests to hooks that fail or have asked for a pause. */
  bulkhead: BulkheadOptions
  /**
   * The limits on the number of held records and on their bytes. When either limit is reached,
   * `onPressure(true)` is called, and fetching should stop.
   */
  buffer: { records: number; bytes: number }
  onPressure: (isFull: boolean) => void
  /**
   * Called with true when a lane can't keep up with messages that were already late when they reached this
   * worker. Fetching should then wait, until this function is called with false.
   */
  onCongested: (isCongested: boolean) => void
  /**
   * Called before requests are started. Must return false if other members may already own the held records.
   * No request is then started until a later call returns true. `setStalled(false)` also leads to such a
   * call.
   */
  mayBegin?: () => boolean
  /**
   * Decides whether a delivery that has waited is still sent. Without this function, all such deliveries are
   * sent. If the promise rejects, the process ends, unless another member already owns the unit or the worker
   * stops.
   */
  judge?: (waiting: WaitingDelivery) => Promise<Judgement>
  /**
   * Returns true if `judge` must be called for deliveries of a source in a unit. `hasProperty` is true for
   * deliveries with a property. The function must be cheap and read nothing from a store. Without this
   * function, `judge` is called only for deliveries with a property.
   */
  needsJudging?: (sourceId: string, unit: number, hasProperty: boolean) => boolean
  /**
   * Returns by how much this member's part of a destination's rate limit is larger than its fraction of the
   * group's partitions. Negative if this member lends a part of it to others. Without this function, the
   * group's rates are split by the partitions alone.
   */
  rateDifferenceOf?: (destinationId: string) => number
  /**
   * Returns true if data of a user may have been deleted. The function must be cheap and read nothing from a
   * store, so its result may wrongly be true. Without this function, no data counts as deleted.
   */
  mayBeDeleted?: (property: PropertyHeader, unit: number) => boolean
  /**
   * Returns false if `judge` says `send` for an event of this source, because its user was certainly not
   * deleted. The function must be cheap and read nothing from a store. Without this function, `judge` is
   * called.
   */
  mayBeSuppressed?: (event: Pick<WaitingDelivery, 'unit' | 'sourceId' | 'body'>) => boolean
  /**
   * Returns a number that grows with each deletion of a user in a unit. Without this function, no user is
   * deleted while a delivery lines up.
   */
  deletionsOf?: (unit: number) => number
  /**
   * Called each time a destination misses a value of a space, and so needs a backfill. If the call returns a
   * promise, the record is settled only after the promise has resolved. Otherwise the need for the backfill
   * could be lost if the process ended.
   */
  needsBackfill?: (destinationId: string, spaceId: string) => Promise<void> | undefined
  /**
   * The id of the source of Sluice's own messages. If this source was removed from the catalog, Sluice's own
   * messages go to no destination.
   */
  ownSource?: string
  /** The tracing; absent if tracing is off. */
  tracing?: PipelineTracing | undefined
  /** Returns the present time in epoch milliseconds. */
  now: () => number
}

export type Pipeline = {
  /**
   * Accepts a record. The record is settled once each of its deliveries has succeeded, or was written to a
   * retry topic or to the dead letters.
   */
  accept(record: HeldRecord, content: RecordContent): void
  /**
   * Delivers the Identify of a record. At the time of the call, the Identify must have the newest known value
   * of its property, or its `isSuperseded` must be true.
   */
  acceptIdentify(record: HeldRecord, identify: IdentifyToDeliver): void
  /**
   * Delivers each `delete` to all destinations of its source. A destination that is connected to two of the
   * sources gets two `delete` messages.
   */
  acceptDelete(record: HeldRecord, request: DeleteToDeliver): void
  /**
   * Makes the delivery of a record of a retry topic before its wait is over. It is tried even if its hooks
   * have asked for a longer wait.
   */
  acceptRecalled(record: HeldRecord, content: RecordContent): void
  /** Forgets the failures of a destination's hooks, and the pauses that they have asked for. */
  askAgain(destinationId: string): void
  /** False while the records that were pulled take more of the buffer than they may. */
  readonly hasRoomForWaiting: boolean
  /** Makes the delivery of a record that was pulled from its destination's queue. */
  acceptWaiting(record: HeldRecord, content: RecordContent, queueClass: QueueClass): void
  /** Makes a dead letter of a record that has waited in its destination's queue for too long. */
  expireWaiting(record: HeldRecord, content: RecordContent, queueClass: QueueClass): void
  /**
   * Makes a dead letter of a record that was pulled from `queueClass` of its destination's queue, or taken
   * early from a retry topic, because somebody has given it up.
   */
  dropWaiting(record: HeldRecord, content: RecordContent, queueClass?: QueueClass): void
  /**
   * Makes dead letters of the deliveries that wait in a destination's lane, because somebody gave them up.
   */
  dropLane(destinationId: string): void
  /** Pulls what a destination has room for. Call it when a first delivery waits in its queue. */
  refill(destinationId: string): void
  /** Writes a record to the dead letters, because no delivery can be made from the record. */
  refuse(record: HeldRecord, content: RecordContent, reason: DeadReason, detail: string): void
  /**
   * Sets the fraction of the group's partitions that this member has, 0 to 1. This member uses only this
   * fraction of each rate limit, because a rate limit applies to the whole group.
   */
  setShare(share: number): void
  /** What the conditions and mappings of all destinations have taken so far, in milliseconds. */
  readonly ruleTime: { readonly totalMs: number }
  /** The rate limits of destinations in this member, for `src/lending`. */
  readonly rates: Rates
  /**
   * Drops the waiting deliveries that now belong to another owner. The other owner then has to wait only for
   * the requests in flight.
   */
  letGoAbandoned(): void
  /**
   * Stops or resumes all attempts. Attempts are stopped so that an outage of Sluice or Kafka doesn't use up a
   * customer's tries.
   */
  setStalled(isStalled: boolean): void
  /**
   * Stops or resumes one unit. A unit is stopped while Kafka doesn't accept the outcomes of the unit's
   * deliveries. The records of a stopped unit don't delay other units.
   */
  setUnitStopped(unit: number, isStopped: boolean): void
  /**
   * Starts no more deliveries, lets the started attempts end, and resolves when no operation is under way. If
   * no delivery of a record was started, the record isn't settled, and the next owner processes it.
   */
  drain(): Promise<void>
  stop(): void
  readonly held: { records: number; bytes: number }
  readonly inFlight: number
  readonly queued: number
  /** Returns how many deliveries to a destination wait in its lane. */
  waitingFor(destinationId: string): number
  /** Returns the destinations with deliveries that have waited in their lane for a second or longer. */
  lanes(): Iterable<LaneBacklog>
  /**
   * Returns what this process may send to a destination at present. `undefined`: the destination isn't on.
   */
  paceOf(destinationId: string): DestinationPace | undefined
  /**
   * Returns the destinations that get less now than they could, because they were learned to take less. It
   * takes as long as there are such destinations, however many the catalog has. `openHooks` does too.
   */
  lowered(): readonly string[]
  /**
   * How many requests to hooks that fail or have asked for a pause are in flight, how many such requests
   * wait, and how many such hooks there are.
   */
  readonly paced: { readonly inFlight: number; readonly queued: number; readonly hooks: number }
  /**
   * Returns the hooks of the catalog whose breaker is open. Leaves out hooks that got no request for 65
   * minutes (`openIfSentWithinMs` in `pipeline.ts`).
   */
  openHooks(): readonly OpenHook[]
}

/** How this member uses its parts of the destinations' rate limits. */
export type Rates = {
  /** The destinations with a rate limit of which deliveries wait in this member. */
  waiting(): Iterable<string>
  /**
   * Returns the number of a destination's deliveries that wait in this member. Returns 0 if they start within
   * a second at this member's rate.
   */
  needOf(destinationId: string): number
  /** Returns true if nothing waits for a destination in this member, and nothing has used its rate lately. */
  isSpare(destinationId: string): boolean
  /** Applies a part that has become smaller. */
  lowered(destinationId: string): void
}

/** The deliveries to a destination that wait in its lane. */
export type LaneBacklog = {
  readonly destinationId: string
  readonly count: number
  /** Since when the oldest of them waits, in epoch milliseconds. The wait in a queue in Kafka counts too. */
  readonly oldestMs: number
}

/** How much this process may send to a destination at present. */
export type DestinationPace = {
  /** The most requests in flight. */
  readonly inFlight: number
  /** The most requests a second. `undefined`: there is no limit. */
  readonly perSecond: number | undefined
  /** About how many messages a request has. */
  readonly perRequest: number
}

export type OpenHook = {
  readonly destinationId: string
  readonly hookId: string
  readonly openForMs: number
}

// The messages that Sluice delivers although they don't come from `events`.

/** An Identify with one property of a user. A record of `memberships` has caused this Identify. */
export type IdentifyToDeliver = PropertyHeader & {
  readonly kind: 'identify'
  readonly messageId: string
  /** The canonical body, in a buffer of its own and not in the buffer of a fetch. */
  readonly body: Buffer
  /**
   * True if a newer value is known, but a previous owner may have sent this value, so that a server may still
   * act on it. Such an Identify isn't sent at once. It waits on the first rung, and then Sluice decides what
   * to send.
   */
  readonly isSuperseded?: boolean
}

/**
 * The `delete` messages of a deletion request, one for each affected source. Each message has its own id and
 * body, because a receiver may get several of these messages.
 */
export type DeleteToDeliver = {
  readonly userId: string
  readonly deletes: readonly {
    readonly sourceId: string
    readonly messageId: string
    /** The canonical body, in a buffer of its own and not in the buffer of a fetch. */
    readonly body: Buffer
  }[]
}

/**
 * The reason why a delivery ended without another attempt. `superseded`: a newer value of its property is
 * known. `suppressed`: its user was deleted.
 */
export type DropReason = 'superseded' | 'suppressed'

/**
 * Returns the forms of a dead letter, from the largest to the smallest. Each form leaves out more parts than
 * the form before it. The omitted parts can be read from the record that the header `origin` of the dead
 * letter names.
 */
export function formsOf(letter: OutboundRecord): readonly OutboundRecord[] {
  const withoutValue: OutboundRecord = {
    ...letter,
    value: null,
    headers: { ...letter.headers, 'value-omitted': 'the record is too large; its origin has it' },
  }
  const withoutKey: OutboundRecord = {
    ...withoutValue,
    key: null,
    headers: { ...withoutValue.headers, 'key-omitted': 'the key is too large; its origin has it' },
  }
  return [letter, withoutValue, withoutKey]
}
