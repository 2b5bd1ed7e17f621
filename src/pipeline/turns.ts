import { InOrder } from '../async/in-order.ts'
import type { Bulkhead } from '../delivery/lanes/bulkhead.ts'
import type { DestinationDefinition, Endpoint, Endpoints } from '../delivery/endpoint.ts'
import type { Lanes } from '../delivery/lanes/lanes-ports.ts'
import type { BufferAccount } from './buffer-account.ts'
import { Attempt, type AttemptListener, madeBytes, type Omitted, type Way } from './attempt.ts'
import { askedPauseMs, type AttemptPlan, planAttempt, type PlanOptions } from './attempt-plan.ts'
import { BatchAttempt, type BatchListener } from './batch-attempt.ts'
import { type BatchPlan, gatherBatch } from './batch-members.ts'
import { Conclusion } from './conclusion.ts'
import { idsOf } from './decision.ts'
import type { Delivery } from './delivery.ts'
import { forgetEditedHooks } from './edited-hooks.ts'
import type { Judging } from './judging.ts'
import type { LineUp } from './line-up.ts'
import type { OrderingKeys } from './ordering-keys.ts'
import type { Parking } from './parking.ts'
import { isOwnRequest } from '../shape/shaper.ts'
import type { Rules } from './rules.ts'
import type { StoppedUnits } from './stopped-units.ts'
import type { FirstTryWay, PipelineOptions, WaitingQueue } from './pipeline-ports.ts'

type TurnsOptions = Pick<
  PipelineOptions,
  'catalog' | 'sender' | 'observer' | 'ladder' | 'laneWaitMs' | 'answeredGone' | 'now'
> & {
  readonly account: BufferAccount
  readonly endpoints: Endpoints
  readonly lanes: Lanes<Delivery>
  readonly bulkhead: Bulkhead
  readonly orderingKeys: OrderingKeys<Delivery>
  readonly stopped: StoppedUnits
  readonly rules: Rules
  readonly parking: Parking
  readonly judging: Judging
  readonly lineUp: LineUp
  readonly queue: Pick<WaitingQueue, 'isOpen'> | undefined
  readonly plan: PlanOptions
  readonly isDraining: () => boolean
}

/** The pause of a lane, in milliseconds, after the proxy was down or this process could open no files. */
const ownFaultPauseMs = 1_000

/** The time between two looks whether a hook's first token has come, in milliseconds. */
const tokenLookMs = 25

/**
 * Handles a delivery whose turn in its lane has come. Makes an attempt, or makes the delivery wait. Frees the
 * delivery's place in the lane when its requests have ended, without waiting for requests in the bulkhead.
 */
export class Turns {
  readonly #options: TurnsOptions
  readonly #account: BufferAccount
  readonly #lanes: Lanes<Delivery>
  readonly #parking: Parking
  readonly #conclusion: Conclusion
  /** The deliveries that are being judged once more, by destination. */
  readonly #inOrder = new InOrder()
  readonly #listener: AttemptListener<Delivery> = {
    begun: (delivery, way) => {
      delivery.beginAttempt()
      if (delivery.attempts === 1) this.#options.observer.firstTried(delivery, firstTryWay(delivery, way))
    },
    answered: (delivery, result, durationMs) =>
      this.#options.observer.attempted(delivery, result, durationMs),
    mayGoOn: ({ isAbandoned }) => !this.#options.isDraining() && !isAbandoned,
    isUnitStopped: (delivery) => this.#options.stopped.has(delivery),
    concluded: (delivery, endpoint, attempted) => {
      if (attempted.results.length === 0) this.#hadNoTurn(delivery, attempted.omitted)
      else this.#conclusion.draw(delivery, endpoint, attempted)
    },
    cameLate: (endpoint, result) => void this.#conclusion.noteGone(endpoint, result),
    omitted: (delivery, omitted) => this.#conclusion.reportOmitted(delivery, [omitted]),
    isCurrent: (delivery, { definition }) => this.#isCurrent(delivery, definition),
    freed: (delivery, isConcluded) => this.#free(delivery, isConcluded),
    ended: () => this.#account.end(),
  }
  readonly #batchListener: BatchListener<Delivery> = {
    ...this.#listener,
    waits: (delivery) => this.#waits(delivery),
    posting: (messages, bytes) => {
      this.#options.observer.batched?.(messages)
      this.#account.holdBytes(bytes)
    },
    released: (bytes) => this.#account.holdBytes(-bytes),
  }

  constructor(options: TurnsOptions) {
    this.#options = options
    this.#account = options.account
    this.#lanes = options.lanes
    this.#parking = options.parking
    this.#conclusion = new Conclusion({
      ...options,
      takeBack: (delivery, isForAll) => this.#takeBack(delivery, isForAll),
    })
  }

  /**
   * Starts an attempt, with the present catalog. The catalog may have changed since the delivery was
   * enqueued.
   */
  begin(queued: Delivery): void {
    if (this.#options.stopped.has(queued)) {
      this.#lanes.sentNothing(queued)
      this.#options.stopped.hold(queued)
      return
    }
    const delivery = queued.orderingKey === undefined ? queued : this.#newestOf(queued)
    if (this.#options.judging.isNeededAgainBy(delivery)) {
      this.#judgeAgain(delivery)
      return
    }
    const { endpoints, lineUp, now, plan: planOptions } = this.#options
    const catalog = this.#options.catalog()
    const seen = delivery.seenIn === catalog ? delivery.endpoint : undefined
    const definition = seen?.definition ?? catalog.destinations.get(delivery.destinationId)
    if (definition?.state !== 'on') {
      this.#lanes.sentNothing(delivery)
      lineUp.enqueue(delivery, definition)
      return
    }
    const endpoint = seen ?? endpoints.of(definition)
    delivery.endpoint = endpoint
    forgetEditedHooks(delivery, definition)
    const startedMs = now()
    const plan = planAttempt(delivery, endpoint, planOptions, startedMs)
    if ('waitFor' in plan) {
      this.#lanes.sentNothing(delivery)
      this.#parking.waitForHooks(delivery, idsOf(plan.waitFor), startedMs)
      return
    }
    if ('login' in plan) {
      this.#waitForLogin(delivery, plan.login, endpoint)
      return
    }
    const pauseMs = plan.sick.length === 0 ? undefined : askedPauseMs(plan)
    if (pauseMs !== undefined) this.#pause(delivery, pauseMs)
    else if (!this.#isReady(delivery, definition)) return
    else if (definition.batch === undefined || isOwnRequest(delivery.shaped))
      this.#attempt(delivery, endpoint, plan, startedMs)
    else this.#attemptBatch({ lead: delivery, endpoint, plan, startedMs })
  }

  /**
   * Decides once more whether a delivery is sent, because a user was deleted while it waited in its lane. It
   * keeps its place meanwhile.
   */
  #judgeAgain(delivery: Delivery): void {
    const { judging, lineUp, isDraining } = this.#options
    this.#account.begin()
    this.#inOrder.add(delivery.destinationId, judging.judge(delivery), (judged) => {
      if (judged === 'send' && !isDraining() && !delivery.isAbandoned) this.begin(delivery)
      else {
        this.#lanes.sentNothing(delivery)
        if (judged !== 'ended') lineUp.letGo(delivery)
      }
      this.#account.end()
    })
  }

  /**
   * Applies the rules of the destination to a delivery. Returns false if it sends nothing now, because it has
   * ended, or because it waits: the rules of its destination have taken too long.
   */
  #isReady(delivery: Delivery, definition: DestinationDefinition): boolean {
    const { rules } = this.#options
    const ruled = rules.apply(delivery, definition)
    if (ruled.kind === 'ready') return true
    if (ruled.kind === 'waits') {
      this.#lanes.postpone(delivery, ruled.ms)
      return false
    }
    this.#lanes.sentNothing(delivery)
    rules.end(delivery, ruled)
    return false
  }

  /**
   * Handles a delivery that has no token to log in with. The first token comes in a moment, so its lane
   * waits. While tokens can't be had, what can't be sent waits in its queue in Kafka, or is given up.
   */
  #waitForLogin(delivery: Delivery, login: 'asking' | 'failing', endpoint: Endpoint): void {
    if (login === 'asking') {
      this.#lanes.postpone(delivery, tokenLookMs)
      return
    }
    this.#lanes.sentNothing(delivery)
    this.#parking.waitForLogin(delivery, endpoint)
  }

  /**
   * Handles a delivery whose hooks all work but have asked for a pause. It goes back into its lane, and the
   * lane starts no delivery during the pause. What waits there for too long joins its queue in Kafka. If no
   * message joins a queue, and the pause is long, the delivery is parked.
   */
  #pause(delivery: Delivery, pauseMs: number): void {
    const { laneWaitMs, queue } = this.#options
    if (pauseMs <= laneWaitMs || queue?.isOpen === true) {
      this.#lanes.postpone(delivery, Math.max(1, Math.ceil(pauseMs)))
      return
    }
    this.#lanes.sentNothing(delivery)
    this.#parking.park(delivery, 'paced')
  }

  /**
   * If a delivery with a newer value waits behind a queued delivery, lets it take the place of the queued
   * delivery. Returns the delivery that is to be made.
   */
  #newestOf(queued: Delivery): Delivery {
    const newest = this.#options.orderingKeys.newestOf(queued)
    if (newest === queued) return queued
    newest.takePlaceOf(queued)
    this.#options.lineUp.supersede(queued)
    return newest
  }

  #attempt(
    delivery: Delivery,
    endpoint: Endpoint,
    { hooks, sick, withoutLogin, tryClass }: AttemptPlan,
    startedMs: number,
  ): void {
    this.#account.begin()
    delivery.hasPlace = true
    if (sick.length === hooks.length && !this.#tryDetach(delivery)) return
    const { sender, bulkhead, now } = this.#options
    new Attempt({
      sender,
      bulkhead,
      endpoint,
      hooks,
      sick,
      withoutLogin,
      tryClass,
      isForAll: delivery.property !== undefined,
      listener: this.#holding(madeBytes(delivery), this.#listener),
      delivery,
      startedMs,
      now,
    }).start()
  }

  /** Makes an attempt of a delivery together with those that may leave its lane with it. */
  #attemptBatch(batch: BatchPlan): void {
    const { lead, endpoint, plan, startedMs } = batch
    const { hooks, sick, withoutLogin, tryClass } = plan
    const { sender, bulkhead, now } = this.#options
    this.#account.begin()
    lead.hasPlace = true
    const gathered = gatherBatch(batch, this.#options)
    const isSick = sick.length === hooks.length
    const deliveries = isSick ? gathered.filter((delivery) => this.#detaches(delivery)) : gathered
    if (deliveries.length === 0) {
      this.#free(lead, true)
      this.#account.end()
      return
    }
    const made = deliveries.reduce((sum, delivery) => sum + madeBytes(delivery), 0)
    const listener = this.#holding(made, this.#batchListener)
    const parts = { sender, bulkhead, endpoint, hooks, sick, withoutLogin, tryClass, startedMs, now }
    new BatchAttempt({ ...parts, listener, lead, deliveries }).start()
  }

  /**
   * Counts the bytes that mappings have made, until only requests in the bulkhead are left, which counts them
   * itself. Returns the listener of the attempt that does so.
   */
  #holding<L extends AttemptListener<Delivery>>(bytes: number, listener: L): L {
    if (bytes === 0) return listener
    this.#account.holdBytes(bytes)
    return {
      ...listener,
      freed: (delivery, isConcluded) => {
        this.#account.holdBytes(-bytes)
        listener.freed(delivery, isConcluded)
      },
    }
  }

  /**
   * Counts a delivery that waits for failing hooks against the limits for such deliveries, and returns true.
   * If a limit is reached, for example because Kafka doesn't accept records, parks the delivery instead and
   * returns false.
   */
  #tryDetach(delivery: Delivery): boolean {
    if (this.#detaches(delivery)) return true
    this.#free(delivery, true)
    this.#account.end()
    return false
  }

  #detaches(delivery: Delivery): boolean {
    if (this.#account.mayDetach(delivery.pending)) {
      delivery.detach()
      return true
    }
    this.#hadNoTurn(delivery, [])
    return false
  }

  /**
   * Parks a delivery that got no try, because none of its hooks was ready. No attempt was made, so `nextRung`
   * stays the same. If the delivery now belongs to another owner, or if the worker stops, leaves the delivery
   * to the next owner of its record if possible.
   */
  #hadNoTurn(delivery: Delivery, omitted: readonly Omitted[]): void {
    if (omitted.some(({ why }) => why === 'abandoned')) this.#parking.letGo(delivery, 'handover')
    else if (omitted.some(({ why }) => why === 'closed')) this.#parking.letGo(delivery, 'shutdown')
    else this.#parking.park(delivery, 'paced')
  }

  /** Frees a delivery's place in the lane. Only requests in the bulkhead may still be under way. */
  #free(delivery: Delivery, isConcluded: boolean): void {
    delivery.hasPlace = false
    if (!isConcluded) this.#waits(delivery)
    if (delivery.isToGoBack) this.#goBack(delivery)
    else this.#lanes.finished(delivery)
  }

  /** Counts a delivery whose remaining requests are in the bulkhead as one that waits for failing hooks. */
  #waits(delivery: Delivery): void {
    if (this.#account.mayDetach(delivery.pending)) delivery.detach()
  }

  /**
   * Handles an attempt that has to be repeated. Either nothing was sent in it, because the proxy or the
   * system of this process failed, or an edit of the catalog has cut a last try short. The attempt isn't
   * counted, and the delivery waits. If `isForAll` is true, the other deliveries of its lane wait too.
   */
  #takeBack(delivery: Delivery, isForAll: boolean): void {
    delivery.takeBackAttempt()
    if (isForAll && delivery.hasPlace) delivery.isToGoBack = true
    else if (isForAll) this.#offerLater(delivery)
    // The delivery must be able to expire, because the proxy may fail forever for this hook only.
    else this.#parking.park(delivery, 'proxy')
  }

  /**
   * Offers a delivery to its lane again after a pause. Use this for a delivery that no longer has a place in
   * the lane.
   */
  #offerLater(delivery: Delivery): void {
    this.#account.begin()
    setTimeout(() => {
      delivery.attach()
      if (this.#options.isDraining() || delivery.isAbandoned) this.#options.lineUp.letGo(delivery)
      else this.#lanes.offer(delivery)
      this.#account.end()
    }, ownFaultPauseMs)
  }

  /** Puts a delivery back into its lane, where it waits until hooks may be reachable again. */
  #goBack(delivery: Delivery): void {
    delivery.isToGoBack = false
    if (!this.#options.isDraining() && !delivery.isAbandoned) {
      this.#lanes.postpone(delivery, ownFaultPauseMs)
      return
    }
    this.#lanes.finished(delivery)
    this.#options.lineUp.letGo(delivery)
  }

  #isCurrent(delivery: Delivery, definition: DestinationDefinition): boolean {
    const { destinationId, seenIn } = delivery
    const catalog = this.#options.catalog()
    const isSame = seenIn === catalog || catalog.destinations.get(destinationId) === definition
    return isSame && !this.#options.judging.isNeededAgainBy(delivery)
  }
}

function firstTryWay({ laneClass, isFromQueue, replayJob }: Delivery, way: Way): FirstTryWay {
  switch (laneClass) {
    case 'fresh':
      if (replayJob !== '') return 'replayed'
      if (isFromQueue) return 'parked'
      return way === 'open' ? 'direct' : 'paced'
    case 'retry':
      return 'parked'
    case 'backfill':
      return 'replayed'
  }
}
