import { readConfig } from '../../src/config/read.ts'
import type { DestinationDefinition } from '../../src/delivery/endpoint.ts'
import { createPipeline } from '../../src/pipeline/pipeline.ts'
import type {
  CatalogView,
  Outlet,
  Pipeline,
  PipelineOptions,
  OutboundRecord,
} from '../../src/pipeline/pipeline-ports.ts'
import { formatWait } from '../../src/retry/duration.ts'
import { type Ladder, tiersOf } from '../../src/retry/ladder.ts'
import { bulkheadWith } from '../../src/roles/start/connection-limits.ts'
import { pipelineSettings } from '../../src/roles/start/settings.ts'
import { Book } from './book.ts'
import { type Feed, messagesOf, play } from './feed.ts'
import type { HookModel } from './hook-models.ts'
import { messageOf, messageText, partitionsOfUsers, placeOf } from './messages.ts'
import { OneThread } from './one-thread.ts'
import { createVirtualSender, type VirtualHook } from './virtual-hooks.ts'
import { VirtualKafka } from './virtual-kafka.ts'
import { startVirtualTime } from './virtual-time.ts'

/** A destination with a separate source, with the models of its hooks and its messages. */
export type SimulatedDestination = {
  readonly id: string
  readonly hooks: readonly HookModel[]
  readonly feed: readonly Feed[]
  readonly strategy?: 'all' | 'failover'
}

export type SimulationOptions = {
  readonly destinations: readonly SimulatedDestination[]
  /** The settings of the pipeline that differ from the defaults of the configuration. */
  readonly settings?: Partial<PipelineOptions>
}

export type Simulated = {
  readonly destinations: readonly { readonly id: string; readonly book: Book }[]
  readonly ladder: Ladder
  /** The start of the simulation on the virtual clock, in epoch milliseconds. */
  readonly startMs: number
  /** The length of the simulation on the virtual clock. */
  readonly virtualMs: number
  /** The real time that the simulation took. */
  readonly realMs: number
  readonly events: number
  /** The largest number of records that the pipeline held at once. */
  readonly heldMost: number
  /** The largest number of deliveries that were in flight in lanes at once. */
  readonly inFlightMost: number
  /** The share of the time in which the worker's thread was busy, from 0 to 1. */
  readonly busyShare: number
}

const startMs = Date.UTC(2026, 0, 1)
/**
 * How long the simulation goes on after the ladder of the last messages, so that their last tries can end.
 */
const afterFeedMs = 15 * 60_000
const partitions = 12
/** The time that the worker's thread needs to take a record, in microseconds. */
const recordUs = 15
/** The time that the worker's thread needs to produce a record, in microseconds. */
const produceUs = 25

/**
 * Runs a real pipeline, with its lanes, breakers and ladder, between a virtual Kafka and modelled hooks. The
 * simulation ends when each message has ended and was tried at each hook, or when the ladder of the last
 * message is over. Hours take seconds, because there are no sockets and no real waits. Only one simulation
 * may run at a time.
 */
export async function simulate(options: SimulationOptions): Promise<Simulated> {
  const beganMs = performance.now()
  const time = startVirtualTime(startMs)
  try {
    const world = new World(options)
    await time.run(() => world.isOver())
    const simulated = world.end()
    time.end()
    return { ...simulated, startMs, events: time.events, realMs: performance.now() - beganMs }
  } finally {
    time.end()
  }
}

class World {
  readonly #books: ReadonlyMap<string, Book>
  readonly #thread = new OneThread()
  readonly #topics: PipelineOptions['topics']
  readonly #ladder: Ladder
  readonly #kafka: VirtualKafka
  readonly #pipeline: Pipeline
  readonly #userPartitions = partitionsOfUsers(partitions)
  readonly #endMs: number
  #feeding = 0
  #heldMost = 0
  #inFlightMost = 0

  constructor({ destinations, settings = {} }: SimulationOptions) {
    const defaults = defaultSettings()
    this.#topics = defaults.topics
    this.#ladder = settings.ladder ?? defaults.ladder
    const lastS = Math.max(...destinations.flatMap(({ feed }) => feed.map(({ untilS }) => untilS)))
    this.#endMs = startMs + lastS * 1_000 + this.#ladder.limitMs + afterFeedMs
    this.#books = new Map(
      destinations.map(({ id, hooks, feed }) => [id, new Book(hooks, messagesOf(feed))] as const),
    )
    this.#kafka = this.#openKafka()
    this.#pipeline = createPipeline({
      ...defaults,
      catalog: catalogOf(destinations),
      sender: createVirtualSender(this.#hooksOf(destinations), this.#thread),
      outlet: this.#outlet(),
      observer: silentObserver,
      onPressure: (isFull) => this.#kafka.setFull(isFull),
      onCongested: (isCongested) => this.#kafka.setCongested(isCongested),
      now: Date.now,
      ...settings,
    })
    for (const [index, destination] of destinations.entries()) void this.#feed(index, destination)
  }

  isOver(): boolean {
    if (this.#feeding > 0) return false
    if (Date.now() >= this.#endMs) return true
    if (this.#kafka.waiting > 0 || this.#pipeline.held.records > 0) return false
    const books = [...this.#books.values()]
    return books.every(({ unfinished, hooks, messages }) => {
      return unfinished === 0 && hooks.every(({ tried }) => tried === messages)
    })
  }

  end(): Omit<Simulated, 'startMs' | 'events' | 'realMs'> {
    this.#pipeline.stop()
    const virtualMs = Date.now() - startMs
    return {
      destinations: [...this.#books].map(([id, book]) => ({ id, book })),
      ladder: this.#ladder,
      virtualMs,
      heldMost: this.#heldMost,
      inFlightMost: this.#inFlightMost,
      busyShare: this.#thread.busyMs / virtualMs,
    }
  }

  #openKafka(): VirtualKafka {
    const { events, retryPrefix } = this.#topics
    const tiers = tiersOf(this.#ladder).map((waitMs) => [retryPrefix + formatWait(waitMs), waitMs] as const)
    return new VirtualKafka({
      partitions,
      waits: new Map([[events, 0], ...tiers]),
      behindMs: () => this.#thread.behindMs,
      onRecord: (record, content) => {
        this.#thread.spend(recordUs)
        this.#pipeline.accept(record, content)
        this.#heldMost = Math.max(this.#heldMost, this.#pipeline.held.records)
        this.#inFlightMost = Math.max(this.#inFlightMost, this.#pipeline.inFlight)
      },
    })
  }

  #hooksOf(destinations: readonly SimulatedDestination[]): readonly VirtualHook[] {
    return destinations.flatMap(({ id }) => {
      const book = this.#bookOf(id)
      return book.hooks.map((page, at) => ({ origin: originOf(id, at), page, book }))
    })
  }

  async #feed(index: number, { id, feed }: SimulatedDestination): Promise<void> {
    const book = this.#bookOf(id)
    const headers = { 'source-id': id }
    const arrive = (): void => {
      const message = book.messages
      const { key, user } = placeOf(index, message)
      book.appended(message, Date.now())
      const value = Buffer.from(messageText(index, message, user))
      this.#kafka.append(this.#topics.events, this.#userPartitions[user] ?? 0, { key, value, headers })
    }
    this.#feeding++
    await play(feed, { startMs, phase: (index * 0.618) % 1, arrive })
    this.#feeding--
  }

  #outlet(): Outlet {
    return {
      produce: async (record) => {
        this.#thread.spend(produceUs)
        if (record.topic !== this.#topics.deadLetters) {
          this.#bookOf(record.headers['destination-id']).parked++
          return this.#kafka.produce(record)
        }
        this.#bury(record)
        return 'acknowledged'
      },
    }
  }

  #bury({ headers, value }: OutboundRecord): void {
    const { reason = 'none', 'destination-id': destinationId } = headers
    if (value === null) throw new Error(`a dead letter without a value: ${reason}`)
    this.#bookOf(destinationId).died(messageOf(value), reason)
  }

  #bookOf(destinationId = ''): Book {
    const book = this.#books.get(destinationId)
    if (book === undefined) throw new Error(`there is no destination ${JSON.stringify(destinationId)}`)
    return book
  }
}

/** Returns the pipeline settings of a worker with the default configuration. */
export function defaultSettings() {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const { config } = read
  const { delivery } = config
  return { ...pipelineSettings(config), bulkhead: bulkheadWith(delivery, delivery.maxInFlightSick) }
}

/** An observer that ignores everything, and throws the errors that it gets. */
export const silentObserver: PipelineOptions['observer'] = {
  attempted() {},
  delivered() {},
  firstTried() {},
  omitted() {},
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

function catalogOf(destinations: readonly SimulatedDestination[]): () => CatalogView {
  const definitions = destinations.map((destination) => definitionOf(destination))
  const catalog = {
    sources: new Map(definitions.map(({ id }) => [id, { enabled: true }])),
    destinations: new Map(definitions.map((definition) => [definition.id, definition])),
    destinationsBySource: new Map(definitions.map((definition) => [definition.id, [definition]])),
  }
  return () => catalog
}

/** Returns a destination with the catalog's defaults. */
function definitionOf({ id, hooks, strategy = 'all' }: SimulatedDestination): DestinationDefinition {
  return {
    id,
    state: 'on',
    maxInFlight: 64,
    strategy,
    filter: undefined,
    sharedSecret: undefined,
    nextSharedSecret: undefined,
    standardWebhooks: false,
    rateLimit: undefined,
    hooks: hooks.map((_, at) => ({ id: `hook-${at}`, origin: originOf(id, at), path: '/', headers: [] })),
  }
}

function originOf(id: string, at: number): string {
  return `https://hook-${at}.${id}.example`
}
