import { defaultLimits } from '../../../src/message/limits.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import type { Judgement, WaitingDelivery } from '../../../src/message/judgement.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import { createPipeline } from '../../../src/pipeline/pipeline.ts'
import type {
  Pipeline,
  PipelineOptions,
  DropReason,
  OutboundRecord,
} from '../../../src/pipeline/pipeline-ports.ts'
import { roomyBulkhead } from '../../support/bulkhead.ts'
import { sentOf, type SimulatedCustomers, stateKeyOf } from './simulated-customers.ts'
import { SimulatedQueue, type Queued, type ToQueue } from './simulated-queue.ts'

export type Produce = {
  readonly owner: Owner
  /** What is to be written: to the queue, or to another topic. */
  readonly record: OutboundRecord | ToQueue
  readonly acknowledge: (answer: 'acknowledged') => void
}

export type Question = {
  readonly owner: Owner
  readonly waiting: WaitingDelivery
  readonly asked: Judgement
  readonly answer: (judgement: Judgement) => void
}

/** The parts of the simulated unit that an owner uses. */
type Surroundings = {
  readonly customers: SimulatedCustomers
  readonly settings: {
    /** True if the buffer is so small that lanes overflow at once. */
    readonly isCramped: boolean
    readonly isPrompt: boolean
    /** True if what only waits for its turn joins a queue. */
    readonly hasQueue: boolean
  }
  /** True while messages join the queues. */
  readonly isQueueOpen: boolean
  /** The kinds of events that have happened. */
  readonly seen: Set<string>
  /** The keys (`stateKeyOf`) of the properties for which a destination needs a backfill. */
  readonly behind: Set<string>
  /** The last judgement about each delivery that waited. The key is the body of the delivery. */
  readonly verdicts: WeakMap<Buffer, Judgement>
  readonly nowMs: number
  readonly deletions: number
  isDeleted(user: string): boolean
  waiting(): readonly Queued[]
  lendQueued(owner: Owner, record: Queued, giveBack: () => void): HeldRecord
  catalog(): ReturnType<PipelineOptions['catalog']>
  /** Takes a write for Kafka. */
  produce(produce: Produce): void
  /** Takes a question for the judge. */
  ask(question: Omit<Question, 'asked'>): void
}

/** A member that owns the unit, or that owned it before. */
export class Owner {
  readonly pipeline: Pipeline
  readonly queue: SimulatedQueue | undefined
  /** The records that the owner was given. */
  readonly taken = new Set<string>()
  /** True when the unit goes to another owner. What is under way at this owner still ends. */
  isLeaving = false
  /** True when nothing that this owner settles and commits counts any more. */
  isFenced = false
  /** True when the process of the owner is gone. */
  isDead = false
  readonly #unit: Surroundings
  /**
   * The first records of the deliveries that the owner has taken and not finished yet, in order. The keys come
   * from `stateKeyOf`.
   */
  readonly #fresh = new Map<string, string[]>()

  constructor(unit: Surroundings) {
    this.#unit = unit
    this.queue = unit.settings.hasQueue ? this.#newQueue() : undefined
    this.pipeline = this.#newPipeline()
  }

  #newQueue(): SimulatedQueue {
    const unit = this.#unit
    return new SimulatedQueue(
      {
        get isOpen() {
          return unit.isQueueOpen
        },
        isLost: () => this.isLeaving || this.isDead,
        isPrompt: unit.settings.isPrompt,
        waiting: () => unit.waiting(),
        append: (record) => new Promise((acknowledge) => unit.produce({ owner: this, record, acknowledge })),
        lend: (record, giveBack) => unit.lendQueued(this, record, giveBack),
      },
      () => this.pipeline,
    )
  }

  /** Notes a fresh delivery, which begins with the record `id`. */
  noteFresh(to: string, user: string, id: string): void {
    const stateKey = stateKeyOf(to, user)
    this.#fresh.set(stateKey, [...(this.#fresh.get(stateKey) ?? []), id])
  }

  /** Forgets a fresh delivery that has ended, or that goes on elsewhere. */
  #forgetFresh({ body, destinationId, hasWaited, property }: Delivery): void {
    if (hasWaited || property === undefined) return
    const { origin, user } = sentOf(body)
    const stateKey = stateKeyOf(destinationId, user)
    this.#fresh.set(stateKey, this.#fresh.get(stateKey)?.filter((id) => id !== origin) ?? [])
  }

  #dropped(delivery: Delivery, why: DropReason): void {
    const { customers, seen, verdicts } = this.#unit
    const { body, destinationId } = delivery
    const { origin, user } = sentOf(body)
    seen.add(why)
    this.#forgetFresh(delivery)
    const verdict = verdicts.get(body)?.kind
    if (verdict === 'superseded' || verdict === 'suppressed') {
      customers.landAllOf(origin, destinationId)
      return
    }
    seen.add('a newer one took the place of one that waited')
    // Only a delivery that was just taken, or that has waited since then, replaces another one.
    const heir = this.#fresh.get(stateKeyOf(destinationId, user))?.at(-1) ?? ''
    customers.passOn(this, origin, destinationId, heir)
  }

  #newPipeline(): Pipeline {
    const unit = this.#unit
    const { isCramped } = unit.settings
    return createPipeline({
      catalog: () => unit.catalog(),
      sender: {
        post: ({ origin }, body, _signature, exchange) =>
          unit.customers.post(this, new URL(origin).hostname.replace('.example', ''), body, exchange),
        async close() {},
      },
      outlet: {
        produce: (record) => new Promise((acknowledge) => unit.produce({ owner: this, record, acknowledge })),
      },
      observer: {
        attempted() {},
        firstTried() {},
        omitted() {},
        delivered: (delivery) => this.#forgetFresh(delivery),
        parked: (delivery, why) => {
          unit.seen.add(`parked: ${why}`)
          this.#forgetFresh(delivery)
        },
        deadLettered: (reason, _detail, _where, delivery) => {
          unit.seen.add(`dead: ${reason}`)
          if (delivery === undefined) return
          this.#forgetFresh(delivery)
          if (delivery.kind === 'delete' && !this.isDead)
            unit.behind.add(stateKeyOf(delivery.destinationId, sentOf(delivery.body).user))
        },
        notRouted() {},
        dropped: (delivery, why) => {
          if (!this.isDead) this.#dropped(delivery, why)
        },
        unknownSource() {},
        repeated() {},
        failed() {},
      },
      ladder: { waitsMs: [60_000, 600_000], thenMs: 600_000, limitMs: 4 * 3_600_000 },
      topics: { events: 'events', retryPrefix: 'retry.', replays: 'replays', deadLetters: 'dead-letters' },
      limits: defaultLimits,
      maxInFlight: 1_000,
      laneWaitMs: 600_000,
      lanePatienceMs: isCramped ? -1 : 600_000,
      bulkhead: roomyBulkhead,
      namesRequests: false,
      breaker: { failureShare: 1, minResults: 1_000_000, windowMs: 10_000, openMs: 0, maxOpenMs: 0 },
      buffer: { records: isCramped ? 2 : 1_000, bytes: 10_000_000 },
      onPressure() {},
      onCongested() {},
      judge: (waiting) => new Promise((answer) => unit.ask({ owner: this, waiting, answer })),
      ...(this.queue !== undefined && { queue: this.queue }),
      mayBeDeleted: ({ userId }) => unit.isDeleted(userId),
      deletionsOf: () => unit.deletions,
      needsBackfill: (to, spaceId) => {
        if (!this.isDead) unit.behind.add(stateKeyOf(to, spaceId.replace('space-', '')))
        return undefined
      },
      now: () => unit.nowMs,
    })
  }
}
