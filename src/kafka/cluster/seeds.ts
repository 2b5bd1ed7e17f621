import kafkajs from 'kafkajs'
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientNotes } from './client-notes.ts'
import {
  type ConnectionPool,
  type ConnectionPoolBuilder,
  type Connections,
  errorOf,
} from '../wire/connections.ts'
import { noteBroker } from '../wire/throttle.ts'
import { tlsAdvice } from '../login/tls-advice.ts'
import { messageOf } from '../wire/errors.ts'

/** The parts of a kafkajs 2.2.4 broker that are used here. kafkajs declares only some of them. */
export type SeedBroker = {
  /** Null before the first connection. */
  versions: unknown
  readonly connectionPool: ConnectionPool
  connect(): Promise<void>
  isConnected(): boolean
}

/** The parts of kafkajs' pool of brokers that are used here. */
export type SeededPool = {
  seedBroker: SeedBroker | undefined
  versions: unknown
  readonly rootLogger: unknown
  createBroker: (options: object) => SeedBroker
  readonly retrier: (work: (bail: (error: unknown) => void) => Promise<void>) => Promise<void>
  hasConnectedBrokers(): boolean
  connect(): Promise<void>
}

/**
 * How long the first address may be silent before the last one is tried too, in milliseconds. The addresses
 * in between are tried in equal steps.
 */
const allTriedWithinMs = 750

/** The address that has answered last, by the list of addresses. All clients of the process share it. */
const answered = new Map<string, string>()
/**
 * The addresses that have greeted, and have answered no request since. All clients of the process share them.
 * A broker or a proxy may greet, and then hang.
 */
const onlyGreeted = new Set<string>()

type SeedParts = { readonly connections: Connections; readonly notes: ClientNotes }

/**
 * Replaces the way in which a cluster of kafkajs connects to one of the addresses of `kafka.brokers`. kafkajs
 * itself stays with an address that accepts a connection and then says nothing: it asks the same address
 * again and again, and each new cluster begins with this address. So one hanging broker would keep all of
 * Sluice from a Kafka that runs.
 *
 * Here, an address counts as reached only when it has answered, and has accepted the login. While an address
 * is silent, the next addresses are tried too. The first that answers is taken. Addresses that have only
 * greeted come last.
 */
export function replaceSeeds(pool: SeededPool, builder: ConnectionPoolBuilder, parts: SeedParts): void {
  const seeds = new Seeds(pool, builder, parts)
  const create = pool.createBroker
  pool.createBroker = (options) => greeted(create(options))
  pool.connect = () => seeds.connect()
}

class Seeds {
  readonly #pool: SeededPool
  readonly #builder: ConnectionPoolBuilder
  readonly #connections: Connections
  readonly #notes: ClientNotes

  constructor(pool: SeededPool, builder: ConnectionPoolBuilder, { connections, notes }: SeedParts) {
    this.#pool = pool
    this.#builder = builder
    this.#connections = connections
    this.#notes = notes
  }

  async connect(): Promise<void> {
    if (this.#pool.hasConnectedBrokers()) return
    await this.#pool.retrier(async (bail) => {
      try {
        await this.#connectToFirst()
      } catch (error) {
        if (cannotBeRepeated(error)) bail(error)
        else throw error
      }
    })
  }

  async #connectToFirst(): Promise<void> {
    const { addresses } = this.#notes
    const round: Round = { cuts: this.#connections.cuts, tried: [], isOver: false }
    const attempts = inOrder(addresses, answered.get(addresses.join())).map(
      (address) => () => this.#attempt(address, round),
    )
    let taken: SeedBroker | undefined
    try {
      taken = await firstOf(attempts, allTriedWithinMs / Math.max(1, attempts.length - 1))
      this.#refuseIfClosed(round)
      this.#pool.seedBroker = taken
      this.#pool.versions = taken.versions
    } finally {
      round.isOver = true
      const isClosed = round.cuts !== this.#connections.cuts
      for (const broker of round.tried)
        if (broker !== taken || isClosed)
          this.#connections.cutPool(broker.connectionPool, 'another address is used')
    }
  }

  async #attempt(address: string, round: Round): Promise<SeedBroker> {
    const { troubles, addresses } = this.#notes
    this.#refuseIfClosed(round)
    const broker = await this.#brokerAt(address)
    round.tried.push(broker)
    try {
      await broker.connect()
    } catch (error) {
      if (!round.isOver) troubles.notReached(address, problemOf(error))
      throw error
    }
    troubles.reached(address)
    answered.set(addresses.join(), address)
    onlyGreeted.add(address)
    for (const { requestQueue } of broker.connectionPool.pool)
      requestQueue.onFirstAnswer = () => void onlyGreeted.delete(address)
    return broker
  }

  #refuseIfClosed({ cuts }: Round): void {
    if (cuts !== this.#connections.cuts) throw new kafkajs.KafkaJSConnectionError('the client was closed')
  }

  async #brokerAt(address: string): Promise<SeedBroker> {
    const { seedBroker, rootLogger } = this.#pool
    if (seedBroker !== undefined && addressOf(seedBroker.connectionPool) === address) {
      // It has to answer again, perhaps as another version of Kafka.
      seedBroker.versions = null
      return seedBroker
    }
    const connectionPool = await this.#builder.build(placeOf(address))
    return this.#pool.createBroker({ connectionPool, logger: rootLogger })
  }
}

/**
 * One try of the addresses. `cuts`: the cuts of the connections before it. `tried`: the brokers that were
 * tried.
 */
type Round = { readonly cuts: number; readonly tried: SeedBroker[]; isOver: boolean }

/**
 * Lets a broker count as connected only when it has answered, and turns its silence into an error after which
 * kafkajs looks for another broker. After kafkajs' own error, kafkajs would ask the same broker again.
 */
function greeted(broker: SeedBroker): SeedBroker {
  const isConnected = broker.isConnected.bind(broker)
  const connect = broker.connect.bind(broker)
  broker.isConnected = () => broker.versions !== null && isConnected()
  broker.connect = async () => {
    try {
      await connect()
      noteBroker(addressOf(broker.connectionPool))
    } catch (error) {
      if (!(error instanceof kafkajs.KafkaJSRequestTimeoutError)) throw error
      const { connectionPool, versions } = broker
      const seconds = (connectionPool.pool[0]?.requestQueue.greetingTimeoutMs ?? 0) / 1_000
      const what =
        versions === null ? 'accepts connections, and does not answer' : 'does not answer the login'
      throw errorOf(connectionPool, `it ${what} (within ${seconds} s)`)
    }
  }
  return broker
}

/**
 * Returns the addresses in their order. The address that has answered last comes first, and those that have
 * only greeted come last.
 */
function inOrder(addresses: readonly string[], first: string | undefined): readonly string[] {
  const rankOf = (address: string): number => (onlyGreeted.has(address) ? 2 : address === first ? 0 : 1)
  return addresses.toSorted((one, other) => rankOf(one) - rankOf(other))
}

/**
 * Begins one work after another, and returns the first result. The next work begins when all works before it
 * have failed, and `pauseMs` after the previous one at the latest. If all fail, rejects with the error that
 * says most.
 */
async function firstOf<T>(works: readonly (() => Promise<T>)[], pauseMs: number): Promise<T> {
  const over = new AbortController()
  const begun: Promise<T>[] = []
  try {
    for (const work of works) {
      begun.push(work())
      const result = Promise.any(begun).then(
        () => true,
        () => false,
      )
      const pause = delay(pauseMs, false, { signal: over.signal }).catch(() => false)
      if (await Promise.race([result, pause])) break
    }
    return await Promise.any(begun)
  } catch (error) {
    throw error instanceof AggregateError ? mostTelling(error.errors) : error
  } finally {
    over.abort()
  }
}

/** Returns the first error with which a broker has answered, or else the first error. */
function mostTelling(errors: readonly unknown[]): unknown {
  return errors.find((error) => !(error instanceof kafkajs.KafkaJSConnectionError)) ?? errors[0]
}

function cannotBeRepeated(error: unknown): boolean {
  return error instanceof kafkajs.KafkaJSError && !error.retriable
}

type BrokerPlace = { readonly host: string; readonly port: number }

function placeOf(address: string): BrokerPlace {
  const at = address.lastIndexOf(':')
  return { host: address.slice(0, at).replace(/^\[(.*)\]$/, '$1'), port: Number(address.slice(at + 1)) }
}

function addressOf({ host, port }: BrokerPlace): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Says in words what an address did. */
function problemOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  return tlsAdvice(code) ?? messageOf(error).replace(/^Connection error: /, '')
}
