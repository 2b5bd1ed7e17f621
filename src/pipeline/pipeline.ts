import type { HeldRecord, RecordContent } from '../message/held-record.ts'
import { Bulkhead } from '../delivery/lanes/bulkhead.ts'
import { SickLoad, usualSickLoad } from '../delivery/lanes/sick-load.ts'
import { createEndpoints, type Endpoint } from '../delivery/endpoint.ts'
import { GroupShare } from '../delivery/group-share.ts'
import { Logins } from '../delivery/login/logins.ts'
import { laneCapOf, laneRateOf } from '../delivery/lane-limits.ts'
import { createLanes } from '../delivery/lanes/lanes.ts'
import type { LaneLimits, Lanes } from '../delivery/lanes/lanes-ports.ts'
import { BufferAccount } from './buffer-account.ts'
import { describeAge, describeDrop } from './dead-letter-advice.ts'
import type { Delivery } from './delivery.ts'
import { Entrance, type Entered } from './entrance.ts'
import { Exits, keptOfProducer } from './exits.ts'
import { Judging } from './judging.ts'
import { LineUp } from './line-up.ts'
import { Parking } from './parking.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type {
  DestinationPace,
  LaneBacklog,
  OpenHook,
  Pipeline,
  PipelineOptions,
  DeleteToDeliver,
  IdentifyToDeliver,
  QueueClass,
  Rates,
} from './pipeline-ports.ts'
import { BackfillNeeds } from './needs-backfill.ts'
import { OrderingKeys } from './ordering-keys.ts'
import { ratesOf } from './rates.ts'
import { Refill } from './refill.ts'
import { RuleTime } from './rule-time.ts'
import { Rules } from './rules.ts'
import { StoppedUnits } from './stopped-units.ts'
import { Turns } from './turns.ts'

/**
 * If a hook with an open breaker has got no request for this time in milliseconds, it isn't reported any
 * more. While there are messages for such a hook, it gets a request at least once an hour. So if it gets
 * none, there are no messages for it, and its present state isn't known.
 */
const openIfSentWithinMs = 65 * 60_000

/** What the rules of one destination may take of each second by default, in milliseconds. */
const usualRuleMs = 100
/** What the rules of all destinations together may take of each second, in milliseconds. */
const allRulesMs = 500

/** What waits in its lane for less than this, in milliseconds, doesn't count as waiting. */
const waitsAfterMs = 1_000
/** If a hook has got no request for this time, in milliseconds, what was learned about it isn't reported. */
const loweredIfSentWithinMs = 10 * 60_000

export function createPipeline(options: PipelineOptions): Pipeline {
  return new DeliveryPipeline(options)
}

class DeliveryPipeline implements Pipeline {
  readonly #options: PipelineOptions
  readonly #endpoints
  readonly #lanes: Lanes<Delivery>
  readonly #bulkhead: Bulkhead
  readonly #account: BufferAccount
  readonly #exits: Exits
  readonly #parking: Parking
  readonly #entrance: Entrance
  readonly #lineUp: LineUp
  readonly #turns: Turns
  readonly #refill: Refill | undefined
  readonly #logins: Logins
  readonly rates: Rates
  readonly ruleTime: RuleTime
  readonly #orderingKeys = new OrderingKeys<Delivery>({
    superseded: (delivery) => this.#lineUp.supersede(delivery),
    next: (delivery) => this.#lineUp.next(delivery),
  })
  readonly #groupShare: GroupShare
  readonly #stopped = new StoppedUnits()
  #isDraining = false

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#groupShare = new GroupShare(options.rateDifferenceOf)
    const { observer, sender, now } = options
    this.#logins = new Logins({
      sender,
      now,
      onAsked: (destinationId, hookId, asked) => {
        const definition = options.catalog().destinations.get(destinationId)
        observer.askedForToken?.(destinationId, hookId, asked, definition)
      },
    })
    this.#endpoints = createEndpoints({
      breaker: options.breaker,
      shareOfGroup: () => this.#groupShare.fraction,
      isNamed: options.namesRequests,
      sickLoad: new SickLoad(options.sickLoad ?? usualSickLoad),
      logins: this.#logins,
    })
    this.#bulkhead = new Bulkhead({ ...options.bulkhead, mayStart: options.mayBegin })
    const { maxTries, maxBytes } = options.bulkhead
    const account = new BufferAccount({
      buffer: options.buffer,
      detached: { records: maxTries, bytes: maxBytes },
      onPressure: options.onPressure,
    })
    const backfillNeeds = new BackfillNeeds({ ...options, account })
    const exits = new Exits({ ...options, account, backfillNeeds, orderingKeys: this.#orderingKeys })
    this.#account = account
    this.#exits = exits
    this.#parking = new Parking({ ...options, exits })
    const ruleTime = ruleTimeOf(options)
    this.ruleTime = ruleTime
    this.#entrance = new Entrance({ ...options, account, backfillNeeds, exits, ruleTime })
    this.#lanes = this.#openLanes()
    const { queue } = options
    const shared = {
      ...options,
      queue,
      account,
      endpoints: this.#endpoints,
      lanes: this.#lanes,
      orderingKeys: this.#orderingKeys,
      stopped: this.#stopped,
      parking: this.#parking,
      plan: { ladder: options.ladder, sickWaitMs: options.bulkhead.waitMs },
      isDraining: () => this.#isDraining,
    }
    const judging = new Judging({ ...shared, backfillNeeds, exits })
    this.#lineUp = new LineUp({ ...shared, exits, judging, groupShare: this.#groupShare })
    this.#turns = new Turns({
      ...shared,
      rules: new Rules({ observer, exits, ruleTime }),
      judging,
      bulkhead: this.#bulkhead,
      lineUp: this.#lineUp,
    })
    this.#refill = queue && new Refill({ ...shared, queue, limitsOf: (id) => this.#limitsOf(id) })
    this.rates = ratesOf({ ...shared, groupShare: this.#groupShare })
  }

  #openLanes(): Lanes<Delivery> {
    return createLanes<Delivery>({
      maxInFlight: this.#options.maxInFlight,
      waitMs: this.#options.laneWaitMs,
      patienceMs: this.#options.lanePatienceMs,
      mayStart: this.#options.mayBegin,
      limitsOf: (destinationId) => this.#limitsOf(destinationId),
      keepsOrder: () => this.#options.queue?.isOpen === true,
      freeRecords: () => this.#account.freeRecords,
      isBufferFull: () => this.#account.isFull,
      onCongested: this.#options.onCongested,
      start: (delivery) => this.#turns.begin(delivery),
      mayOverflow: (delivery) => this.#parking.mayOverflow(delivery),
      overflow: (delivery) => this.#parking.park(delivery, 'overflow'),
      letGo: (delivery) => this.#parking.letGo(delivery, 'handover'),
      areMoreComing: (destinationId) => {
        const { queue } = this.#options
        return queue !== undefined && queue.wantedOf(destinationId) + queue.countOf(destinationId) > 0
      },
      onLow: (destinationId) => this.#refill?.refill(destinationId),
    })
  }

  #limitsOf(destinationId: string): LaneLimits | undefined {
    const destination = this.#options.catalog().destinations.get(destinationId)
    if (destination === undefined) return undefined
    const endpoint = this.#endpoints.of(destination)
    const rate = laneRateOf(endpoint, this.#groupShare.rateOf(destination))
    return { cap: laneCapOf(endpoint), rate, batch: destination.batch }
  }

  get held(): Pipeline['held'] {
    return this.#account.held
  }

  get inFlight(): number {
    return this.#lanes.inFlight + this.#bulkhead.inFlight
  }

  get queued(): number {
    return this.#lanes.queued + this.#orderingKeys.waiting + this.#bulkhead.queued + this.#stopped.count
  }

  waitingFor(destinationId: string): number {
    return this.#lanes.queuedIn(destinationId)
  }

  *lanes(): Generator<LaneBacklog> {
    const nowMs = this.#options.now()
    for (const { laneKey, count, oldest, waitedMs } of this.#lanes.waiting(waitsAfterMs)) {
      const inQueueMs = oldest.isFromQueue ? nowMs - oldest.pending.record.timestampMs : 0
      yield { destinationId: laneKey, count, oldestMs: nowMs - Math.max(waitedMs, inQueueMs) }
    }
  }

  paceOf(destinationId: string): DestinationPace | undefined {
    const destination = this.#options.catalog().destinations.get(destinationId)
    if (destination?.state !== 'on') return undefined
    const endpoint = this.#endpoints.of(destination)
    // What is lent changes from second to second. The even parts of all processes add up to the limit.
    const rate = laneRateOf(endpoint, this.#groupShare.evenRateOf(destination))
    const { batch } = destination
    const perRequest = batch === undefined ? 1 : (this.#lanes.perBatch(destinationId) ?? batch.maxMessages)
    return { inFlight: laneCapOf(endpoint), perSecond: rate?.perSecond, perRequest }
  }

  lowered(): readonly string[] {
    const nowMs = performance.now()
    return this.#endpoints.lowered
      .those(
        (endpoint) =>
          this.#isInForce(endpoint) &&
          endpoint.hooks.some(({ load }) => load.isLowered(nowMs, loweredIfSentWithinMs)),
      )
      .map(({ definition }) => definition.id)
  }

  get paced(): Pipeline['paced'] {
    return this.#bulkhead
  }

  openHooks(): readonly OpenHook[] {
    const nowMs = performance.now()
    const openOf = ({ definition, hooks }: Endpoint): readonly OpenHook[] =>
      hooks.flatMap(({ id, breaker }) => {
        const openForMs = breaker.openForMs(nowMs, openIfSentWithinMs)
        return openForMs > 0 ? [{ destinationId: definition.id, hookId: id, openForMs }] : []
      })
    return this.#endpoints.open
      .those((endpoint) => this.#isInForce(endpoint) && openOf(endpoint).length > 0)
      .flatMap(openOf)
  }

  #isInForce({ definition }: Endpoint): boolean {
    return this.#options.catalog().destinations.get(definition.id) === definition
  }

  accept(record: HeldRecord, content: RecordContent): void {
    if (this.#isGivenBack(record)) return
    const { unreadable } = content
    if (unreadable !== undefined)
      this.#exits.refuse(record, content, { reason: 'unreadable_batch', detail: unreadable })
    else if (record.topic === this.#options.topics.events)
      this.#enqueueAll(this.#entrance.event(record, content))
    else this.#acceptResumed(record, content)
  }

  acceptIdentify(record: HeldRecord, identify: IdentifyToDeliver): void {
    if (this.#isGivenBack(record)) return
    const entered = this.#entrance.identify(record, identify)
    if (identify.isSuperseded !== true) this.#enqueueAll(entered)
    else for (const { delivery } of entered) this.#parking.park(delivery, 'uncertain')
  }

  acceptWaiting(record: HeldRecord, content: RecordContent, queueClass: QueueClass): void {
    if (this.#isGivenBack(record)) return
    const { unreadable } = content
    if (unreadable === undefined) this.#acceptResumed(record, content, queueClass)
    else this.#exits.refuse(record, content, { reason: 'unreadable_batch', detail: unreadable })
  }

  get hasRoomForWaiting(): boolean {
    return this.#account.mayPull
  }

  expireWaiting(record: HeldRecord, content: RecordContent, queueClass: QueueClass): void {
    const delivery = this.#entrance.resume(record, content, queueClass)
    const waitedMs = this.#options.now() - record.timestampMs
    if (delivery !== undefined) this.#exits.deadLetter(delivery, 'waited_too_long', describeAge(waitedMs))
  }

  dropWaiting(record: HeldRecord, content: RecordContent, queueClass?: QueueClass): void {
    const delivery = this.#entrance.resume(record, content, queueClass)
    if (delivery !== undefined) this.#drop(delivery)
  }

  dropLane(destinationId: string): void {
    const isMeant = (delivery: Delivery): boolean => delivery.destinationId === destinationId
    for (const delivery of this.#orderingKeys.takeWaiting(isMeant)) this.#drop(delivery)
    for (const delivery of this.#lanes.takeQueued(isMeant)) this.#drop(delivery)
  }

  #drop(delivery: Delivery): void {
    if (delivery.isAbandoned) this.#parking.letGo(delivery, 'handover')
    else this.#exits.deadLetter(delivery, 'dropped', describeDrop(delivery.destinationId))
  }

  acceptRecalled(record: HeldRecord, content: RecordContent): void {
    if (this.#isGivenBack(record)) return
    const delivery = this.#entrance.resume(record, content)
    if (delivery === undefined) return
    delivery.notBeforeMs = new Map()
    this.#lineUp.resume(delivery)
  }

  askAgain(destinationId: string): void {
    const definition = this.#options.catalog().destinations.get(destinationId)
    for (const { breaker } of (definition && this.#endpoints.known(definition)?.hooks) ?? [])
      breaker.forgive()
    this.#lanes.endPause(destinationId)
  }

  refill(destinationId: string): void {
    this.#refill?.refill(destinationId)
  }

  acceptDelete(record: HeldRecord, request: DeleteToDeliver): void {
    if (!this.#isGivenBack(record)) this.#enqueueAll(this.#entrance.deletion(record, request))
  }

  refuse(record: HeldRecord, content: RecordContent, reason: DeadReason, detail: string): void {
    this.#exits.refuse(record, content, { reason, detail }, keptOfProducer)
  }

  setShare(share: number): void {
    this.#groupShare.set(share)
  }

  letGoAbandoned(): void {
    for (const delivery of this.#orderingKeys.takeWaiting(({ isAbandoned }) => isAbandoned))
      this.#parking.letGo(delivery, 'handover')
    for (const delivery of this.#stopped.take(({ isAbandoned }) => isAbandoned))
      this.#parking.letGo(delivery, 'handover')
    this.#lanes.letGoAbandoned()
    this.#bulkhead.dropAbandoned()
  }

  setUnitStopped(unit: number, isStopped: boolean): void {
    this.#account.setUnitStopped(unit, isStopped)
    if (isStopped) {
      this.#stopped.stop(unit)
      for (const delivery of this.#lanes.takeQueued((queued) => this.#stopped.has(queued)))
        this.#stopped.hold(delivery)
      return
    }
    for (const delivery of this.#stopped.release(unit)) this.#lineUp.goOn(delivery)
  }

  setStalled(isStalled: boolean): void {
    if (isStalled) {
      this.#lanes.shut()
      this.#bulkhead.shut()
    } else if (!this.#isDraining) {
      this.#lanes.open()
      this.#bulkhead.open()
    }
    this.#account.setStalled(isStalled)
  }

  async drain(): Promise<void> {
    this.#isDraining = true
    this.#lanes.shut()
    for (const delivery of this.#orderingKeys.takeWaiting(() => true))
      this.#parking.letGo(delivery, 'shutdown')
    for (const delivery of this.#stopped.take(() => true)) this.#parking.letGo(delivery, 'shutdown')
    for (const delivery of this.#lanes.takeQueued(() => true)) this.#parking.letGo(delivery, 'shutdown')
    this.#bulkhead.shut()
    this.#bulkhead.dropAll()
    await this.#account.idle()
  }

  stop(): void {
    this.#refill?.stop()
    this.#logins.close()
    this.#lanes.stop()
    this.#bulkhead.stop()
  }

  /**
   * Gives a record back that comes after its unit was lost, or while the worker stops: the part that passes
   * it on may have been at work meanwhile. If its deliveries were made, some might be queued here, while the
   * next owner makes all of them.
   */
  #isGivenBack(record: HeldRecord): boolean {
    const isGiven = this.#isDraining || record.isAbandoned
    if (isGiven) record.giveBack()
    return isGiven
  }

  #enqueueAll(entered: readonly Entered[]): void {
    for (const { delivery, destination } of entered) this.#lineUp.arrive(delivery, destination)
  }

  #acceptResumed(record: HeldRecord, content: RecordContent, queueClass?: QueueClass): void {
    const delivery = this.#entrance.resume(record, content, queueClass)
    if (delivery !== undefined) this.#lineUp.resume(delivery)
  }
}

function ruleTimeOf({ maxRuleMs = usualRuleMs, observer }: PipelineOptions): RuleTime {
  return new RuleTime({
    mostMs: maxRuleMs,
    mostOfAllMs: Math.max(maxRuleMs, allRulesMs),
    onOver: (destinationId, limit) => observer.rulesTooLong?.(destinationId, limit),
    monotonicMs: () => performance.now(),
  })
}
