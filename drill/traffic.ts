import { setTimeout as passTime } from 'node:timers/promises'
import { createAudienceUpstream, type UpstreamRecord } from '../test/support/audience-upstream.ts'
import { Random } from '../test/support/random.ts'
import { bearer, createGatewayCaller, type Gateway, sendBatches } from './clients.ts'
import type { Endpoints } from './endpoints.ts'
import type { Ledger } from './ledger.ts'
import { messageOf } from './ledger.ts'
import { produceBursts, produceEvents, startStraightWriter, type StraightWriter } from './straight.ts'

/** The running traffic of a drill, of all kinds. */
export type Traffic = {
  audiences: ReturnType<typeof createAudienceUpstream>
  /**
   * Stops the traffic. Resolves when all started requests are acknowledged, and customers have got every
   * `delete` of the audiences. Rejects if a `delete` takes too long.
   */
  stop(): Promise<void>
}

/** The share of `rate` that goes through the gateway. The rest goes straight to Kafka. */
const shareOfGateway = 1 / 3
const tillPerSecond = 1
const deletionEveryMs = 4_000
/**
 * How long the drill waits at its end until customers have got every `delete`. A destination that has
 * answered nothing for a while needs this time.
 */
const deletedWithinMs = 150_000

type TrafficOptions = {
  /** The addresses of the brokers themselves, not of the proxies. */
  brokers: readonly string[]
  prefix: string
  gatewayOrigin: string
  partitions: number
  /** The number of events a second. */
  rate: number
  seed: number
  lengthMs: number
  endpoints: Endpoints
  ledger: Ledger
}

export async function startTraffic({
  brokers,
  prefix,
  gatewayOrigin,
  partitions,
  rate,
  seed,
  lengthMs,
  endpoints,
  ledger,
}: TrafficOptions): Promise<Traffic> {
  const writer = await startStraightWriter({ brokers, prefix, ledger })
  const gateway = createGatewayCaller(gatewayOrigin, ledger)
  const stopping = new AbortController()
  const { signal } = stopping
  const random = new Random(seed)
  const audiences = createAudienceUpstream({
    partitions: () => partitions,
    random: new Random(seed + 1),
    deletedWithinMs,
    msSinceDelete: (user, atMs) => leastSinceDelete(endpoints, user, atMs),
    send: (topic, records) =>
      topic === 'audience-changes' && records.every(isPlainChange) && random.oneIn(2)
        ? callWithChanges(gateway, records)
        : writer.write(topic, 'space', records),
  })
  const shop = { writer, ledger, source: 'shop', perSecond: rate * (1 - shareOfGateway), signal } as const
  const running = Promise.all([
    produceEvents(shop),
    produceEvents({ ...shop, source: 'till', perSecond: tillPerSecond }),
    produceBursts({ writer, ledger, signal }),
    sendBatches({ gateway, ledger, perSecond: rate * shareOfGateway, signal }),
    deleteUsers({ writer, gateway, ledger, signal }),
    audiences.play(performance.now() + lengthMs),
  ])
  // `stop` reports the error later. Without this handler, the rejection would end the process at once.
  running.catch(() => undefined)
  return {
    audiences,
    async stop() {
      stopping.abort()
      try {
        await running
      } finally {
        await writer.stop()
      }
    },
  }
}

/**
 * Returns the time since the last customer got the `delete`, in milliseconds. Returns `undefined` if a
 * customer hasn't got it yet.
 */
function leastSinceDelete({ audiences }: Endpoints, user: string, atMs: number): number | undefined {
  const all = [...audiences.values()].map((customer) => customer.msSinceDelete(user, atMs))
  const known = all.filter((ms) => ms !== undefined)
  return known.length < all.length ? undefined : Math.min(...known)
}

/** Returns true for a single change in the partition of its key. The gateway accepts no other records. */
function isPlainChange({ key, partition }: UpstreamRecord): boolean {
  return key !== null && partition === undefined
}

async function callWithChanges(gateway: Gateway, records: readonly UpstreamRecord[]): Promise<void> {
  const changes = records.map(({ value }): unknown => JSON.parse(value))
  await gateway.call('/v1/audience-changes', { source: 'space', changes }, bearer('space'))
}

/**
 * Sends a few events of a new user of the source `shop`, then asks for the user's deletion, until the signal.
 */
async function deleteUsers({
  writer,
  gateway,
  ledger,
  signal,
}: {
  writer: StraightWriter
  gateway: Gateway
  ledger: Ledger
  signal: AbortSignal
}): Promise<void> {
  for (let number = 0; !signal.aborted; number++) {
    const userId = `leaver-${number}`
    const records = [0, 1, 2].map((index) => ({
      key: userId,
      value: JSON.stringify(messageOf(`${userId}-${index}`, userId, index)),
    }))
    await writer.write('events', 'shop', records)
    await passTime(deletionEveryMs / 2)
    const request = { userId, sources: ['shop'], requestId: `request-${userId}` }
    await gateway.call('/v1/deletions', request, bearer('shop'))
    ledger.deleted.push(userId)
    await passTime(deletionEveryMs / 2)
  }
}
