import { setTimeout as passTime } from 'node:timers/promises'
import { createAudienceUpstream, type UpstreamRecord } from '../test/support/audience-upstream.ts'
import { Random } from '../test/support/random.ts'
import { bearer, createGatewayCaller, type Gateway, sendBatches } from './clients.ts'
import type { Endpoints } from './endpoints.ts'
import type { Ledger } from './ledger.ts'
import { messageOf } from './ledger.ts'
import { produceEvents, startStraightWriter, type StraightWriter } from './straight.ts'

/** All kinds of traffic, until it is stopped. */
export type Traffic = {
  audiences: ReturnType<typeof createAudienceUpstream>
  /** Resolves when what was begun is acknowledged, and every `delete` of the audiences has come. */
  stop(): Promise<void>
}

/** Of `rate`: the rest goes straight to Kafka. */
const shareOfGateway = 1 / 3
const tillPerSecond = 1
const deletionEveryMs = 4_000
/** At its end every `delete` has to have come, also to a destination that has answered nothing for a while. */
const deletedWithinMs = 150_000

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
}: {
  /** Those without a proxy. */
  brokers: readonly string[]
  prefix: string
  gatewayOrigin: string
  partitions: number
  /** Events a second. */
  rate: number
  seed: number
  lengthMs: number
  endpoints: Endpoints
  ledger: Ledger
}): Promise<Traffic> {
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
    sendBatches({ gateway, ledger, perSecond: rate * shareOfGateway, signal }),
    deleteUsers({ writer, gateway, ledger, signal }),
    audiences.play(performance.now() + lengthMs),
  ])
  // Told at the stop; until then it must not end the process.
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

/** Since the last of the customers heard of it. */
function leastSinceDelete({ audiences }: Endpoints, user: string, atMs: number): number | undefined {
  const all = [...audiences.values()].map((customer) => customer.msSinceDelete(user, atMs))
  const known = all.filter((ms) => ms !== undefined)
  return known.length < all.length ? undefined : Math.min(...known)
}

/** A single change that goes where its key belongs: the gateway takes no others. */
function isPlainChange({ key, partition }: UpstreamRecord): boolean {
  return key !== null && partition === undefined
}

async function callWithChanges(gateway: Gateway, records: readonly UpstreamRecord[]): Promise<void> {
  const changes = records.map(({ value }): unknown => JSON.parse(value))
  await gateway.call('/v1/audience-changes', { source: 'space', changes }, bearer('space'))
}

/** Users of the source `shop` who send a little, and are to be deleted a moment later. */
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
