import type { Identify } from '../../../src/audience/audience-ports.ts'
import type { Exchange } from '../../../src/delivery/send/sender.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import type { Judgement, WaitingDelivery } from '../../../src/message/judgement.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import { createPipeline } from '../../../src/pipeline/pipeline.ts'
import type {
  DropReason,
  Pipeline,
  PipelineOptions,
  QueueClass,
} from '../../../src/pipeline/pipeline-ports.ts'
import { formatWait } from '../../../src/retry/duration.ts'
import { type Ladder, tiersOf } from '../../../src/retry/ladder.ts'
import { roomyBulkhead } from '../../support/bulkhead.ts'
import { offsetOf, type Queued, SimulatedQueue } from '../pipeline/simulated-queue.ts'
import { type LogRecord, partitions, type SimulatedLog, SimulatedOwner } from './simulated-log.ts'
import { stateKeyOf, type WholeCustomers } from './whole-customers.ts'

const ladder: Ladder = { waitsMs: [10_000, 60_000], thenMs: 60_000, limitMs: 4 * 3_600_000 }
export const tiers = tiersOf(ladder).map((waitMs) => ({
  topic: `retry.${formatWait(waitMs)}` as const,
  waitMs,
}))

/** The parts of the simulated world that a program uses. */
type Surroundings = {
  readonly log: SimulatedLog
  readonly customers: WholeCustomers
  readonly destinationIds: readonly string[]
  readonly hasQueue: boolean
  /** True if lanes overflow at once. */
  readonly isCramped: boolean
  /** True if what was pulled from a queue comes at once. */
  readonly isPrompt: boolean
  readonly catalog: PipelineOptions['catalog']
  /** The program that owns the units now. */
  readonly member: object
  /** Destinations that need a backfill of a space, as `destination space`. */
  readonly behind: Set<string>
  /** The kinds of events that have happened. */
  readonly seen: Set<string>
}

/** A program with the units and the pipeline of a worker. */
export class Member {
  readonly owner: SimulatedOwner
  readonly pipeline: Pipeline
  readonly queue: SimulatedQueue | undefined
  readonly machine: number
  /** The retry records that the program was given. */
  readonly taken = new Set<LogRecord>()
  /**
   * Offsets at which the program lost the units, by topic and unit; undefined while it owns them. The program
   * doesn't deliver records of `memberships` from these offsets on.
   */
  seenBelow: ReadonlyMap<string, number> | undefined
  readonly #world: Surroundings
  /** The origin of the last value that the program has taken as the newest, by state key. */
  readonly #newest = new Map<string, number>()

  constructor(world: Surroundings, machine: number, begunBelow: ReadonlyMap<string, number>) {
    this.#world = world
    this.machine = machine
    this.owner = new SimulatedOwner(world.log, {
      machine,
      begunBelow,
      ports: { deliver: (record, identify) => this.#deliver(record, identify) },
    })
    this.queue = world.hasQueue ? this.#newQueue() : undefined
    this.pipeline = this.#newPipeline()
  }

  #newQueue(): SimulatedQueue {
    const { log, isPrompt } = this.#world
    return new SimulatedQueue(
      {
        isOpen: true,
        isPrompt,
        isLost: () =>
          this.owner.isLeaving || this.owner.isKilled || (this.owner.isZombie && !this.owner.isUnaware),
        waiting: () => [...Array(partitions).keys()].flatMap((unit) => waitingIn(log, unit)),
        append: ({ unit, destinationId, queueClass, content: { key, value, headers } }) =>
          this.owner.write('waiting', unit, {
            key,
            value,
            headers: { ...headers, destinationId, queueClass },
          }),
        lend: (queued, giveBack) => this.#lendQueued(queued, giveBack),
      },
      () => this.pipeline,
    )
  }

  #lendQueued({ id, unit, destinationId, content: { headers } }: Queued, giveBack: () => void): HeldRecord {
    const { log, customers, seen } = this.#world
    seen.add('pulled')
    const record = log.records('waiting', unit)[offsetOf({ id })]
    if (record === undefined) throw new Error(`${id} is not there`)
    if (this.#isPresent) customers.reopen(Number(headers?.['first-seen']), destinationId)
    const held = this.owner.hold('waiting', unit, record)
    const leave = held.giveBack.bind(held)
    return Object.assign(held, {
      giveBack() {
        leave()
        giveBack()
      },
    })
  }

  /** Ends the process. `isWritten` returns true for each write under way that the broker got. */
  kill(isWritten: (index: number) => boolean): void {
    this.owner.kill(isWritten)
    this.pipeline.stop()
  }

  /** Begins nothing more, and lets go of everything that waits. */
  letGo(): void {
    this.queue?.leave()
    this.owner.units.letGoAbandoned()
    this.pipeline.letGoAbandoned()
  }

  get isIdle(): boolean {
    const { pending, unacknowledged, out } = this.owner
    return pending.length + unacknowledged.length + out.size + this.pipeline.held.records === 0
  }

  get #isPresent(): boolean {
    return this.#world.member === this
  }

  /** Passes an Identify from the units to the pipeline. */
  #deliver(record: HeldRecord, identify: Identify): void {
    const { timestampMs: originMs, topic, partition, offset } = record
    if (offset >= (this.seenBelow?.get(`${topic}/${partition}`) ?? Infinity)) {
      record.settle()
      return
    }
    const { customers, destinationIds } = this.#world
    customers.origins.set(identify.body, originMs)
    for (const to of destinationIds) {
      if (this.#isPresent) customers.reopen(originMs, to)
      if (!identify.isSuperseded) this.#newest.set(stateKeyOf({ to, ...identify }), originMs)
    }
    this.pipeline.acceptIdentify(record, identify)
  }

  #newPipeline(): Pipeline {
    const world = this.#world
    return createPipeline({
      catalog: () => world.catalog(),
      sender: {
        post: ({ origin }, body, _signature, exchange) =>
          this.#post(new URL(origin).hostname.replace('.example', ''), body, exchange),
        async close() {},
      },
      outlet: {
        produce: async ({ topic, partition, key, value, headers }) => {
          await this.owner.write(nameOf(topic), partition, { key, value, headers })
          return 'acknowledged'
        },
      },
      observer: {
        firstTried() {},
        attempted() {},
        omitted() {},
        delivered() {},
        parked: (_delivery, why) => world.seen.add(`parked: ${why}`),
        deadLettered: (reason) => world.seen.add(`dead: ${reason}`),
        notRouted() {},
        dropped: (delivery, why) => this.#dropped(delivery, why),
        unknownSource() {},
        repeated() {},
        failed() {},
      },
      ladder,
      topics: { events: 'events', retryPrefix: 'retry.', replays: 'replays', deadLetters: 'dead-letters' },
      limits: defaultLimits,
      maxInFlight: 1_000,
      laneWaitMs: 600_000,
      lanePatienceMs: world.isCramped ? -1 : 600_000,
      bulkhead: roomyBulkhead,
      namesRequests: false,
      breaker: { failureShare: 1, minResults: 1_000_000, windowMs: 10_000, openMs: 0, maxOpenMs: 0 },
      buffer: { records: world.isCramped ? 2 : 1_000, bytes: 10_000_000 },
      onPressure() {},
      onCongested() {},
      ...(this.queue !== undefined && { queue: this.queue }),
      judge: (waiting) => this.#judge(waiting),
      needsBackfill: (to, spaceId) => {
        if (!this.owner.isKilled) world.behind.add(`${to} ${spaceId}`)
        return undefined
      },
      now: () => world.log.nowMs,
    })
  }

  #post(to: string, body: Uint8Array, exchange: Exchange): void {
    if (!this.owner.isKilled) this.#world.customers.post(this, to, body, exchange)
  }

  async #judge(waiting: WaitingDelivery): Promise<Judgement> {
    const { customers, seen } = this.#world
    customers.origins.set(waiting.body, waiting.firstSeenMs)
    const judgement = await this.owner.units.judge(waiting)
    seen.add(`judged: ${judgement.kind}`)
    customers.verdicts.set(waiting.body, judgement.kind)
    if (judgement.kind === 'send_current') customers.origins.set(judgement.body, waiting.firstSeenMs)
    return judgement
  }

  #dropped({ body, destinationId, firstSeenMs, property }: Delivery, why: DropReason): void {
    if (!this.#isPresent || property === undefined) return
    const { customers, seen } = this.#world
    seen.add(why)
    if (customers.verdicts.get(body) === 'superseded') {
      customers.end(firstSeenMs, destinationId)
      return
    }
    seen.add('a newer one took the place of one that waited')
    const heirMs = this.#newest.get(stateKeyOf({ to: destinationId, ...property }))
    if (heirMs !== undefined) customers.passOn(firstSeenMs, destinationId, heirMs)
  }
}

/** Returns the records of a unit's queue that aren't done. */
function waitingIn(log: SimulatedLog, unit: number): Queued[] {
  const settled = log.settled.get(`waiting/${unit}`)
  return log.records('waiting', unit).flatMap(({ offset, key, value, headers }) => {
    const { destinationId = '', queueClass } = headers
    if (settled?.has(offset) === true || !isQueueClass(queueClass)) return []
    return [
      { id: `waiting/${unit}/${offset}`, unit, destinationId, queueClass, content: { key, value, headers } },
    ]
  })
}

function isQueueClass(text: string | undefined): text is QueueClass {
  return text === 'front' || text === 'fresh' || text === 'retry' || text === 'backfill'
}

function nameOf(topic: string): `retry.${string}` | 'dead-letters' {
  return topic === 'dead-letters' ? topic : `retry.${topic.slice('retry.'.length)}`
}
