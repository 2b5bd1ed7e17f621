import type { BreakerOptions, TryClass } from '../delivery/breaker.ts'
import { Bulkhead, type BulkheadOptions } from '../delivery/bulkhead.ts'
import {
  createEndpoints,
  type DestinationDefinition,
  type Endpoint,
  type EndpointHook,
} from '../delivery/endpoint.ts'
import type { LaneClass } from '../delivery/lane.ts'
import { createLanes } from '../delivery/lanes.ts'
import { describeOutcome, type Outcome } from '../delivery/outcome.ts'
import type { Sender } from '../delivery/sender.ts'
import { isUncertain } from '../delivery/uncertain.ts'
import { enter, type EnterResult } from '../message/enter.ts'
import type { MessageLimits } from '../message/limits.ts'
import type { RefusalReason } from '../message/validate.ts'
import {
  type Carried,
  type CarriedHeaders,
  decodeCarried,
  encodeCarried,
  headerText,
  type PropertyHeader,
  type ReceivedHeaders,
  salvageCarried,
} from '../retry/carried.ts'
import { formatWait } from '../retry/duration.ts'
import { type Ladder, nextParkingStep } from '../retry/ladder.ts'
import { route, type SkipReason } from '../routing/route.ts'
import { Attempt, type AttemptListener, type Omitted, type OmitReason, type Way } from './attempt.ts'
import { describeDeath } from './death.ts'
import {
  type Decision,
  decide,
  dueHooks,
  type HookResult,
  tryClassOf,
  waitForTurn,
  waitOn,
} from './decision.ts'
import { type Creditor, Debt, Delivery, type HeldRecord, type LaneTerms } from './delivery.ts'
import type { DeleteToDeliver, DropReason, IdentifyToDeliver, Judgement, Waiting } from './identify.ts'
import { formsOf, type OutboundRecord } from './outbound.ts'
import { Subjects } from './subjects.ts'
import type { PipelineTracing } from './tracing.ts'

/**
 * What a record holds. Apart from the record itself, which is kept until it is settled: these are slices of a whole
 * fetch, and keeping one would keep all of it.
 */
export type RecordContent = {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers?: ReceivedHeaders
  /** Why it could not be read from Kafka; it has neither key nor value then. */
  readonly unreadable?: string
}

export type CatalogView = {
  readonly sources: ReadonlyMap<string, { readonly enabled: boolean; readonly kind?: 'events' | 'audiences' }>
  readonly destinations: ReadonlyMap<string, DestinationDefinition>
  readonly destinationsBySource: ReadonlyMap<string, readonly DestinationDefinition[]>
}

export type Outlet = {
  produce(record: OutboundRecord): Promise<'acknowledged' | 'refused'>
}

/** Why a record or a delivery ended in the dead letters. */
export type DeadReason =
  | RefusalReason
  | 'no_schema_registry'
  | 'bad_frame'
  | 'unknown_schema'
  | 'unusable_schema'
  | 'schema_mismatch'
  | 'no_source'
  | 'unknown_source'
  | 'failed_for_good'
  | 'expired'
  | 'expired_untried'
  | 'destination_removed'
  | 'destination_off'
  | 'bad_retry_headers'
  | 'record_too_large'
  | 'unreadable_batch'
  | 'internal_error'
  | AudienceDeadReason

/** Of records of `audience-changes`, `memberships` and `deletions`. */
type AudienceDeadReason =
  | 'bad_change'
  | 'ahead_of_time'
  | 'bad_property_name'
  | 'sync_incomplete'
  | 'sync_outdated'
  | 'sync_inconsistent'
  | 'sync_too_large'
  | 'sync_wrong_partition'
  | 'bad_deletion'
  | 'bad_state'

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
 * How a delivery came to its first try: straight from its lane, through the bulkhead since its hook isn't well, after it had waited on
 * the ladder, or from `replays`.
 */
export type FirstTryWay = 'direct' | 'paced' | 'parked' | 'replayed'

/** Hears what happens, for metrics and logs. */
export type PipelineObserver = {
  /** The first request of its first attempt is about to be made. Told again where the proxy did not let that one through. */
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
  /** Says yes only of a message that another record has brought before, in the same partition; else remembers it. */
  isRepeat(record: HeldRecord, sourceId: string, messageId: string): boolean
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
  /** What becomes of a delivery that has waited; absent: all are sent. It fails only once its unit isn't ours any more. */
  judge?: (waiting: Waiting) => Promise<Judgement>
  /** Which are to be judged, by what costs nothing to know; absent: those with a property. */
  needsJudging?: (sourceId: string, unit: number, hasProperty: boolean) => boolean
  /** Whether something of a user may have been deleted, by what costs nothing to know: rather too often than not. Absent: nothing was. */
  mayBeDeleted?: (property: PropertyHeader, unit: number) => boolean
  /**
   * A destination has missed a value of this space, and won't get it by itself. Told each time. Where it gives a promise, the
   * record isn't settled before that resolves: until then the end of this process would have it forgotten.
   */
  onBehind?: (destinationId: string, spaceId: string) => Promise<void> | undefined
  /** Absent: nothing is traced. */
  tracing?: PipelineTracing | undefined
  /** Epoch milliseconds. */
  now: () => number
}

export type Pipeline = {
  /** Takes a record. It is settled when its every delivery is delivered, on a retry topic, or a dead letter. */
  accept(record: HeldRecord, content: RecordContent): void
  /**
   * Delivers the Identify of a record. At the time of this call it must be of the newest value that is known of its property, or
   * be told to be superseded.
   */
  acceptIdentify(record: HeldRecord, identify: IdentifyToDeliver): void
  /** Delivers each `delete` to the destinations of its source: two of them to one that is connected to two. */
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
  /** Hooks of the catalog whose breaker is open, but for those that were sent nothing for `openIfSentWithinMs`. */
  openHooks(): readonly OpenHook[]
}

export type OpenHook = {
  readonly destinationId: string
  readonly hookId: string
  readonly openForMs: number
}

/** A message is tried once an hour at least; of a hook that nothing is for, nobody knows how it is. */
const openIfSentWithinMs = 65 * 60_000

export function createPipeline(options: PipelineOptions): Pipeline {
  return new DeliveryPipeline(options)
}

class DeliveryPipeline implements Pipeline {
  readonly #options: PipelineOptions
  readonly #endpoints
  readonly #lanes
  readonly #held = { records: 0, bytes: 0 }
  /** Of these, those that wait for nothing but hooks that aren't well: the others' buffer is not theirs. */
  readonly #outside = { records: 0, bytes: 0 }
  readonly #bulkhead: Bulkhead
  readonly #listener: AttemptListener<Delivery> = {
    begun: (delivery, way) => {
      delivery.debt.isBegun = true
      delivery.attempts++
      delivery.waits = 0
      if (delivery.attempts === 1) this.#options.observer.firstTried(delivery, firstTryWay(delivery, way))
    },
    answered: (delivery, result, durationMs) =>
      this.#options.observer.attempted(delivery, result, durationMs),
    mayGoOn: ({ isAbandoned }) => !this.#isDraining && !isAbandoned,
    concluded: (delivery, endpoint, results, omitted, startedMs) => {
      if (results.length === 0) this.#hadNoTurn(delivery, omitted)
      else this.#conclude(delivery, endpoint, results, omitted, startedMs)
    },
    omitted: (delivery, omitted) => this.#reportOmitted(delivery, [omitted]),
    isCurrent: (delivery, { definition }) => this.#isCurrent(delivery, definition),
    freed: (delivery, isConcluded) => this.#free(delivery, isConcluded),
    ended: () => this.#end(),
  }
  readonly #subjects = new Subjects<Delivery>({
    superseded: (delivery) => this.#supersede(delivery),
    next: (delivery) => this.#next(delivery),
  })
  readonly #creditor: Creditor = {
    paid: ({ bytes, isOut }) => this.#giveBack(isOut ? this.#outside : this.#held, bytes),
    movedOut: ({ bytes }) => {
      this.#outside.records++
      this.#outside.bytes += bytes
      this.#giveBack(this.#held, bytes)
    },
  }
  #share = 1
  #isFull = false
  #isDraining = false
  #isStalled = false
  /** Attempts and produces that are under way. */
  #underWay = 0
  #onIdle: (() => void) | undefined

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#endpoints = createEndpoints(options.breaker)
    this.#bulkhead = new Bulkhead(options.bulkhead)
    this.#lanes = createLanes<Delivery>({
      maxInFlight: options.maxInFlight,
      waitMs: options.laneWaitMs,
      patienceMs: options.lanePatienceMs,
      freeRecords: () => this.#freeRecords(),
      onCongested: options.onCongested,
      start: (delivery) => this.#begin(delivery),
      overflow: (delivery) => this.#park(delivery, 'overflow'),
      letGo: (delivery) => this.#letGo(delivery, 'handover'),
    })
  }

  get held(): { records: number; bytes: number } {
    const { records, bytes } = this.#held
    return { records: records + this.#outside.records, bytes: bytes + this.#outside.bytes }
  }

  get inFlight(): number {
    return this.#lanes.inFlight + this.#bulkhead.inFlight
  }

  get queued(): number {
    return this.#lanes.queued + this.#subjects.waiting + this.#bulkhead.queued
  }

  get paced(): Pipeline['paced'] {
    return this.#bulkhead
  }

  openHooks(): readonly OpenHook[] {
    const nowMs = performance.now()
    return [...this.#options.catalog().destinations.values()].flatMap((definition) =>
      (this.#endpoints.known(definition)?.hooks ?? []).flatMap(({ id, breaker }) => {
        const openForMs = breaker.openForMs(nowMs, openIfSentWithinMs)
        return openForMs > 0 ? [{ destinationId: definition.id, hookId: id, openForMs }] : []
      }),
    )
  }

  accept(record: HeldRecord, content: RecordContent): void {
    if (content.unreadable !== undefined)
      this.#refuse(record, content, 'unreadable_batch', content.unreadable)
    else if (record.topic === this.#options.topics.events) this.#acceptEvent(record, content)
    else this.#acceptCarried(record, content)
  }

  acceptIdentify(record: HeldRecord, identify: IdentifyToDeliver): void {
    const { spaceId, userId, property, since, messageId, body } = identify
    const isSuperseded = identify.isSuperseded ?? false
    const { catalog, observer } = this.#options
    const { sources, destinationsBySource } = catalog()
    const space = sources.get(spaceId)
    const connected = destinationsBySource.get(spaceId) ?? []
    if (space === undefined || space.kind === 'events') {
      const debt = this.#refuseIdentify(record, identify)
      for (const told of this.#tellBehind(connected, [], spaceId)) this.#oweUntil(told, debt)
      return
    }
    if (!space.enabled) observer.notRouted('source_disabled')
    const about = { sourceId: spaceId, messageId, record }
    const to = space.enabled ? this.#route({ type: 'identify' }, connected, about) : []
    // A superseded one too: where it may have been sent, nothing is sent after its late effect.
    const told = to.length < connected.length ? this.#tellBehind(connected, to, spaceId) : []
    const message: OwnMessage = {
      sourceId: spaceId,
      messageId,
      kind: 'identify',
      property: { userId, spaceId, property, since },
      isUncertain: isSuperseded || record.mayHaveBegun === true,
    }
    const routed = to.map((destination) => ({ message, body, destination }))
    const held = { userId, bodyBytes: body.length }
    for (const [delivery, destination] of this.#deliveriesOf(record, routed, held, told)) {
      if (isSuperseded) this.#park(delivery, 'uncertain')
      else this.#enqueue(delivery, destination)
    }
  }

  acceptDelete(record: HeldRecord, { userId, deletes }: DeleteToDeliver): void {
    const { catalog, observer } = this.#options
    const { sources, destinationsBySource } = catalog()
    const routed = deletes.flatMap(({ sourceId, messageId, body }) => {
      // One that is switched off has sent something before: what came of that is to be deleted too.
      if (!sources.has(sourceId)) {
        observer.unknownSource(sourceId, record)
        return []
      }
      const message: OwnMessage = { sourceId, messageId, kind: 'delete' }
      const to = this.#route({ type: 'delete' }, destinationsBySource.get(sourceId) ?? [], {
        sourceId,
        messageId,
        record,
      })
      return to.map((destination) => ({ message, body, destination }))
    })
    const bodyBytes = deletes.reduce((sum, { body }) => sum + body.length, 0)
    for (const [delivery, destination] of this.#deliveriesOf(record, routed, { userId, bodyBytes }))
      this.#enqueue(delivery, destination)
  }

  refuse(record: HeldRecord, content: RecordContent, reason: DeadReason, detail: string): void {
    this.#refuse(record, content, reason, detail, keptOfEvent)
  }

  setShare(share: number): void {
    this.#share = share
  }

  letGoAbandoned(): void {
    for (const delivery of this.#subjects.takeWaiting(({ isAbandoned }) => isAbandoned))
      this.#letGo(delivery, 'handover')
    this.#lanes.letGoAbandoned()
    this.#bulkhead.dropAbandoned()
  }

  setStalled(isStalled: boolean): void {
    this.#isStalled = isStalled
    if (isStalled) {
      this.#lanes.shut()
      this.#bulkhead.shut()
    } else if (!this.#isDraining) {
      this.#lanes.open()
      this.#bulkhead.open()
    }
    this.#reportPressure()
  }

  async drain(): Promise<void> {
    this.#isDraining = true
    this.#lanes.shut()
    for (const delivery of this.#subjects.takeWaiting(() => true)) this.#letGo(delivery, 'shutdown')
    for (const delivery of this.#lanes.takeQueued()) this.#letGo(delivery, 'shutdown')
    this.#bulkhead.shut()
    this.#bulkhead.dropAll()
    if (this.#underWay === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }

  stop(): void {
    this.#lanes.stop()
    this.#bulkhead.stop()
  }

  /** A delivery that was not begun stays behind, for the next owner of its record. */
  #letGo(delivery: Delivery, why: 'shutdown' | 'handover'): void {
    const { isBegun, record } = delivery.debt
    // Its record's other deliveries were begun: if this one stayed behind, they would be made again. Where they are in any case, so is this one.
    if ((isBegun && record.isElsewhere !== true) || delivery.isNewlyUncertain) {
      this.#park(delivery, why)
      return
    }
    this.#subjects.leave(delivery)
    delivery.void()
  }

  #acceptEvent(record: HeldRecord, content: RecordContent): void {
    const { catalog, observer } = this.#options
    const sourceId = headerText(content.headers, 'source-id')
    if (sourceId === undefined || sourceId === '') {
      this.#refuse(
        record,
        content,
        'no_source',
        'the record has no header source-id: send the id of a source of the catalog',
      )
      return
    }
    const { sources, destinationsBySource } = catalog()
    const source = sources.get(sourceId)
    if (source === undefined) {
      this.#refuse(record, content, 'unknown_source', `the catalog has no source ${quote(sourceId)}`)
      return
    }
    if (!source.enabled) {
      observer.notRouted('source_disabled')
      record.settle()
      return
    }
    const entered = this.#enter(record, content)
    if (!entered.ok) {
      this.#refuse(record, content, entered.reason, entered.detail)
      return
    }
    const { message } = entered
    const destinations = this.#route(message, destinationsBySource.get(sourceId) ?? [], {
      sourceId,
      messageId: message.messageId,
      record,
    })
    if (destinations.length === 0) {
      record.settle()
      return
    }
    if (message.isIdGiven && this.#isRepeat(record, sourceId, message.messageId)) {
      observer.repeated(record, sourceId, message.messageId)
      record.settle()
      return
    }
    const debt = this.#hold(record, destinations.length, (content.key?.length ?? 0) + message.body.length)
    const key = content.key === null ? null : Buffer.from(content.key)
    for (const destination of destinations) {
      const carried: Carried = {
        sourceId,
        destinationId: destination.id,
        messageId: message.messageId,
        kind: message.type,
        nextRung: 0,
        attempts: 0,
        firstSeenMs: record.timestampMs,
        expiresAtMs: 0,
        failedHooks: none,
        notBeforeMs: nowhere,
        lastOutcome: '',
        origin: record,
      }
      const lane = this.#laneTerms(destination, 'fresh')
      this.#enqueue(this.#deliveryOf(carried, { debt, key, body: message.body, lane }), destination)
    }
  }

  /** A throw would be a fault of ours, and must not stop the partition. */
  #enter(record: HeldRecord, { key, value }: RecordContent): EnterResult | InternalFault {
    const { limits, topics } = this.#options
    const { partition, offset, timestampMs } = record
    let entered: EnterResult
    try {
      entered = enter(value, { topic: topics.events, partition, offset, timestampMs }, limits)
    } catch (error) {
      return internalFault(error)
    }
    const keyBytes = key?.length ?? 0
    if (!entered.ok || keyBytes + entered.message.body.length <= limits.maxBytes) return entered
    const detail = `Send less: with its key of ${keyBytes} bytes the message is over ${limits.maxBytes} bytes.`
    return { ok: false, reason: 'body_too_large', detail }
  }

  /** Asked last, so that nothing is remembered of what was refused or went to nobody: that may be sent again. */
  #isRepeat(record: HeldRecord, sourceId: string, messageId: string): boolean {
    const { repeats, observer } = this.#options
    try {
      return repeats?.isRepeat(record, sourceId, messageId) ?? false
    } catch (error) {
      // A repeat too many does no harm: receivers know it by its id.
      observer.failed(error)
      return false
    }
  }

  #route(
    message: Parameters<typeof route>[0],
    connected: readonly DestinationDefinition[],
    about: RoutedRecord,
  ): readonly DestinationDefinition[] {
    const { to } = route(message, connected)
    if (connected.length === 0) this.#options.observer.notRouted('no_destination')
    else if (to.length < connected.length) this.#tellSkipped(message.type, connected, to, about)
    return to
  }

  #tellSkipped(
    kind: string,
    connected: readonly DestinationDefinition[],
    to: readonly DestinationDefinition[],
    { sourceId, messageId, record }: RoutedRecord,
  ): void {
    const { observer } = this.#options
    for (const destination of connected) {
      if (to.includes(destination)) continue
      const reason = destination.state === 'off' ? 'destination_off' : 'filtered_by_integrations'
      observer.notRouted(reason)
      observer.filtered?.(reason, { destinationId: destination.id, sourceId, messageId, kind }, record)
    }
  }

  /** A record of a retry topic that has come due. */
  #acceptCarried(record: HeldRecord, content: RecordContent): void {
    const { key, value, headers } = content
    const decoded = decodeCarried(headers)
    if (!decoded.ok || value === null || value.length === 0) {
      const detail = decoded.ok ? 'the record has no value' : decoded.detail
      this.#refuse(record, content, 'bad_retry_headers', detail)
      return
    }
    const { carried } = decoded
    const { catalog, ladder, now, topics } = this.#options
    const destination = catalog().destinations.get(carried.destinationId)
    const delivery = this.#deliveryOf(carried, {
      debt: this.#hold(record, 1, (key?.length ?? 0) + value.length),
      key: key === null ? null : Buffer.from(key),
      body: Buffer.from(value),
      lane: this.#laneTerms(destination, record.topic === topics.replays ? 'backfill' : 'retry'),
    })
    // No record of ours is later; one that says so would go round for ever.
    delivery.expiresAtMs = Math.min(delivery.expiresAtMs, now() + ladder.limitMs)
    const { property } = carried
    if (property !== undefined && record.mayHaveBegun === true) delivery.becomeUncertain()
    if (!this.#needsJudging(delivery)) this.#enqueue(delivery, destination)
    else if (property === undefined || this.#subjects.enter(delivery, property)) void this.#judge(delivery)
  }

  /** A `delete` is never too late, whoever asks for another. */
  #needsJudging({ kind, sourceId, property, debt }: Delivery): boolean {
    const { judge, needsJudging } = this.#options
    if (judge === undefined || kind === 'delete') return false
    const hasProperty = property !== undefined
    return needsJudging?.(sourceId, debt.record.partition, hasProperty) ?? hasProperty
  }

  /** One with a property has its subject meanwhile: a newer value waits, so what is said now still holds when it is sent. */
  async #judge(delivery: Delivery): Promise<void> {
    this.#underWay++
    const judgement = await this.#judgementOf(delivery)
    if (judgement === undefined) this.#letGo(delivery, this.#isDraining ? 'shutdown' : 'handover')
    else this.#obey(delivery, judgement)
    this.#end()
  }

  /** Nothing when it isn't to be delivered here any more. */
  async #judgementOf(delivery: Delivery): Promise<Judgement | undefined> {
    const { sourceId, firstSeenMs, property, body, isUncertain: isSticky, debt } = delivery
    const waiting = { unit: debt.record.partition, sourceId, firstSeenMs, body, isUncertain: isSticky }
    let judgement: Judgement | undefined
    try {
      judgement = await this.#options.judge?.(property === undefined ? waiting : { ...waiting, property })
    } catch (error) {
      // To send it or to drop it could both be wrong: the process ends, and its next owner asks again.
      if (!this.#isDraining && !delivery.isAbandoned) throw error
    }
    return this.#isDraining || delivery.isAbandoned ? undefined : judgement
  }

  #obey(delivery: Delivery, judgement: Judgement): void {
    if (delivery.isDelivered && isOfSame(delivery, judgement)) {
      // What was done late has changed nothing.
      this.#settle(delivery)
      return
    }
    switch (judgement.kind) {
      case 'superseded':
        // What is newer went to those that were connected.
        if (!this.#isConnected(delivery)) this.#missed(delivery)
        this.#drop(delivery, judgement.kind)
        return
      case 'suppressed':
        this.#drop(delivery, judgement.kind)
        return
      case 'send_current':
        delivery.isDelivered = false
        delivery.messageId = judgement.messageId
        delivery.body = judgement.body
        if (delivery.property !== undefined)
          delivery.property = { ...delivery.property, since: judgement.since }
        break
      case 'send':
        break
    }
    this.#enqueue(delivery, this.#options.catalog().destinations.get(delivery.destinationId))
  }

  #drop(delivery: Delivery, why: DropReason): void {
    if (!delivery.isDelivered) this.#options.observer.dropped(delivery, why)
    this.#settle(delivery)
  }

  #settle(delivery: Delivery): void {
    this.#subjects.leave(delivery)
    delivery.pay()
  }

  #supersede(delivery: Delivery): void {
    if (delivery.isAbandoned) this.#letGo(delivery, 'handover')
    else this.#drop(delivery, 'superseded')
  }

  /** Goes on in a turn of its own: the lanes may be in the middle of something. */
  #next(delivery: Delivery): void {
    this.#underWay++
    queueMicrotask(() => {
      if (this.#isDraining || delivery.isAbandoned)
        this.#letGo(delivery, this.#isDraining ? 'shutdown' : 'handover')
      else if (delivery.laneClass !== 'fresh' && this.#needsJudging(delivery)) void this.#judge(delivery)
      else this.#enqueue(delivery, this.#options.catalog().destinations.get(delivery.destinationId))
      this.#end()
    })
  }

  #tellBehind(
    connected: readonly DestinationDefinition[],
    routed: readonly DestinationDefinition[],
    spaceId: string,
  ): readonly Promise<void>[] {
    return connected.flatMap((destination) => {
      const told = routed.includes(destination)
        ? undefined
        : this.#options.onBehind?.(destination.id, spaceId)
      return told ?? []
    })
  }

  /** Settles a record of which there are none, once all is `told`. */
  #deliveriesOf(
    record: HeldRecord,
    routed: readonly { message: OwnMessage; body: Buffer; destination: DestinationDefinition }[],
    { userId, bodyBytes }: { userId: string; bodyBytes: number },
    told: readonly Promise<void>[] = [],
  ): readonly (readonly [Delivery, DestinationDefinition])[] {
    if (routed.length === 0 && told.length === 0) {
      record.settle()
      return []
    }
    const key = Buffer.from(userId)
    const debt = this.#hold(record, routed.length, key.length + bodyBytes)
    for (const one of told) this.#oweUntil(one, debt)
    return routed.map(({ message, body, destination }) => {
      const carried: Carried = {
        ...message,
        destinationId: destination.id,
        nextRung: 0,
        attempts: 0,
        firstSeenMs: record.timestampMs,
        expiresAtMs: 0,
        failedHooks: none,
        notBeforeMs: nowhere,
        lastOutcome: '',
        origin: record,
      }
      const delivery = this.#deliveryOf(carried, {
        debt,
        key,
        body,
        lane: this.#laneTerms(destination, 'fresh'),
      })
      delivery.isNewlyUncertain = delivery.isUncertain
      return [delivery, destination]
    })
  }

  #deliveryOf(carried: Carried, begun: ConstructorParameters<typeof Delivery>[1]): Delivery {
    const delivery = new Delivery(carried, begun)
    const { tracing } = this.#options
    if (tracing !== undefined) delivery.trace = tracing.begin(delivery)
    return delivery
  }

  #enqueue(delivery: Delivery, destination: DestinationDefinition | undefined): void {
    if (destination === undefined)
      this.#bury(delivery, 'destination_removed', 'the catalog has no such destination')
    else if (destination.state === 'off') this.#bury(delivery, 'destination_off', 'the destination is off')
    else if (destination.state === 'paused') this.#park(delivery, 'paused')
    else {
      const endpoint = this.#endpoints.of(destination)
      delivery.endpoint = endpoint
      delivery.seenIn = this.#options.catalog()
      if (this.#hasNoChance(delivery, endpoint)) this.#park(delivery, 'paced')
      else this.#offer(delivery)
    }
  }

  #offer(delivery: Delivery): void {
    const { property } = delivery
    // One that is there already has had its turn.
    if (property !== undefined && delivery.subject === undefined && !this.#subjects.enter(delivery, property))
      return
    this.#lanes.offer(delivery)
  }

  /** A try in between of which nothing says that any hook is ready for it: it needn't come to its lane first. */
  #hasNoChance(delivery: Delivery, { hooks }: Endpoint): boolean {
    if (delivery.attempts === 0) return false
    const nowMs = performance.now()
    const isHopeless = hooks.every(
      ({ id, breaker }) => delivery.failedHooks.includes(id) || breaker.advise('between', nowMs) === 'skip',
    )
    return isHopeless && this.#tryClassOf(delivery, hooks, this.#options.now()) !== 'last'
  }

  #tryClassOf(delivery: Delivery, hooks: Endpoint['hooks'], nowMs: number): TryClass {
    const remaining = hooks.filter(({ id }) => !delivery.failedHooks.includes(id))
    const { ladder, bulkhead } = this.#options
    return tryClassOf(ladder, delivery, idsOf(remaining), nowMs + bulkhead.waitMs)
  }

  /** Begins one attempt; the catalog may have changed since the delivery was enqueued. */
  #begin(queued: Delivery): void {
    const delivery = queued.subject === undefined ? queued : this.#newestOf(queued)
    const catalog = this.#options.catalog()
    const seen = delivery.seenIn === catalog ? delivery.endpoint : undefined
    const definition = seen?.definition ?? catalog.destinations.get(delivery.destinationId)
    if (definition?.state !== 'on') {
      this.#lanes.finished(delivery)
      this.#enqueue(delivery, definition)
      return
    }
    delivery.laneCap = definition.maxInFlight
    const endpoint = seen ?? this.#endpoints.of(definition)
    const startedMs = this.#options.now()
    const { due, remaining } = dueHooks(endpoint.hooks, delivery, startedMs)
    const hooks = due.length > 0 ? due : this.#hooksAtLastTry(delivery, remaining, startedMs)
    if (hooks.length === 0) {
      this.#lanes.finished(delivery)
      this.#waitForHooks(delivery, remaining, startedMs)
      return
    }
    const nowMs = performance.now()
    const isWell = ({ breaker }: EndpointHook): boolean => breaker.isWell(nowMs)
    if (hooks.every(isWell)) {
      this.#attempt(delivery, endpoint, { hooks, sick: noHooks, tryClass: 'first' }, startedMs)
      return
    }
    const sick = hooks.filter((hook) => !isWell(hook))
    const tryClass = due.length === 0 ? 'last' : this.#tryClassOf(delivery, hooks, startedMs)
    if (sick.length === hooks.length && this.#isHeld(delivery, sick, tryClass)) return
    const ordered = definition.strategy === 'failover' ? failoverOrder(hooks, sick, nowMs) : hooks
    this.#attempt(delivery, endpoint, { hooks: ordered, sick, tryClass }, startedMs)
  }

  /** All of its hooks work, and asked for a pause: a short one slows its lane, with its limits; for a long one it has no turn. */
  #isHeld(delivery: Delivery, hooks: Endpoint['hooks'], tryClass: TryClass): boolean {
    if (tryClass === 'last' || tryClass === 'only') return false
    if (hooks.some(({ breaker }) => breaker.state === 'open')) return false
    const waitMs = Math.min(...hooks.map(({ breaker }) => breaker.heldUntilMs)) - performance.now()
    if (waitMs <= this.#options.laneWaitMs) {
      this.#lanes.postpone(delivery, Math.max(1, Math.ceil(waitMs)))
    } else {
      this.#lanes.finished(delivery)
      this.#park(delivery, 'paced')
    }
    return true
  }

  /** A newer value takes the place in the lane of the one that it waits for, as long as that was not begun. */
  #newestOf(queued: Delivery): Delivery {
    const newest = this.#subjects.newestOf(queued)
    if (newest === queued) return queued
    newest.queuedAtMs = queued.queuedAtMs
    this.#supersede(queued)
    return newest
  }

  /** Hooks asked for a later time than any try is left for: unless they are broken, they are tried now, rather than never. */
  #hooksAtLastTry(delivery: Delivery, remaining: Endpoint['hooks'], nowMs: number): Endpoint['hooks'] {
    if (remaining.length === 0) return remaining
    const step = waitOn(this.#options.ladder, delivery, idsOf(remaining), nowMs)
    return step.kind === 'dead' ? remaining : []
  }

  #waitForHooks(delivery: Delivery, remaining: Endpoint['hooks'], nowMs: number): void {
    if (remaining.length === 0) {
      this.#expire(delivery, 'failed_for_good')
      return
    }
    this.#follow(delivery, waitOn(this.#options.ladder, delivery, idsOf(remaining), nowMs), 'not_before')
  }

  #attempt(
    delivery: Delivery,
    endpoint: Endpoint,
    { hooks, sick, tryClass }: { hooks: Endpoint['hooks']; sick: Endpoint['hooks']; tryClass: TryClass },
    startedMs: number,
  ): void {
    this.#underWay++
    delivery.hasPlace = true
    if (sick.length === hooks.length && !this.#goesOutside(delivery)) return
    new Attempt({
      sender: this.#options.sender,
      bulkhead: this.#bulkhead,
      endpoint,
      hooks,
      sick,
      tryClass,
      isForAll: delivery.property !== undefined,
      listener: this.#listener,
      delivery,
      startedMs,
      now: this.#options.now,
    }).start()
  }

  /** It waits for hooks that aren't well, out of their budget. Where that is used up, as by records that Kafka doesn't take, it has no turn. */
  #goesOutside(delivery: Delivery): boolean {
    if (this.#hasRoomOutside(delivery)) {
      delivery.moveOut()
      return true
    }
    this.#hadNoTurn(delivery, [])
    this.#free(delivery, true)
    this.#end()
    return false
  }

  #hasRoomOutside({ debt }: Delivery): boolean {
    const { maxTries, maxBytes } = this.#options.bulkhead
    const { records, bytes } = this.#outside
    return debt.isOut || (records < maxTries && (records === 0 || bytes + debt.bytes <= maxBytes))
  }

  /** Its hooks aren't well, and none was ready for it: no attempt was made, and no rung is used up. */
  #hadNoTurn(delivery: Delivery, omitted: readonly Omitted[]): void {
    if (omitted.some(({ why }) => why === 'abandoned')) this.#letGo(delivery, 'handover')
    else if (omitted.some(({ why }) => why === 'closed')) this.#letGo(delivery, 'shutdown')
    else this.#park(delivery, 'paced')
  }

  /** Nothing of its attempt is under way any more but what goes through the bulkhead. */
  #free(delivery: Delivery, isConcluded: boolean): void {
    delivery.hasPlace = false
    if (!isConcluded && this.#hasRoomOutside(delivery)) delivery.moveOut()
    if (delivery.isToGoBack) this.#goBack(delivery)
    else this.#lanes.finished(delivery)
  }

  #conclude(
    delivery: Delivery,
    endpoint: Endpoint,
    results: readonly HookResult[],
    omitted: readonly Omitted[],
    startedMs: number,
  ): void {
    const last = results.at(-1)
    if (last !== undefined) delivery.lastOutcome = describeOutcome(last.outcome)
    const isInDoubt = delivery.property !== undefined && results.some(isUncertainResult)
    if (isInDoubt) delivery.becomeUncertain()
    if (last?.outcome.kind === 'proxy' && results.every(({ outcome }) => outcome.kind === 'proxy')) {
      this.#takeBack(delivery, last.outcome.isDown)
      return
    }
    const { ladder, now } = this.#options
    const hookIds = idsOf(endpoint.hooks)
    const decision = decide({ ladder, carried: delivery, hookIds, results, startedMs, nowMs: now() })
    if (decision.kind !== 'delivered') {
      this.#follow(delivery, decision, 'failed', last?.outcome)
      return
    }
    this.#reportOmitted(delivery, omitted)
    if (isInDoubt) this.#outlast(delivery)
    else if (this.#mayBeDeleted(delivery)) void this.#confirm(delivery)
    else this.#follow(delivery, decision, 'failed')
  }

  /** Each hook is owed one request of a message that another takes; later attempts are only for those that have failed. */
  #reportOmitted(delivery: Delivery, omitted: readonly Omitted[]): void {
    if (delivery.attempts > 1) return
    for (const { hookId, why } of omitted) this.#options.observer.omitted(delivery, hookId, why)
  }

  #mayBeDeleted({ property, debt }: Delivery): boolean {
    if (property === undefined) return false
    return this.#options.mayBeDeleted?.(property, debt.record.partition) ?? false
  }

  /** It is delivered. Where its user was deleted after it was judged, the `delete` may have come before it. */
  async #confirm(delivery: Delivery): Promise<void> {
    this.#underWay++
    delivery.becomeUncertain()
    const judgement = await this.#judgementOf(delivery)
    if (judgement !== undefined && isOfSame(delivery, judgement)) this.#follow(delivery, delivered, 'failed')
    else this.#outlast(delivery)
    this.#end()
  }

  /**
   * It is delivered, but a request of the same attempt may still be acted on, after a newer value even: a rung later it is
   * judged once more. What is sent then, if anything, begins at the first rung.
   */
  #outlast(delivery: Delivery): void {
    this.#options.observer.delivered(delivery)
    Object.assign(delivery, { isDelivered: true, nextRung: 0, expiresAtMs: 0, notBeforeMs: nowhere })
    this.#park(delivery, 'uncertain')
  }

  /** Nothing was sent, since our proxy failed: that was no attempt. */
  #takeBack(delivery: Delivery, isProxyDown: boolean): void {
    delivery.attempts--
    if (isProxyDown && delivery.hasPlace) delivery.isToGoBack = true
    else if (isProxyDown) this.#offerLater(delivery)
    // It may be this hook alone for which the proxy fails: then it must come to an end some time.
    else this.#park(delivery, 'proxy')
  }

  /** It has no place in its lane to go back to. */
  #offerLater(delivery: Delivery): void {
    this.#underWay++
    setTimeout(() => {
      delivery.moveIn()
      if (this.#isDraining) this.#letGo(delivery, 'shutdown')
      else if (delivery.isAbandoned) this.#letGo(delivery, 'handover')
      else this.#lanes.offer(delivery)
      this.#end()
    }, proxyPauseMs)
  }

  #goBack(delivery: Delivery): void {
    delivery.isToGoBack = false
    if (!this.#isDraining && !delivery.isAbandoned) {
      this.#lanes.postpone(delivery, proxyPauseMs)
      return
    }
    this.#lanes.finished(delivery)
    this.#letGo(delivery, this.#isDraining ? 'shutdown' : 'handover')
  }

  #follow(delivery: Delivery, decision: Decision, why: ParkReason, last?: Outcome): void {
    if (decision.kind === 'delivered') {
      this.#options.observer.delivered(delivery)
      this.#settle(delivery)
      return
    }
    Object.assign(delivery, decision.next)
    if (decision.kind === 'wait') this.#produceRetry(delivery, decision.waitMs, why)
    else this.#expire(delivery, decision.reason, last)
  }

  #expire(delivery: Delivery, reason: 'failed_for_good' | 'expired', last?: Outcome): void {
    const { ladder } = this.#options
    const isUntried = reason === 'expired' && delivery.attempts === 0
    const named = isUntried ? 'expired_untried' : reason
    this.#bury(delivery, named, describeDeath(named, delivery, { limitMs: ladder.limitMs, last }))
  }

  /** Sends a delivery on without an attempt. One that was never tried, or whose destination pauses, doesn't expire. */
  #park(delivery: Delivery, why: Exclude<ParkReason, 'failed' | 'not_before'>): void {
    const { ladder, now } = this.#options
    if (why === 'paused') delivery.expiresAtMs = 0
    // The four hours run while the customer is down, whether we tried or knew better.
    const doesExpire = why === 'paced' || why === 'proxy'
    if (doesExpire && delivery.expiresAtMs === 0) delivery.expiresAtMs = now() + ladder.limitMs
    if (delivery.expiresAtMs === 0) {
      const { rung, waitMs } = nextParkingStep(ladder, delivery.nextRung)
      delivery.nextRung = rung + 1
      this.#produceRetry(delivery, waitMs, why)
    } else {
      const hooks = this.#options.catalog().destinations.get(delivery.destinationId)?.hooks ?? []
      const remaining = idsOf(hooks.filter(({ id }) => !delivery.failedHooks.includes(id)))
      if (why === 'paced') this.#waitForTurn(delivery, remaining)
      else this.#follow(delivery, waitOn(ladder, delivery, remaining, now()), why)
    }
  }

  #waitForTurn(delivery: Delivery, hookIds: readonly string[]): void {
    const { ladder, now } = this.#options
    const step = waitForTurn(ladder, delivery, hookIds, now())
    if (step.kind === 'expired') {
      this.#expire(delivery, 'expired')
      return
    }
    delivery.waits = step.waits
    this.#produceRetry(delivery, step.waitMs, 'paced')
  }

  #produceRetry(delivery: Delivery, waitMs: number, why: ParkReason): void {
    const { topics, observer } = this.#options
    observer.parked(delivery, why, waitMs)
    void this.#produce(delivery, topics.retryPrefix + formatWait(waitMs), headersOf(delivery))
  }

  #bury(delivery: Delivery, reason: DeadReason, detail: string): void {
    const { topics, observer } = this.#options
    observer.deadLettered(reason, detail, delivery.debt.record, delivery)
    this.#missed(delivery)
    void this.#produce(delivery, topics.deadLetters, { ...headersOf(delivery), reason, detail })
  }

  #isCurrent({ destinationId, seenIn }: Delivery, definition: DestinationDefinition): boolean {
    const catalog = this.#options.catalog()
    return seenIn === catalog || catalog.destinations.get(destinationId) === definition
  }

  #isConnected({ destinationId, sourceId }: Delivery): boolean {
    const connected = this.#options.catalog().destinationsBySource.get(sourceId)
    return connected?.some(({ id }) => id === destinationId) ?? false
  }

  #missed({ destinationId, property, debt }: Delivery): void {
    if (property === undefined) return
    const told = this.#options.onBehind?.(destinationId, property.spaceId)
    if (told !== undefined) this.#oweUntil(told, debt)
  }

  #oweUntil(done: Promise<void>, debt: Debt): void {
    debt.owe()
    this.#underWay++
    void done.then(() => {
      debt.pay()
      this.#end()
    })
  }

  async #produce(delivery: Delivery, topic: string, headers: CarriedHeaders): Promise<void> {
    const { debt, key, body } = delivery
    const { deadLetters } = this.#options.topics
    debt.isBegun = true
    this.#underWay++
    this.#subjects.leave(delivery)
    const record = { topic, partition: debt.record.partition, key, value: body, headers }
    if (topic === deadLetters) await this.#writeDeadLetter(record)
    else if (!(await this.#isTaken(record))) {
      const { reason, detail } = tooLarge
      this.#options.observer.deadLettered(reason, detail, debt.record, delivery)
      this.#missed(delivery)
      await this.#writeDeadLetter({ ...record, topic: deadLetters, headers: { ...headers, reason, detail } })
    }
    delivery.pay()
    this.#end()
  }

  /** A record that can't be delivered to anybody goes to the dead letters as it is, with the headers that we know. */
  #refuse(
    record: HeldRecord,
    { key, value, headers }: RecordContent,
    reason: DeadReason,
    detail: string,
    keep = record.topic === this.#options.topics.events ? keptOfEvent : keptOfCarried,
  ): Debt {
    const { topics, observer, tracing } = this.#options
    observer.deadLettered(reason, detail, record, undefined)
    const { topic, partition, offset, timestampMs } = record
    const debt = this.#hold(record, 0, (key?.length ?? 0) + (value?.length ?? 0))
    const letter: OutboundRecord = {
      topic: topics.deadLetters,
      partition,
      // Copies, so that no fetch is kept while Kafka takes nothing.
      key: key === null ? null : Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
      headers: {
        ...keep(headers),
        ...tracing?.headersOf(record),
        reason,
        detail,
        origin: `${topic}/${partition}/${offset}`,
        'first-seen': String(Math.max(0, timestampMs)),
      },
    }
    this.#oweUntil(this.#writeDeadLetter(letter), debt)
    return debt
  }

  /** One whose space is none any more, with all that a replay of it needs. */
  #refuseIdentify(
    record: HeldRecord,
    { userId, spaceId, property, since, messageId, body }: IdentifyToDeliver,
  ): Debt {
    const headers = {
      'source-id': spaceId,
      'message-id': messageId,
      'message-type': 'identify',
      property: JSON.stringify([userId, spaceId, property]),
      since,
    }
    const content = { key: Buffer.from(userId), value: body, headers }
    const detail = `the catalog has no audience space ${quote(spaceId)}`
    return this.#refuse(record, content, 'unknown_source', detail, salvageCarried)
  }

  /** Resolves once the broker has it, in full, or without what makes it too large. */
  async #writeDeadLetter(letter: OutboundRecord): Promise<void> {
    for (const form of formsOf(letter)) {
      if (await this.#isTaken(form)) return
    }
    // Going on would lose it. The check of the topics at the next start says what is wrong.
    throw new Error(`${letter.topic} takes not even a small record: look at its max.message.bytes`)
  }

  async #isTaken(record: OutboundRecord): Promise<boolean> {
    return (await this.#options.outlet.produce(record)) === 'acknowledged'
  }

  #end(): void {
    this.#underWay--
    if (this.#underWay === 0) this.#onIdle?.()
  }

  #hold(record: HeldRecord, owed: number, bytes: number): Debt {
    this.#held.records++
    this.#held.bytes += bytes
    this.#reportPressure()
    return new Debt(record, owed, bytes, this.#creditor)
  }

  #giveBack(account: { records: number; bytes: number }, bytes: number): void {
    account.records--
    account.bytes -= bytes
    this.#reportPressure()
  }

  #laneTerms(destination: DestinationDefinition | undefined, laneClass: LaneClass): LaneTerms {
    const limit = destination?.rateLimit
    const rate =
      limit === undefined || this.#share === 0
        ? undefined
        : {
            perSecond: limit.perSecond * this.#share,
            burst: Math.max(1, Math.floor(limit.burst * this.#share)),
          }
    return { cap: destination?.maxInFlight ?? 1, laneClass, rate }
  }

  /** How many more records fit, in records or what that many bytes are worth. */
  #freeRecords(): number {
    const { records, bytes } = this.#options.buffer
    const free = Math.min(1 - this.#held.records / records, 1 - this.#held.bytes / bytes)
    return Math.floor(free * records)
  }

  /** Full at the limit, and not full again before half of it: fetching isn't switched on and off by each record. */
  #reportPressure(): void {
    const { buffer, onPressure } = this.#options
    const fill = Math.max(this.#held.records / buffer.records, this.#held.bytes / buffer.bytes)
    const isFull = this.#isStalled || fill >= 1 || (this.#isFull && fill > 0.5)
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    onPressure(isFull)
  }
}

/** How long a lane rests when one of its deliveries has found the proxy down. */
const proxyPauseMs = 1_000

/** The message that is routed, and the record that it came with. */
type RoutedRecord = { readonly sourceId: string; readonly messageId: string; readonly record: HeldRecord }

/** What is delivered of a message that is made here. */
type OwnMessage = Pick<Carried, 'sourceId' | 'messageId' | 'kind' | 'property' | 'isUncertain'>

function firstTryWay({ laneClass }: Delivery, way: Way): FirstTryWay {
  switch (laneClass) {
    case 'fresh':
      return way === 'open' ? 'direct' : 'paced'
    case 'retry':
      return 'parked'
    case 'backfill':
      return 'replayed'
  }
}

function isUncertainResult({ outcome, mayHaveArrived }: HookResult): boolean {
  return isUncertain(outcome, mayHaveArrived)
}

/** Whether what is to be sent is what the delivery has already. */
function isOfSame({ messageId }: Delivery, judgement: Judgement): boolean {
  return judgement.kind === 'send' || (judgement.kind === 'send_current' && judgement.messageId === messageId)
}

/** Those that aren't well follow the others; before these, where it is time to see whether one is well again. */
function failoverOrder(hooks: Endpoint['hooks'], sick: Endpoint['hooks'], nowMs: number): Endpoint['hooks'] {
  const isLater = (hook: EndpointHook): boolean =>
    sick.includes(hook) && hook.breaker.advise('between', nowMs) !== 'go'
  return [...hooks.filter((hook) => !isLater(hook)), ...hooks.filter(isLater)]
}

const delivered: Decision = { kind: 'delivered' }
const none: readonly string[] = []
const noHooks: Endpoint['hooks'] = []
const nowhere: ReadonlyMap<string, number> = new Map()

const tooLarge = {
  reason: 'record_too_large',
  detail: 'the record is too large for its retry topic',
} as const

type InternalFault = { ok: false; reason: 'internal_error'; detail: string }

/** Tells where, and nothing of the record: error messages quote what they complain of. */
function internalFault(error: unknown): InternalFault {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const place = /^ +at .*$/m.exec(stack)?.[0].trim() ?? 'nowhere'
  const name = error instanceof Error ? error.name : typeof error
  return {
    ok: false,
    reason: 'internal_error',
    detail: `a fault of Sluice, please report it with the record: ${name} ${place}`,
  }
}

function headersOf(delivery: Delivery): CarriedHeaders {
  const carried = encodeCarried(delivery)
  return delivery.trace === undefined ? carried : { ...carried, ...delivery.trace.headers }
}

function keptOfEvent(headers: ReceivedHeaders): CarriedHeaders {
  const { 'source-id': sourceId } = salvageCarried(headers)
  return sourceId === undefined ? {} : { 'source-id': sourceId }
}

/** The dead letter's own `origin` is the record of the retry topic. */
function keptOfCarried(headers: ReceivedHeaders): CarriedHeaders {
  const { origin, ...kept } = salvageCarried(headers)
  return origin === undefined ? kept : { ...kept, 'carried-origin': origin }
}

const maxQuotedCharacters = 100

/** Ids of the catalog have at most so many characters. */
function quote(id: string): string {
  if (id.length <= maxQuotedCharacters) return JSON.stringify(id)
  return `${JSON.stringify(id.slice(0, maxQuotedCharacters))}…, whose id is too long`
}

function idsOf(hooks: readonly { readonly id: string }[]): readonly string[] {
  return hooks.map(({ id }) => id)
}
