import { Bulkhead } from '../delivery/bulkhead.ts'
import { createEndpoints, type DestinationDefinition, type Endpoint } from '../delivery/endpoint.ts'
import { createLanes } from '../delivery/lanes.ts'
import { Account } from './account.ts'
import { Attempt, type AttemptListener, type Omitted } from './attempt.ts'
import { askedPauseMs, type AttemptPlan, hasNoChance, planAttempt, type PlanOptions } from './attempt-plan.ts'
import { Conclusion } from './conclusion.ts'
import { idsOf } from './decision.ts'
import type { Delivery, HeldRecord } from './delivery.ts'
import { Entrance, type Entered } from './entrance.ts'
import { Exits, keptOfEvent } from './exits.ts'
import { firstTryWay, laneTermsOf } from './lane-terms.ts'
import type { DeleteToDeliver, IdentifyToDeliver } from './identify.ts'
import { Judging } from './judging.ts'
import { Parking } from './parking.ts'
import type { DeadReason } from '../message/dead-letter-reasons.ts'
import type { OpenHook, Pipeline, PipelineOptions, RecordContent } from './pipeline-ports.ts'
import { OrderingKeys } from './ordering-keys.ts'
import { StandingUnits } from './standing-units.ts'

/** A message is tried once an hour at least; of a hook that nothing is for, nobody knows how it is. */
const openIfSentWithinMs = 65 * 60_000

export function createPipeline(options: PipelineOptions): Pipeline {
  return new DeliveryPipeline(options)
}

class DeliveryPipeline implements Pipeline {
  readonly #options: PipelineOptions
  readonly #endpoints
  readonly #lanes
  readonly #bulkhead: Bulkhead
  readonly #account: Account
  readonly #exits: Exits
  readonly #parking: Parking
  readonly #judging: Judging
  readonly #entrance: Entrance
  readonly #conclusion: Conclusion
  readonly #plan: PlanOptions
  readonly #listener: AttemptListener<Delivery> = {
    begun: (delivery, way) => {
      delivery.pending.isBegun = true
      delivery.attempts++
      delivery.waits = 0
      if (delivery.attempts === 1) this.#options.observer.firstTried(delivery, firstTryWay(delivery, way))
    },
    answered: (delivery, result, durationMs) =>
      this.#options.observer.attempted(delivery, result, durationMs),
    mayGoOn: ({ isAbandoned }) => !this.#isDraining && !isAbandoned,
    standsStill: (delivery) => this.#standing.has(delivery),
    concluded: (delivery, endpoint, results, omitted, startedMs) => {
      if (results.length === 0) this.#hadNoTurn(delivery, omitted)
      else this.#conclusion.draw(delivery, endpoint, { results, omitted, startedMs })
    },
    omitted: (delivery, omitted) => this.#conclusion.reportOmitted(delivery, [omitted]),
    isCurrent: (delivery, { definition }) => this.#isCurrent(delivery, definition),
    freed: (delivery, isConcluded) => this.#free(delivery, isConcluded),
    ended: () => this.#account.end(),
  }
  readonly #orderingKeys = new OrderingKeys<Delivery>({
    superseded: (delivery) => this.#supersede(delivery),
    next: (delivery) => this.#next(delivery),
  })
  readonly #standing = new StandingUnits()
  #share = 1
  #isDraining = false

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#endpoints = createEndpoints(options.breaker)
    this.#bulkhead = new Bulkhead({ ...options.bulkhead, mayStart: options.mayBegin })
    const { maxTries, maxBytes } = options.bulkhead
    const account = new Account({
      buffer: options.buffer,
      detached: { records: maxTries, bytes: maxBytes },
      onPressure: options.onPressure,
    })
    const exits = new Exits({ ...options, account, orderingKeys: this.#orderingKeys })
    this.#account = account
    this.#exits = exits
    this.#parking = new Parking({ ...options, exits })
    this.#judging = new Judging({
      ...options,
      account,
      exits,
      isDraining: () => this.#isDraining,
      enqueue: (delivery, destination) => this.#enqueue(delivery, destination),
      letGo: (delivery) => this.#letGoNow(delivery),
    })
    this.#conclusion = new Conclusion({
      ...options,
      account,
      judging: this.#judging,
      parking: this.#parking,
      takeBack: (delivery, isProxyDown) => this.#takeBack(delivery, isProxyDown),
    })
    this.#plan = { ladder: options.ladder, sickWaitMs: options.bulkhead.waitMs }
    this.#entrance = new Entrance({
      ...options,
      account,
      exits,
      laneTerms: (destination, laneClass) => laneTermsOf(destination, laneClass, this.#share),
    })
    this.#lanes = createLanes<Delivery>({
      maxInFlight: options.maxInFlight,
      waitMs: options.laneWaitMs,
      patienceMs: options.lanePatienceMs,
      mayStart: options.mayBegin,
      freeRecords: () => this.#account.freeRecords,
      onCongested: options.onCongested,
      start: (delivery) => this.#begin(delivery),
      overflow: (delivery) => this.#parking.park(delivery, 'overflow'),
      letGo: (delivery) => this.#letGo(delivery, 'handover'),
    })
  }

  get held(): Pipeline['held'] {
    return this.#account.held
  }

  get inFlight(): number {
    return this.#lanes.inFlight + this.#bulkhead.inFlight
  }

  get queued(): number {
    return this.#lanes.queued + this.#orderingKeys.waiting + this.#bulkhead.queued + this.#standing.count
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
    const { unreadable } = content
    if (unreadable !== undefined)
      this.#exits.refuse(record, content, { reason: 'unreadable_batch', detail: unreadable })
    else if (record.topic === this.#options.topics.events)
      this.#enqueueAll(this.#entrance.event(record, content))
    else this.#acceptCarried(record, content)
  }

  acceptIdentify(record: HeldRecord, identify: IdentifyToDeliver): void {
    const entered = this.#entrance.identify(record, identify)
    if (identify.isSuperseded !== true) this.#enqueueAll(entered)
    else for (const { delivery } of entered) this.#parking.park(delivery, 'uncertain')
  }

  acceptDelete(record: HeldRecord, request: DeleteToDeliver): void {
    this.#enqueueAll(this.#entrance.deletion(record, request))
  }

  refuse(record: HeldRecord, content: RecordContent, reason: DeadReason, detail: string): void {
    this.#exits.refuse(record, content, { reason, detail }, keptOfEvent)
  }

  setShare(share: number): void {
    this.#share = share
  }

  letGoAbandoned(): void {
    for (const delivery of this.#orderingKeys.takeWaiting(({ isAbandoned }) => isAbandoned))
      this.#letGo(delivery, 'handover')
    for (const delivery of this.#standing.take(({ isAbandoned }) => isAbandoned))
      this.#letGo(delivery, 'handover')
    this.#lanes.letGoAbandoned()
    this.#bulkhead.dropAbandoned()
  }

  setStanding(unit: number, isStanding: boolean): void {
    this.#account.setStanding(unit, isStanding)
    if (isStanding) {
      this.#standing.stop(unit)
      for (const delivery of this.#lanes.takeQueued((queued) => this.#standing.has(queued)))
        this.#standing.hold(delivery)
      return
    }
    for (const delivery of this.#standing.release(unit)) {
      if (this.#isDraining || delivery.isAbandoned) this.#letGoNow(delivery)
      else this.#enqueue(delivery, this.#destinationOf(delivery))
    }
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
    for (const delivery of this.#orderingKeys.takeWaiting(() => true)) this.#letGo(delivery, 'shutdown')
    for (const delivery of this.#standing.take(() => true)) this.#letGo(delivery, 'shutdown')
    for (const delivery of this.#lanes.takeQueued(() => true)) this.#letGo(delivery, 'shutdown')
    this.#bulkhead.shut()
    this.#bulkhead.dropAll()
    await this.#account.idle()
  }

  stop(): void {
    this.#lanes.stop()
    this.#bulkhead.stop()
  }

  /** A delivery that was not begun stays behind, for the next owner of its record. */
  #letGo(delivery: Delivery, why: 'shutdown' | 'handover'): void {
    const { isBegun, record } = delivery.pending
    // Its record's other deliveries were begun: if this one stayed behind, they would be made again. Where
    // they are in any case, so is this one.
    if ((isBegun && record.isElsewhere !== true) || delivery.isNewlyUncertain) {
      this.#parking.park(delivery, why)
      return
    }
    this.#exits.leaveBehind(delivery)
  }

  /** It is not to be delivered here any more: we stop, or its unit has another owner. */
  #letGoNow(delivery: Delivery): void {
    this.#letGo(delivery, this.#isDraining ? 'shutdown' : 'handover')
  }

  #enqueueAll(entered: readonly Entered[]): void {
    for (const { delivery, destination } of entered) this.#enqueue(delivery, destination)
  }

  #acceptCarried(record: HeldRecord, content: RecordContent): void {
    const delivery = this.#entrance.carried(record, content)
    if (delivery === undefined) return
    const { property } = delivery
    if (!this.#judging.isNeededBy(delivery)) this.#enqueue(delivery, this.#destinationOf(delivery))
    else if (property === undefined || this.#orderingKeys.enter(delivery, property))
      void this.#judging.judge(delivery)
  }

  #destinationOf({ destinationId }: Delivery): DestinationDefinition | undefined {
    return this.#options.catalog().destinations.get(destinationId)
  }

  #supersede(delivery: Delivery): void {
    if (delivery.isAbandoned) this.#letGo(delivery, 'handover')
    else this.#exits.drop(delivery, 'superseded')
  }

  /** Goes on in a turn of its own: the lanes may be in the middle of something. */
  #next(delivery: Delivery): void {
    this.#account.begin()
    queueMicrotask(() => {
      if (this.#isDraining || delivery.isAbandoned) this.#letGoNow(delivery)
      else if (delivery.laneClass !== 'fresh' && this.#judging.isNeededBy(delivery))
        void this.#judging.judge(delivery)
      else this.#enqueue(delivery, this.#destinationOf(delivery))
      this.#account.end()
    })
  }

  #enqueue(delivery: Delivery, destination: DestinationDefinition | undefined): void {
    if (destination === undefined)
      this.#exits.deadLetter(delivery, 'destination_removed', 'the catalog has no such destination')
    else if (destination.state === 'off')
      this.#exits.deadLetter(delivery, 'destination_off', 'the destination is off')
    else if (destination.state === 'paused') this.#parking.park(delivery, 'paused')
    else {
      const endpoint = this.#endpoints.of(destination)
      delivery.endpoint = endpoint
      delivery.seenIn = this.#options.catalog()
      if (hasNoChance(delivery, endpoint, this.#plan, this.#options.now()))
        this.#parking.park(delivery, 'paced')
      else this.#offer(delivery)
    }
  }

  #offer(delivery: Delivery): void {
    const { property } = delivery
    // One that is there already has had its turn.
    if (
      property !== undefined &&
      delivery.orderingKey === undefined &&
      !this.#orderingKeys.enter(delivery, property)
    )
      return
    if (!this.#standing.hold(delivery)) this.#lanes.offer(delivery)
  }

  /** Begins one attempt; the catalog may have changed since the delivery was enqueued. */
  #begin(queued: Delivery): void {
    if (this.#standing.has(queued)) {
      this.#lanes.finished(queued)
      this.#standing.hold(queued)
      return
    }
    const delivery = queued.orderingKey === undefined ? queued : this.#newestOf(queued)
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
    const plan = planAttempt(delivery, endpoint, this.#plan, startedMs)
    if ('waitFor' in plan) {
      this.#lanes.finished(delivery)
      this.#parking.waitForHooks(delivery, idsOf(plan.waitFor), startedMs)
      return
    }
    const pauseMs = plan.sick.length === 0 ? undefined : askedPauseMs(plan)
    if (pauseMs === undefined) this.#attempt(delivery, endpoint, plan, startedMs)
    else this.#pause(delivery, pauseMs)
  }

  /**
   * All of its hooks work, and asked for a pause: a short one slows its lane, with its limits; for a long one
   * it has no turn.
   */
  #pause(delivery: Delivery, pauseMs: number): void {
    if (pauseMs <= this.#options.laneWaitMs) {
      this.#lanes.postpone(delivery, Math.max(1, Math.ceil(pauseMs)))
      return
    }
    this.#lanes.finished(delivery)
    this.#parking.park(delivery, 'paced')
  }

  /**
   * A newer value takes the place in the lane of the one that it waits for, as long as that was not begun.
   */
  #newestOf(queued: Delivery): Delivery {
    const newest = this.#orderingKeys.newestOf(queued)
    if (newest === queued) return queued
    newest.queuedAtMs = queued.queuedAtMs
    this.#supersede(queued)
    return newest
  }

  #attempt(
    delivery: Delivery,
    endpoint: Endpoint,
    { hooks, sick, tryClass }: AttemptPlan,
    startedMs: number,
  ): void {
    this.#account.begin()
    delivery.hasPlace = true
    if (sick.length === hooks.length && !this.#tryDetach(delivery)) return
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

  /**
   * It waits for hooks that aren't well, out of their budget. Where that is used up, as by records that Kafka
   * doesn't take, it has no turn.
   */
  #tryDetach(delivery: Delivery): boolean {
    if (this.#account.mayDetach(delivery.pending)) {
      delivery.detach()
      return true
    }
    this.#hadNoTurn(delivery, [])
    this.#free(delivery, true)
    this.#account.end()
    return false
  }

  /** Its hooks aren't well, and none was ready for it: no attempt was made, and no rung is used up. */
  #hadNoTurn(delivery: Delivery, omitted: readonly Omitted[]): void {
    if (omitted.some(({ why }) => why === 'abandoned')) this.#letGo(delivery, 'handover')
    else if (omitted.some(({ why }) => why === 'closed')) this.#letGo(delivery, 'shutdown')
    else this.#parking.park(delivery, 'paced')
  }

  /** Nothing of its attempt is under way any more but what goes through the bulkhead. */
  #free(delivery: Delivery, isConcluded: boolean): void {
    delivery.hasPlace = false
    if (!isConcluded && this.#account.mayDetach(delivery.pending)) delivery.detach()
    if (delivery.isToGoBack) this.#goBack(delivery)
    else this.#lanes.finished(delivery)
  }

  /** Nothing was sent, since our proxy failed: that was no attempt. */
  #takeBack(delivery: Delivery, isProxyDown: boolean): void {
    delivery.attempts--
    if (isProxyDown && delivery.hasPlace) delivery.isToGoBack = true
    else if (isProxyDown) this.#offerLater(delivery)
    // It may be this hook alone for which the proxy fails: then it must come to an end some time.
    else this.#parking.park(delivery, 'proxy')
  }

  /** It has no place in its lane to go back to. */
  #offerLater(delivery: Delivery): void {
    this.#account.begin()
    setTimeout(() => {
      delivery.attach()
      if (this.#isDraining) this.#letGo(delivery, 'shutdown')
      else if (delivery.isAbandoned) this.#letGo(delivery, 'handover')
      else this.#lanes.offer(delivery)
      this.#account.end()
    }, proxyPauseMs)
  }

  #goBack(delivery: Delivery): void {
    delivery.isToGoBack = false
    if (!this.#isDraining && !delivery.isAbandoned) {
      this.#lanes.postpone(delivery, proxyPauseMs)
      return
    }
    this.#lanes.finished(delivery)
    this.#letGoNow(delivery)
  }

  #isCurrent({ destinationId, seenIn }: Delivery, definition: DestinationDefinition): boolean {
    const catalog = this.#options.catalog()
    return seenIn === catalog || catalog.destinations.get(destinationId) === definition
  }
}

/** How long a lane rests when one of its deliveries has found the proxy down. */
const proxyPauseMs = 1_000
