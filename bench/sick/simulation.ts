import { readConfig } from '../../src/config/read.ts'
import type { DestinationDefinition } from '../../src/delivery/endpoint.ts'
import type { Sender } from '../../src/delivery/sender.ts'
import { judge } from '../../src/delivery/verdict.ts'
import type { OutboundRecord } from '../../src/pipeline/outbound.ts'
import { createPipeline, type Outlet, type PipelineOptions } from '../../src/pipeline/pipeline.ts'
import { formatWait } from '../../src/retry/duration.ts'
import { tiersOf } from '../../src/retry/ladder.ts'
import { ladderOf, topicNames } from '../../src/roles/settings.ts'
import { Book } from './book.ts'
import type { HookModel } from './hook-models.ts'
import { messageOf, messageText, partitionsOfUsers, placeOf } from './messages.ts'
import { startVirtualTime } from './virtual-time.ts'
import { VirtualKafka } from './virtual-kafka.ts'

/** A destination, how its hooks behave, and when it gets how much. */
export type SimulatedDestination = {
  readonly id: string
  readonly hooks: readonly HookModel[]
  readonly feed: readonly Feed[]
  readonly strategy?: 'all' | 'failover'
}

/** Messages at an even pace, by seconds of the simulation. */
export type Feed = { readonly fromS: number; readonly untilS: number; readonly perSecond: number }

export type Simulated = {
  readonly destinations: readonly { readonly id: string; readonly book: Book }[]
  readonly ladder: PipelineOptions['ladder']
  /** When it began, in epoch milliseconds of its own clock. */
  readonly startMs: number
  /** How long it was on its own clock, and how long it took. */
  readonly virtualMs: number
  readonly realMs: number
  readonly events: number
  readonly heldMost: number
  readonly inFlightMost: number
  /** The share of its time that the process was busy, by what deliveries and records cost: 0 to 1. */
  readonly busyShare: number
}

/** All that is measured where every setting has its default; `settings` are of the pipeline. */
export type SimulationOptions = {
  readonly destinations: readonly SimulatedDestination[]
  readonly settings?: Partial<PipelineOptions>
}

const startMs = Date.UTC(2026, 0, 1)
/** What is late when the last feed ends has its ladder, and a while to come back from the last rung. */
const afterFeedMs = 15 * 60_000
const partitions = 12

/**
 * What things cost the one thread of a worker, in microseconds: all of a delivery that succeeds are 90, as `bench -- worker` measures
 * them. Virtual time stands still while code runs; what it would have cost makes what comes later late.
 */
const costUs = { record: 15, request: 75, produce: 25 } as const

/**
 * Runs a real pipeline, with its lanes, breakers and ladder, between a virtual Kafka and hooks that behave by a model, until each message
 * has ended and each hook has had each, or the ladder of the last is over. No socket, no sleep: hours take seconds.
 */
export async function simulate(options: SimulationOptions): Promise<Simulated> {
  const beganMs = performance.now()
  const time = startVirtualTime(startMs)
  try {
    const world = new World(options)
    await time.run(() => world.isOver())
    world.stop()
    const virtualMs = Date.now() - startMs
    const { destinations, ladder, heldMost, inFlightMost, busyMs } = world
    const figures = { heldMost, inFlightMost, busyShare: busyMs / virtualMs, events: time.events }
    time.end()
    return { destinations, ladder, startMs, virtualMs, realMs: performance.now() - beganMs, ...figures }
  } finally {
    time.end()
  }
}

class World {
  readonly destinations: readonly { readonly id: string; readonly book: Book; readonly index: number }[]
  readonly ladder: PipelineOptions['ladder']
  heldMost = 0
  inFlightMost = 0
  busyMs = 0
  readonly #byId
  readonly #hooks = new Map<string, { book: Book; hook: Book['hooks'][number] }>()
  readonly #kafka: VirtualKafka
  readonly #pipeline
  readonly #topics
  readonly #userPartitions = partitionsOfUsers(partitions)
  readonly #endMs: number
  #feeding = 0
  #busyUntilMs = 0

  constructor({ destinations, settings }: SimulationOptions) {
    const read = readConfig({ env: {} })
    if (!read.ok) throw new Error(read.message)
    const { config } = read
    this.#topics = topicNames(config)
    this.ladder = settings?.ladder ?? ladderOf(config)
    const feeds = destinations.flatMap(({ feed }) => feed)
    const lastS = Math.max(...feeds.map(({ untilS }) => untilS))
    this.#endMs = startMs + lastS * 1_000 + this.ladder.limitMs + afterFeedMs
    this.destinations = destinations.map(({ id, hooks, feed }, index) => ({
      id,
      index,
      book: new Book(
        hooks,
        feed.reduce((sum, one) => sum + messagesOf(one), 0),
      ),
    }))
    this.#byId = new Map(this.destinations.map((destination) => [destination.id, destination]))
    this.#kafka = new VirtualKafka({
      partitions,
      waits: new Map([
        [this.#topics.events, 0],
        ...tiersOf(this.ladder).map(
          (waitMs) => [this.#topics.retryPrefix + formatWait(waitMs), waitMs] as const,
        ),
      ]),
      onRecord: (record, content) => {
        this.#spend(costUs.record)
        this.#pipeline.accept(record, content)
        this.heldMost = Math.max(this.heldMost, this.#pipeline.held.records)
      },
      busyUntilMs: () => this.#busyUntilMs,
    })
    const definitions = destinations.map((destination) => definitionOf(destination))
    for (const { index, book } of this.destinations) {
      const { hooks = [] } = definitions[index] ?? {}
      for (const [at, { origin }] of hooks.entries()) {
        const hook = book.hooks[at]
        if (hook !== undefined) this.#hooks.set(origin, { book, hook })
      }
    }
    const catalog = {
      sources: new Map(definitions.map(({ id }) => [id, { enabled: true }])),
      destinations: new Map(definitions.map((definition) => [definition.id, definition])),
      destinationsBySource: new Map(definitions.map((definition) => [definition.id, [definition]])),
    }
    const { delivery, breaker } = config
    this.#pipeline = createPipeline({
      catalog: () => catalog,
      sender: this.#sender(),
      outlet: this.#outlet(),
      observer: silentObserver,
      ladder: this.ladder,
      topics: this.#topics,
      limits: config.message,
      maxInFlight: delivery.maxInFlight,
      laneWaitMs: delivery.laneWaitMs,
      lanePatienceMs: delivery.lanePatienceMs,
      breaker: {
        failureShare: breaker.failurePercent / 100,
        minResults: breaker.minResults,
        windowMs: breaker.windowMs,
        openMs: breaker.openForMs,
        maxOpenMs: breaker.maxOpenForMs,
      },
      buffer: { records: delivery.bufferRecords, bytes: delivery.bufferBytes },
      onPressure: (isFull) => this.#kafka.setFull(isFull),
      onCongested: (isCongested) => this.#kafka.setCongested(isCongested),
      now: Date.now,
      ...settings,
    })
    for (const { index } of this.destinations) this.#feed(index, destinations[index]?.feed ?? [])
  }

  isOver(): boolean {
    if (this.#feeding > 0) return false
    if (Date.now() >= this.#endMs) return true
    if (this.#kafka.waiting > 0 || this.#pipeline.held.records > 0) return false
    return this.destinations.every(
      ({ book }) => book.unfinished === 0 && book.hooks.every(({ tried }) => tried === book.messages),
    )
  }

  stop(): void {
    this.#pipeline.stop()
  }

  /** When the process is done with what it has to do and this, on the virtual clock. */
  #spend(us: number): number {
    this.#busyUntilMs = Math.max(this.#busyUntilMs, performance.now()) + us / 1_000
    this.busyMs += us / 1_000
    return this.#busyUntilMs
  }

  #feed(destination: number, feeds: readonly Feed[]): void {
    let message = 0
    const next = (at: number): void => {
      const feed = feeds[at]
      if (feed === undefined) {
        this.#feeding--
        return
      }
      const everyMs = 1_000 / feed.perSecond
      // Not all at the same moment.
      const fromMs = startMs + feed.fromS * 1_000 + everyMs * ((destination * 0.618) % 1)
      const count = messagesOf(feed)
      let sent = 0
      const go = (): void => {
        for (; sent < count && fromMs + sent * everyMs <= Date.now(); sent++)
          this.#append(destination, message++)
        if (sent === count) next(at + 1)
        else setTimeout(go, Math.ceil(fromMs + sent * everyMs - Date.now()))
      }
      setTimeout(go, Math.max(0, Math.ceil(fromMs - Date.now())))
    }
    this.#feeding++
    next(0)
  }

  #append(destination: number, message: number): void {
    const target = this.destinations[destination]
    if (target === undefined) return
    const { key, user } = placeOf(destination, message)
    const nowMs = Date.now()
    target.book.appended(message, nowMs)
    this.#kafka.append(this.#topics.events, this.#userPartitions[user] ?? 0, {
      key,
      value: Buffer.from(messageText(destination, message, user)),
      headers: { 'source-id': target.id },
    })
  }

  #sender(): Sender {
    return {
      post: (target, body, _signature, exchange) => {
        const message = messageOf(body)
        const asked = this.#hooks.get(target.origin)
        if (asked === undefined) throw new Error(`there is no hook ${target.origin}`)
        const { hook, book } = asked
        const busyMs = this.#spend(costUs.request) - performance.now()
        const nowMs = Date.now() + busyMs
        const before = hook.posted(message, nowMs - book.appendedMsOf(message))
        const { outcome, afterMs } = hook.model.answer({ message, before, nowMs })
        const isTaken = judge(outcome).kind === 'delivered'
        this.inFlightMost = Math.max(this.inFlightMost, this.#pipeline.inFlight)
        setTimeout(() => {
          hook.answered(message, isTaken)
          if (isTaken) book.taken(message)
          exchange.answered(outcome, outcome.kind === 'timeout')
          exchange.released()
        }, busyMs + afterMs)
      },
      async close() {},
    }
  }

  #outlet(): Outlet {
    return {
      produce: async (record) => {
        this.#spend(costUs.produce)
        if (record.topic === this.#topics.deadLetters) {
          this.#bury(record)
          return 'acknowledged'
        }
        const { book } = this.#byId.get(record.headers['destination-id'] ?? '') ?? {}
        if (book !== undefined) book.parked++
        return this.#kafka.produce(record)
      },
    }
  }

  #bury({ headers, value }: OutboundRecord): void {
    const reason = headers['reason'] ?? 'none'
    const destination = this.#byId.get(headers['destination-id'] ?? '')
    if (destination === undefined || value === null) throw new Error(`a dead letter of nobody: ${reason}`)
    destination.book.died(messageOf(value), reason)
  }
}

const silentObserver: PipelineOptions['observer'] = {
  attempted() {},
  delivered() {},
  parked() {},
  deadLettered() {},
  notRouted() {},
  dropped() {},
  unknownSource() {},
  repeated() {},
  failed(error) {
    throw error
  },
}

function messagesOf({ fromS, untilS, perSecond }: Feed): number {
  return Math.floor((untilS - fromS) * perSecond)
}

/** What the catalog gives a destination of which it says nothing but its hooks. */
function definitionOf({ id, hooks, strategy = 'all' }: SimulatedDestination): DestinationDefinition {
  return {
    id,
    state: 'on',
    maxInFlight: 64,
    strategy,
    sharedSecret: undefined,
    nextSharedSecret: undefined,
    standardWebhooks: false,
    rateLimit: undefined,
    hooks: hooks.map((_, at) => ({
      id: `hook-${at}`,
      origin: `https://hook-${at}.${id}.example`,
      path: '/',
      headers: [],
    })),
  }
}
