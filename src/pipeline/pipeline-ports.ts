import type { BreakerOptions } from '../delivery/breaker.ts'
import type { BulkheadOptions } from '../delivery/bulkhead.ts'
import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { Sender } from '../delivery/sender.ts'
import type { MessageLimits } from '../message/limits.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import type { Judgement, WaitingDelivery } from '../message/judgement.ts'
import type { PropertyHeader } from '../message/property-header.ts'
import type { RetryHeaders } from '../retry/retry-state.ts'
import type { Ladder } from '../retry/ladder.ts'
import type { SkipReason } from '../routing/route.ts'
import type { OmitReason } from './attempt.ts'
import type { Delivery } from './delivery.ts'
import type { DeleteToDeliver, DropReason, IdentifyToDeliver } from './identify.ts'
import type { HookResult } from './decision.ts'
import type { OutboundRecord } from './outbound-record.ts'
import type { DeliveryTrace } from './delivery-trace.ts'

export type CatalogView = {
  readonly sources: ReadonlyMap<string, { readonly enabled: boolean; readonly kind?: 'events' | 'audiences' }>
  readonly destinations: ReadonlyMap<string, DestinationDefinition>
  readonly destinationsBySource: ReadonlyMap<string, readonly DestinationDefinition[]>
}

export type Outlet = {
  produce(record: OutboundRecord): Promise<'acknowledged' | 'refused'>
}

/** The reason why a delivery was written to a retry topic. */
export type ParkReason =
  | 'failed'
  | 'not_before'
  | 'overflow'
  | 'paced'
  | 'proxy'
  | 'uncertain'
  | 'paused'
  | 'shutdown'
  | 'handover'

export type NotRoutedReason =
  | 'source_disabled'
  | 'no_destination'
  | 'destination_off'
  | 'filtered_by_integrations'

/**
 * The way in which a delivery came to its first try: straight from its lane, through the bulkhead because its
 * hook isn't well, after a wait on the ladder, or from `replays`.
 */
export type FirstTryWay = 'direct' | 'paced' | 'parked' | 'replayed'

/** Callbacks for metrics and logs. */
export type PipelineObserver = {
  /**
   * Called before the first request of the first attempt. Called again if the proxy did not let that request
   * through.
   */
  firstTried(delivery: Delivery, way: FirstTryWay): void
  attempted(delivery: Delivery, result: HookResult, durationMs: number): void
  delivered(delivery: Delivery): void
  /**
   * Called for a hook that gets no request of a message that another hook of its destination has accepted.
   */
  omitted(delivery: Delivery, hookId: string, why: OmitReason): void
  parked(delivery: Delivery, why: ParkReason, waitMs: number): void
  deadLettered(reason: DeadReason, detail: string, where: HeldRecord, delivery: Delivery | undefined): void
  notRouted(reason: NotRoutedReason): void
  /**
   * Called after `notRouted` for each destination that is connected to the message's source and doesn't get
   * the message.
   */
  filtered?(reason: SkipReason, message: FilteredMessage, where: HeldRecord): void
  /** Called when a delivery has ended and nothing was sent, as it should be. */
  dropped(delivery: Delivery, why: DropReason): void
  /**
   * Called when a deletion names a source that the catalog doesn't have. For that source the deletion goes to
   * nobody.
   */
  unknownSource(sourceId: string, where: HeldRecord): void
  /** Called when a message was dropped because it came before. */
  repeated(where: HeldRecord, sourceId: string, messageId: string): void
  /** Called on a bug in Sluice that has not harmed any message. */
  failed(error: unknown): void
}

/** A message that a destination doesn't get. */
export type FilteredMessage = {
  readonly destinationId: string
  readonly sourceId: string
  readonly messageId: string
  /** The message's `type`. */
  readonly kind: string
}

/** The memory of messages that came before. */
export type RepeatFilter = {
  /**
   * Returns true only if another record of the same partition has brought the message before. Otherwise
   * remembers the message.
   */
  isRepeat(record: HeldRecord, sourceId: string, messageId: string): boolean
}

/**
 * The calls that the pipeline makes to tracing. It is absent while tracing is off, so that tracing then costs
 * nothing.
 */
export type PipelineTracing = {
  /** Continues the trace of a record for one of its deliveries, or starts a new trace. */
  begin(delivery: Delivery): DeliveryTrace
  /**
   * Returns the headers with which readers of another topic continue the trace of a record that has no
   * delivery.
   */
  headersOf(record: HeldRecord): RetryHeaders
}

export type PipelineOptions = {
  catalog: () => CatalogView
  sender: Sender
  outlet: Outlet
  observer: PipelineObserver
  /** The filter of repeats. Without it, repeats are delivered. */
  repeats?: RepeatFilter
  ladder: Ladder
  topics: { events: string; retryPrefix: string; replays: string; deadLetters: string }
  limits: MessageLimits
  maxInFlight: number
  laneWaitMs: number
  lanePatienceMs: number
  breaker: BreakerOptions
  /** The limits on requests to hooks that aren't well. */
  bulkhead: BulkheadOptions
  /**
   * The limits on records and bytes that are held at once. Past either, `onPressure(true)` asks for no more.
   */
  buffer: { records: number; bytes: number }
  onPressure: (isFull: boolean) => void
  /** Called when a lane can't keep up with messages that are late already: fetching those should wait. */
  onCongested: (isCongested: boolean) => void
  /**
   * Asked before each request. False: other members may own the held records by now, so no request is started
   * until `setStalled(false)`, or until it is asked again.
   */
  mayBegin?: () => boolean
  /**
   * Judges a delivery that has waited. Without it, all are sent. It rejects only once its unit isn't this
   * member's any more.
   */
  judge?: (waiting: WaitingDelivery) => Promise<Judgement>
  /**
   * Returns true if deliveries of that kind must be judged. It only uses what is cheap to know. Without it,
   * those with a property are judged.
   */
  needsJudging?: (sourceId: string, unit: number, hasProperty: boolean) => boolean
  /**
   * Returns true if something of a user may have been deleted. It only uses what is cheap to know, so the
   * answer may wrongly be true. Without it, nothing was deleted.
   */
  mayBeDeleted?: (property: PropertyHeader, unit: number) => boolean
  /**
   * Called each time that a destination misses a value of this space, and so needs a backfill. If it returns
   * a promise, the record isn't settled before that resolves: until then, the need would be forgotten if this
   * process ended.
   */
  needsBackfill?: (destinationId: string, spaceId: string) => Promise<void> | undefined
  /**
   * The id of the source of Sluice's own messages. If the catalog doesn't have that source, somebody has
   * removed it, and its messages go to nobody.
   */
  ownSource?: string
  /** Tracing; absent while it is off. */
  tracing?: PipelineTracing | undefined
  /** Returns the time in epoch milliseconds. */
  now: () => number
}

export type Pipeline = {
  /**
   * Takes a record. The record is settled once each of its deliveries is delivered, on a retry topic, or a
   * dead letter.
   */
  accept(record: HeldRecord, content: RecordContent): void
  /**
   * Delivers the Identify of a record. At the time of the call, it must have the newest known value of its
   * property, or be marked as superseded.
   */
  acceptIdentify(record: HeldRecord, identify: IdentifyToDeliver): void
  /**
   * Delivers each `delete` to the destinations of its source. A destination that is connected to two of the
   * sources gets two.
   */
  acceptDelete(record: HeldRecord, request: DeleteToDeliver): void
  /** Writes a record that no delivery can be made of to the dead letters. */
  refuse(record: HeldRecord, content: RecordContent, reason: DeadReason, detail: string): void
  /**
   * Sets this member's share of the group's partitions, from 0 to 1. Rate limits hold for the whole group.
   */
  setShare(share: number): void
  /**
   * Gives up the waiting deliveries that were abandoned. Their next owner waits only for the requests in
   * flight.
   */
  letGoAbandoned(): void
  /** Stops or resumes attempts. An outage of Sluice or Kafka must not use up a customer's tries. */
  setStalled(isStalled: boolean): void
  /**
   * Stops one unit, or lets it go on: Kafka doesn't take the outcomes of its deliveries. The records of a
   * stopped unit don't hold up other units.
   */
  setUnitStopped(unit: number, isStopped: boolean): void
  /**
   * Begins nothing more, and resolves when nothing is under way. What was begun comes to its end;
   * untouched records stay unsettled, for the next owner.
   */
  drain(): Promise<void>
  stop(): void
  readonly held: { records: number; bytes: number }
  readonly inFlight: number
  readonly queued: number
  /** Requests to hooks that aren't well: how many are in flight, how many wait, and for how many hooks. */
  readonly paced: { readonly inFlight: number; readonly queued: number; readonly hooks: number }
  /**
   * Returns the hooks of the catalog whose breaker is open. Hooks that got no request for
   * `openIfSentWithinMs` are left out.
   */
  openHooks(): readonly OpenHook[]
}

export type OpenHook = {
  readonly destinationId: string
  readonly hookId: string
  readonly openForMs: number
}
