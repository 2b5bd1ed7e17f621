import type { BreakerOptions } from '../delivery/breaker.ts'
import type { BulkheadOptions } from '../delivery/bulkhead.ts'
import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { Sender } from '../delivery/sender.ts'
import type { MessageLimits } from '../message/limits.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import type { Judgement, WaitingDelivery } from '../message/judgement.ts'
import type { PropertyHeader } from '../message/property-header.ts'
import type { CarriedHeaders } from '../retry/carried.ts'
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

/** Why a delivery was put on a retry topic. */
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
 * How a delivery came to its first try: straight from its lane, through the bulkhead since its hook isn't
 * well, after it had waited on the ladder, or from `replays`.
 */
export type FirstTryWay = 'direct' | 'paced' | 'parked' | 'replayed'

/** Hears what happens, for metrics and logs. */
export type PipelineObserver = {
  /**
   * The first request of its first attempt is about to be made. Told again where the proxy did not let that
   * one through.
   */
  firstTried(delivery: Delivery, way: FirstTryWay): void
  attempted(delivery: Delivery, result: HookResult, durationMs: number): void
  delivered(delivery: Delivery): void
  /** A hook gets no request of a message that another hook of its destination has taken. */
  omitted(delivery: Delivery, hookId: string, why: OmitReason): void
  parked(delivery: Delivery, why: ParkReason, waitMs: number): void
  deadLettered(reason: DeadReason, detail: string, where: HeldRecord, delivery: Delivery | undefined): void
  notRouted(reason: NotRoutedReason): void
  /** After that, of a destination that is connected to the source of a message: it doesn't get it. */
  filtered?(reason: SkipReason, message: FilteredMessage, where: HeldRecord): void
  /** A delivery has ended, and nothing was sent: that is as it should be. */
  dropped(delivery: Delivery, why: DropReason): void
  /** A deletion names a source that the catalog doesn't have: it goes to nobody for that one. */
  unknownSource(sourceId: string, where: HeldRecord): void
  /** A message was dropped, since it came before. */
  repeated(where: HeldRecord, sourceId: string, messageId: string): void
  /** A fault of ours, that has not harmed any message. */
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

/** Knows which messages came before. */
export type RepeatFilter = {
  /**
   * Says yes only of a message that another record has brought before, in the same partition; else remembers
   * it.
   */
  isRepeat(record: HeldRecord, sourceId: string, messageId: string): boolean
}

/**
 * What the pipeline needs of tracing. Where tracing is off there is none of it, and nothing is done for it.
 */
export type PipelineTracing = {
  /** A delivery of a record was made: it goes on with the record's trace, or begins one. */
  begin(delivery: Delivery): DeliveryTrace
  /** By which readers of another topic go on with the trace of a record that has no delivery. */
  headersOf(record: HeldRecord): CarriedHeaders
}

export type PipelineOptions = {
  catalog: () => CatalogView
  sender: Sender
  outlet: Outlet
  observer: PipelineObserver
  /** Absent: repeats are delivered. */
  repeats?: RepeatFilter
  ladder: Ladder
  topics: { events: string; retryPrefix: string; replays: string; deadLetters: string }
  limits: MessageLimits
  maxInFlight: number
  laneWaitMs: number
  lanePatienceMs: number
  breaker: BreakerOptions
  /** What requests to hooks that aren't well may take. */
  bulkhead: BulkheadOptions
  /** Records and bytes that may be held at once; past either, `onPressure(true)` asks for no more. */
  buffer: { records: number; bytes: number }
  onPressure: (isFull: boolean) => void
  /** A lane can't keep up with messages that are late already: fetching those should wait. */
  onCongested: (isCongested: boolean) => void
  /**
   * Asked before each request; false: what is held may be somebody else's by now, and nothing is begun until
   * `setStalled(false)`, or until it is asked again.
   */
  mayBegin?: () => boolean
  /**
   * What becomes of a delivery that has waited; absent: all are sent. It fails only once its unit isn't ours
   * any more.
   */
  judge?: (waiting: WaitingDelivery) => Promise<Judgement>
  /** Which are to be judged, by what costs nothing to know; absent: those with a property. */
  needsJudging?: (sourceId: string, unit: number, hasProperty: boolean) => boolean
  /**
   * Whether something of a user may have been deleted, by what costs nothing to know: rather too often than
   * not. Absent: nothing was.
   */
  mayBeDeleted?: (property: PropertyHeader, unit: number) => boolean
  /**
   * A destination needs a backfill: it missed a value of this space. Told each time. Where it
   * gives a promise, the record isn't settled before that resolves: until then the end of this process would
   * have it forgotten.
   */
  needsBackfill?: (destinationId: string, spaceId: string) => Promise<void> | undefined
  /**
   * The source of messages that Sluice itself writes. Where the catalog has none such, somebody has taken it
   * out: they go to nobody.
   */
  ownSource?: string
  /** Absent: nothing is traced. */
  tracing?: PipelineTracing | undefined
  /** Epoch milliseconds. */
  now: () => number
}

export type Pipeline = {
  /**
   * Takes a record. It is settled when its every delivery is delivered, on a retry topic, or a dead letter.
   */
  accept(record: HeldRecord, content: RecordContent): void
  /**
   * Delivers the Identify of a record. At the time of this call it must be of the newest value that is known
   * of its property, or be told to be superseded.
   */
  acceptIdentify(record: HeldRecord, identify: IdentifyToDeliver): void
  /**
   * Delivers each `delete` to the destinations of its source: two of them to one that is connected to two.
   */
  acceptDelete(record: HeldRecord, request: DeleteToDeliver): void
  /** Puts a record that nothing can be made of into the dead letters. */
  refuse(record: HeldRecord, content: RecordContent, reason: DeadReason, detail: string): void
  /** The part of the group's partitions that is ours, 0 to 1: rate limits hold for the whole group. */
  setShare(share: number): void
  /** Lets go of what waits and was abandoned: its next owner waits for what is in flight only. */
  letGoAbandoned(): void
  /** No attempt is begun while this holds: our own outage must not use up a customer's tries. */
  setStalled(isStalled: boolean): void
  /**
   * The same for the records of one unit, while Kafka doesn't take what becomes of them. They don't hold up
   * other units meanwhile.
   */
  setStanding(unit: number, isStanding: boolean): void
  /**
   * Begins nothing more, and resolves when nothing is under way. What was begun comes to its end;
   * untouched records stay unsettled, for the next owner.
   */
  drain(): Promise<void>
  stop(): void
  readonly held: { records: number; bytes: number }
  readonly inFlight: number
  readonly queued: number
  /** Of requests to hooks that aren't well: how many are under way, how many wait, and of how many hooks. */
  readonly paced: { readonly inFlight: number; readonly queued: number; readonly hooks: number }
  /**
   * Hooks of the catalog whose breaker is open, but for those that were sent nothing for
   * `openIfSentWithinMs`.
   */
  openHooks(): readonly OpenHook[]
}

export type OpenHook = {
  readonly destinationId: string
  readonly hookId: string
  readonly openForMs: number
}
