import { InOrder } from '../async/in-order.ts'
import type { DestinationDefinition, Endpoints } from '../delivery/endpoint.ts'
import type { GroupShare } from '../delivery/group-share.ts'
import { laneRateOf } from '../delivery/lane-limits.ts'
import type { Lanes } from '../delivery/lanes/lanes-ports.ts'
import type { BufferAccount } from './buffer-account.ts'
import { hasNoChance, type PlanOptions } from './attempt-plan.ts'
import type { Delivery } from './delivery.ts'
import { forgetEditedHooks } from './edited-hooks.ts'
import type { Exits } from './exits.ts'
import type { Judging } from './judging.ts'
import type { OrderingKeys } from './ordering-keys.ts'
import type { Parking } from './parking.ts'
import type { PipelineOptions, WaitingQueue } from './pipeline-ports.ts'
import type { StoppedUnits } from './stopped-units.ts'

type LineUpOptions = Pick<PipelineOptions, 'catalog' | 'now'> & {
  readonly account: BufferAccount
  readonly endpoints: Endpoints
  readonly groupShare: GroupShare
  readonly plan: PlanOptions
  readonly exits: Exits
  readonly parking: Parking
  readonly judging: Judging
  readonly orderingKeys: OrderingKeys<Delivery>
  readonly stopped: StoppedUnits
  readonly lanes: Lanes<Delivery>
  readonly queue: WaitingQueue | undefined
  readonly isDraining: () => boolean
}

/**
 * How deliveries line up: each waits for its ordering key, behind the queue of its destination in Kafka, and
 * in its lane, in this order.
 */
export class LineUp {
  readonly #options: LineUpOptions
  /**
   * The deliveries without a property that are being judged, by destination, and those that came after them.
   * A judgement may read a store, so a later one may come first.
   */
  readonly #inOrder = new InOrder()

  constructor(options: LineUpOptions) {
    this.#options = options
  }

  /** Lines up a delivery of a record that was written when the delivery began to wait. */
  resume(delivery: Delivery): void {
    const { judging, orderingKeys } = this.#options
    const { property } = delivery
    if (!judging.isNeededBy(delivery)) this.arrive(delivery)
    else if (property === undefined || orderingKeys.enter(delivery, property)) this.#judge(delivery)
  }

  /** Lines up a delivery behind those of its destination that are being judged. */
  arrive(delivery: Delivery, destination?: DestinationDefinition): void {
    const { destinationId, property } = delivery
    if (property !== undefined || !this.#inOrder.has(destinationId)) {
      this.enqueue(delivery, destination)
      return
    }
    const { account } = this.#options
    account.begin()
    this.#inOrder.add(destinationId, Promise.resolve(), () => {
      this.goOn(delivery)
      account.end()
    })
  }

  /** Lines up a delivery by the present catalog. If its destination isn't `on`, the state decides. */
  enqueue(delivery: Delivery, known?: DestinationDefinition): void {
    const { catalog, endpoints, groupShare, plan, parking, exits, queue, judging, now } = this.#options
    if (delivery.deletionsKnown === undefined) judging.noteKnown(delivery)
    if (queue?.wasQueued(delivery) === true) {
      delivery.pending.begin()
      exits.settle(delivery)
      return
    }
    const destination = known ?? catalog().destinations.get(delivery.destinationId)
    if (destination?.state !== 'on') {
      parking.withhold(delivery, destination)
      return
    }
    const endpoint = endpoints.of(destination)
    delivery.endpoint = endpoint
    delivery.seenIn = catalog()
    // The rate is set again, because it may have changed while the delivery waited.
    delivery.laneRate = laneRateOf(endpoint, groupShare.rateOf(destination))
    forgetEditedHooks(delivery, destination)
    if (hasNoChance(delivery, endpoint, plan, now())) parking.park(delivery, 'paced')
    else this.#offer(delivery)
  }

  /**
   * Continues with a delivery that got its ordering key. It continues in a microtask, because the lanes may
   * be in the middle of starting or ending another delivery.
   */
  next(delivery: Delivery): void {
    const { account, judging } = this.#options
    account.begin()
    queueMicrotask(() => {
      if (this.#isToLetGo(delivery)) this.letGo(delivery)
      else if (delivery.hasWaited && judging.isNeededBy(delivery)) this.#judge(delivery)
      else this.enqueue(delivery)
      account.end()
    })
  }

  /** Ends a delivery whose property has a newer value. */
  supersede(delivery: Delivery): void {
    const { parking, exits } = this.#options
    if (delivery.isAbandoned) parking.letGo(delivery, 'handover')
    else exits.drop(delivery, 'superseded')
  }

  /**
   * Leaves a delivery to the next owner of its record, or writes it to a topic. This is for deliveries that
   * this worker must not make any more, because it stops or because their unit has another owner.
   */
  letGo(delivery: Delivery): void {
    this.#options.parking.letGo(delivery, this.#options.isDraining() ? 'shutdown' : 'handover')
  }

  /** Lines up a delivery again that was held back. Lets it go if this worker must not make it any more. */
  goOn(delivery: Delivery): void {
    if (this.#isToLetGo(delivery)) this.letGo(delivery)
    else this.enqueue(delivery)
  }

  #isToLetGo(delivery: Delivery): boolean {
    return this.#options.isDraining() || delivery.isAbandoned
  }

  #judge(delivery: Delivery): void {
    const { account, judging } = this.#options
    account.begin()
    const judged = judging.judge(delivery)
    const follow = (what: 'send' | 'let go' | 'ended'): void => {
      if (what === 'send') this.goOn(delivery)
      else if (what === 'let go') this.letGo(delivery)
      account.end()
    }
    if (delivery.property === undefined) this.#inOrder.add(delivery.destinationId, judged, follow)
    else void judged.then(follow)
  }

  #offer(delivery: Delivery): void {
    const { orderingKeys, parking, queue, stopped, lanes } = this.#options
    const { property } = delivery
    // Those that wait in Kafka came first. A delivery that was pulled from there is the first of them.
    if (queue?.isOpen === true && !delivery.isFromQueue && queue.has(delivery)) {
      parking.park(delivery, 'overflow')
      return
    }
    // A delivery that already holds its ordering key doesn't wait for the key again.
    const isFirst =
      property === undefined || delivery.orderingKey !== undefined || orderingKeys.enter(delivery, property)
    if (isFirst && !stopped.hold(delivery)) lanes.offer(delivery)
  }
}
