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
 * The way in which a delivery came to its first try: straight from its lane (`direct`), through the bulkhead
 * because its hook isn't well (`paced`), after a wait on the ladder (`parked`), or from `replays`
 * (`replayed`).
 */
export type FirstTryWay = 'direct' | 'paced' | 'parked' | 'replayed'

/** Callbacks for metrics and logs. */
export type PipelineObserver = {
  /**
   * Called before the first request of the first attempt. If the proxy failed, so that nothing was sent, this
   * callback is called again for the next attempt.
   */
  firstTried(delivery: Delivery, way: FirstTryWay): void
  attempted(delivery: Delivery, result: HookResult, durationMs: number): void
  delivered(delivery: Delivery): void
  /**
   * Called for a hook that got no request for a message. Another hook of its destination has accepted the
   * message, so this hook never gets it.
   */
  omitted(delivery: Delivery, hookId: string, why: OmitReason): void
  parked(delivery: Delivery, why: ParkReason, waitMs: number): void
  deadLettered(reason: DeadReason, detail: string, where: HeldRecord, delivery: Delivery | undefined): void
  notRouted(reason: NotRoutedReason): void
  /**
   * Called after `notRouted` for each destination that is connected to the message's source but doesn't get
   * the message.
   */
  filtered?(reason: SkipReason, message: FilteredMessage, where: HeldRecord): void
  /**
   * Called when a delivery has ended without a further request, because its message must not be sent any
   * more. This is no failure.
   */
  dropped(delivery: Delivery, why: DropReason): void
  /**
   * Called when a deletion names a source that the catalog doesn't have. No destination gets a `delete` of
   * that source.
   */
  unknownSource(sourceId: string, where: HeldRecord): void
  /** Called when a message was dropped because it is a repeat. */
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

/** The memory of earlier messages, which finds repeats. */
export type RepeatFilter = {
  /**
   * Returns true only if another record of the same partition has brought the message before. Otherwise
   * remembers the message.
   */
  isRepeat(record: HeldRecord, sourceId: string, messageId: string): boolean
}

/**
 * The calls that the pipeline makes to tracing. While tracing is off, there is no such object, so tracing
 * costs nothing.
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
   * The limits on records and bytes that are held at once. When one of them is reached, `onPressure(true)`
   * stops the fetching.
   */
  buffer: { records: number; bytes: number }
  onPressure: (isFull: boolean) => void
  /**
   * Called with true when a lane can't keep up with messages that were late before they reached this worker.
   * Then fetching should wait. Called with false when no lane is in that state any more.
   */
  onCongested: (isCongested: boolean) => void
  /**
   * Called before requests are started. If it returns false, other members may own the held records by now.
   * Then no request is started until `setStalled(false)`, or until a later call returns true.
   */
  mayBegin?: () => boolean
  /**
   * Judges a delivery that has waited. Without this function, all deliveries that have waited are sent. It
   * may reject only if another member owns the unit by now, or if the worker stops.
   */
  judge?: (waiting: WaitingDelivery) => Promise<Judgement>
  /**
   * Returns true if deliveries of a source in a unit, with or without a property, must be judged. It is
   * cheap: it looks nothing up. Without this function, only deliveries with a property are judged.
   */
  needsJudging?: (sourceId: string, unit: number, hasProperty: boolean) => boolean
  /**
   * Returns true if something of a user may have been deleted. It is cheap and looks nothing up, so the
   * answer may wrongly be true. Without this function, nothing counts as deleted.
   */
  mayBeDeleted?: (property: PropertyHeader, unit: number) => boolean
  /**
   * Called each time that a destination misses a value of a space, and so needs a backfill. If it returns a
   * promise, the record isn't settled before the promise resolves. Otherwise the need for the backfill would
   * be forgotten if this process ended too early.
   */
  needsBackfill?: (destinationId: string, spaceId: string) => Promise<void> | undefined
  /**
   * The id of the source of Sluice's own messages. If the catalog doesn't have this source, somebody has
   * removed it, and Sluice's own messages go to no destination.
   */
  ownSource?: string
  /** Tracing; absent while it is off. */
  tracing?: PipelineTracing | undefined
  /** Returns the time in epoch milliseconds. */
  now: () => number
}

export type Pipeline = {
  /**
   * Takes a record. The record is settled once each of its deliveries is delivered, or is on a retry topic or
   * in the dead letters.
   */
  accept(record: HeldRecord, content: RecordContent): void
  /**
   * Delivers the Identify of a record. At the time of the call, the Identify must have the newest known value
   * of its property, or be marked as superseded.
   */
  acceptIdentify(record: HeldRecord, identify: IdentifyToDeliver): void
  /**
   * Delivers each `delete` to the destinations of its source. A destination that is connected to two of the
   * sources gets two `delete` messages.
   */
  acceptDelete(record: HeldRecord, request: DeleteToDeliver): void
  /** Writes a record from which no delivery can be made to the dead letters. */
  refuse(record: HeldRecord, content: RecordContent, reason: DeadReason, detail: string): void
  /**
   * Sets this member's share of the group's partitions, from 0 to 1. Rate limits hold for the whole group.
   */
  setShare(share: number): void
  /**
   * Gives up the waiting deliveries that were abandoned, so that their next owner has to wait only for the
   * requests in flight.
   */
  letGoAbandoned(): void
  /** Stops or resumes attempts. An outage of Sluice or Kafka must not use up a customer's tries. */
  setStalled(isStalled: boolean): void
  /**
   * Stops one unit, or lets it go on. A unit is stopped while Kafka doesn't accept the outcomes of its
   * deliveries. The records of a stopped unit don't hold up other units.
   */
  setUnitStopped(unit: number, isStopped: boolean): void
  /**
   * Starts nothing more, and resolves when nothing is under way. Attempts that have started come to their
   * end. A record of which no delivery was started stays unsettled, for the next owner.
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
