import type { DestinationDefinition, Endpoint } from '../delivery/endpoint.ts'
import type { Outcome } from '../delivery/outcomes/outcome.ts'
import { nextParkingStep } from '../retry/ladder.ts'
import { describeDeath, describeNoLogin } from './dead-letter-advice.ts'
import { stateEffectOf } from './paused-or-off.ts'
import { type Decision, idsOf, waitForTurn, waitOn } from './decision.ts'
import type { Delivery } from './delivery.ts'
import { forgetEditedHooks } from './edited-hooks.ts'
import type { Exits } from './exits.ts'
import { failingForMs } from './attempt-plan.ts'
import type { ParkReason, PipelineOptions, WaitingQueue } from './pipeline-ports.ts'

type ParkingOptions = Pick<
  PipelineOptions,
  'catalog' | 'ladder' | 'observer' | 'queue' | 'whileAutoPaused' | 'loginWaitMs' | 'now'
> & {
  readonly exits: Exits
}

/**
 * Moves deliveries along the retry ladder, after an attempt or without an attempt. Ends deliveries that have
 * succeeded or expired.
 */
export class Parking {
  readonly #options: ParkingOptions

  constructor(options: ParkingOptions) {
    this.#options = options
  }

  /** Carries out a decision about a delivery. `last` is the outcome that a dead letter names. */
  follow(delivery: Delivery, decision: Decision, why: ParkReason, last?: Outcome): void {
    const { observer, exits } = this.#options
    if (decision.kind === 'delivered') {
      observer.delivered(delivery)
      exits.settle(delivery)
      return
    }
    delivery.progress(decision.next)
    if (decision.kind === 'wait') exits.retry(delivery, decision.waitMs, why)
    else this.expire(delivery, decision.reason, last)
  }

  expire(delivery: Delivery, reason: 'failed_for_good' | 'expired', last?: Outcome): void {
    const { ladder, exits } = this.#options
    const isUntried = reason === 'expired' && delivery.attempts === 0
    const named = isUntried ? 'expired_untried' : reason
    exits.deadLetter(delivery, named, describeDeath(named, delivery, { limitMs: ladder.limitMs, last }))
  }

  /**
   * Writes a delivery to the retry ladder without an attempt. A delivery expires only if its clock runs. The
   * clock starts at the first try, or if the delivery waits for a turn (`paced`) or for the proxy. It doesn't
   * run while the destination is paused.
   *
   * If the destination isn't `on` any more, its state decides what happens to the delivery.
   */
  park(delivery: Delivery, why: Exclude<ParkReason, 'failed' | 'not_before'>): void {
    const destination = this.#options.catalog().destinations.get(delivery.destinationId)
    const isWithheld = destination?.state !== 'on' && why !== 'paused' && why !== 'uncertain'
    if (isWithheld) this.withhold(delivery, destination)
    else this.#wait(delivery, why)
  }

  /**
   * Returns false if `park` with the reason `overflow` would end the delivery, because no rung of the ladder
   * ends before the delivery expires.
   */
  mayOverflow(delivery: Delivery): boolean {
    if (this.#options.queue?.isOpen === true || delivery.expiresAtMs === 0) return true
    const destination = this.#options.catalog().destinations.get(delivery.destinationId)
    return destination?.state !== 'on' || this.#nextWait(delivery, destination).kind === 'wait'
  }

  /** Handles a delivery whose destination isn't `on`. `destination` is `undefined` if it was removed. */
  withhold(delivery: Delivery, destination: DestinationDefinition | undefined): void {
    const effect = stateEffectOf(destination, this.#options.whileAutoPaused)
    if (effect.kind === 'park') this.#wait(delivery, 'paused')
    else this.#options.exits.deadLetter(delivery, effect.reason, effect.detail)
  }

  #wait(delivery: Delivery, why: Exclude<ParkReason, 'failed' | 'not_before'>): void {
    const { ladder, now, exits, queue } = this.#options
    if (queue?.isOpen === true && forTurn.has(why)) {
      this.#queue(delivery, queue, why)
      return
    }
    if (why === 'paused' || why === 'login') delivery.stopClock()
    // The time for which a failing server isn't tried counts against the delivery's time limit too.
    if (why === 'paced' || why === 'proxy') delivery.startClock(ladder, now())
    if (delivery.expiresAtMs === 0) {
      const { rung, waitMs } = nextParkingStep(ladder, delivery.nextRung)
      delivery.takeRung(rung)
      exits.retry(delivery, waitMs, why)
      return
    }
    const destination = this.#options.catalog().destinations.get(delivery.destinationId)
    if (why === 'paced') this.#waitForTurn(delivery, remainingHooks(delivery, destination))
    else this.follow(delivery, this.#nextWait(delivery, destination), why)
  }

  /** Makes a delivery wait for its turn. If its record is in the queue already, it only has to stay there. */
  #queue(delivery: Delivery, queue: WaitingQueue, why: ParkReason): void {
    const { exits } = this.#options
    if (delivery.isFromQueue && !delivery.pending.isBegun && !delivery.isNewlyUncertain) {
      exits.leaveBehind(delivery)
      return
    }
    // A new message that has been in its lane, or was pulled, is older than those that wait in the queue. So
    // is one that was in the lane of an owner that was killed.
    const isOlder = delivery.queuedAtMs > 0 || delivery.isFromQueue || queue.isOvertaken(delivery)
    exits.queue(
      delivery,
      queue,
      isOlder && delivery.laneClass === 'fresh' ? 'front' : delivery.laneClass,
      why,
    )
  }

  #nextWait(delivery: Delivery, destination: DestinationDefinition | undefined): ReturnType<typeof waitOn> {
    const { ladder, now } = this.#options
    return waitOn(ladder, delivery, remainingHooks(delivery, destination), now())
  }

  /**
   * Leaves a delivery, which must not have been started, to the next owner of its record. There are two
   * exceptions. If the next owner would then repeat other deliveries of the record, or if the record doesn't
   * say yet that the delivery is uncertain, parks the delivery instead.
   */
  letGo(delivery: Delivery, why: 'shutdown' | 'handover'): void {
    const { isBegun, record } = delivery.pending
    // If other deliveries of the record were started (`isBegun`), this delivery is parked. Otherwise the next
    // owner would make all deliveries of the record again. If the next owner makes them again in any case
    // (`isElsewhere`), parking would be of no use.
    if ((isBegun && record.isElsewhere !== true) || delivery.isNewlyUncertain) {
      this.park(delivery, why)
      return
    }
    this.#options.exits.leaveBehind(delivery)
  }

  /**
   * Makes a delivery wait until one of its hooks may be asked again. If there is no hook to wait for, the
   * delivery becomes a dead letter.
   */
  waitForHooks(delivery: Delivery, hookIds: readonly string[], nowMs: number): void {
    if (hookIds.length === 0) this.expire(delivery, 'failed_for_good')
    else this.follow(delivery, waitOn(this.#options.ladder, delivery, hookIds, nowMs), 'not_before')
  }

  /**
   * Makes a delivery wait until there is a token to log in with. It costs no try, and its clock stands. If
   * both the login has failed and the delivery has waited in its queue for too long, it becomes a dead
   * letter.
   */
  waitForLogin(delivery: Delivery, endpoint: Endpoint): void {
    const { now, loginWaitMs = Infinity, exits } = this.#options
    const waitedMs = delivery.isFromQueue ? now() - delivery.pending.record.timestampMs : 0
    if (Math.min(waitedMs, failingForMs(endpoint)) < loginWaitMs) {
      this.park(delivery, 'login')
      return
    }
    const problem = endpoint.hooks.map(({ login }) => login?.problem).find((one) => one !== undefined)
    exits.deadLetter(delivery, 'login_failed', describeNoLogin(waitedMs, problem ?? 'unknown'))
  }

  /** Makes a delivery wait until a hook that its destination has now may be asked. */
  waitForPresentHooks(delivery: Delivery, destination: DestinationDefinition): void {
    this.waitForHooks(delivery, remainingHooks(delivery, destination), this.#options.now())
  }

  #waitForTurn(delivery: Delivery, hookIds: readonly string[]): void {
    const { ladder, now, exits } = this.#options
    const step = waitForTurn(ladder, delivery, hookIds, now())
    if (step.kind === 'expired') {
      this.expire(delivery, 'expired')
      return
    }
    delivery.waitForTurn(step.waits)
    exits.retry(delivery, step.waitMs, 'paced')
  }
}

/** The reasons for which a delivery waits for its turn, without a fault of its endpoint. */
const forTurn: ReadonlySet<ParkReason> = new Set<ParkReason>([
  'overflow',
  'paused',
  'login',
  'shutdown',
  'handover',
])

/** Returns the ids of the hooks that may still be tried, now or later. */
function remainingHooks(
  delivery: Delivery,
  destination: DestinationDefinition | undefined,
): readonly string[] {
  if (destination === undefined) return []
  forgetEditedHooks(delivery, destination)
  return idsOf(destination.hooks.filter(({ id }) => !delivery.failedHooks.includes(id)))
}
