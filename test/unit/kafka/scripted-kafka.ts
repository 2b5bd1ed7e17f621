import type { Kafka } from 'kafkajs'
import { ByteWriter } from '../../../src/kafka/wire/bytes.ts'
import type { ClusterView } from '../../../src/kafka/cluster/cluster-view.ts'
import type { WireBroker } from '../../../src/kafka/wire/wire-request.ts'

export const nothing = () => Promise.resolve()

/**
 * Returns a client that gives out these clusters, one for each call of `openCluster`. As with kafkajs,
 * partition assigners get the cluster.
 */
export function kafkaOf(clusters: readonly object[]): Kafka {
  const left = [...clusters]
  const kafka = {
    consumer({ partitionAssigners }: { partitionAssigners: ((given: object) => void)[] }) {
      const cluster = {
        // The brokers of a script need no connections, so nothing may open one.
        connectionPoolBuilder: { build: () => Promise.reject(new Error('the script connects to nothing')) },
        brokerPool: { metadata: null },
        connect: nothing,
        ...left.shift(),
      }
      for (const create of partitionAssigners) create({ cluster })
      return { disconnect: nothing }
    },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tested code uses no other members
  return kafka as unknown as Kafka
}

type Pushed = { entry: { apiKey: number; resolve(answer: { payload: Buffer }): void } }

export const apis = { fetch: 1, listOffsets: 2, offsetFetch: 9, findCoordinator: 10, epochEnds: 23 } as const

/** The highest version of each request that the brokers of a script know. */
const versions = new Map<number, number>([
  [apis.fetch, 11],
  [apis.listOffsets, 5],
  [apis.offsetFetch, 5],
  [apis.findCoordinator, 2],
  [apis.epochEnds, 3],
])

/**
 * Returns a broker that answers the requests for which `answerOf` returns an answer. `onRequest` gets all
 * requests, and may answer them itself.
 */
export function brokerOf(
  answerOf: (apiKey: number) => Promise<Buffer> | undefined,
  onRequest: (entry: Pushed['entry']) => void = () => undefined,
): WireBroker {
  const connection = {
    clientId: 'sluice',
    sasl: null,
    connectionStatus: 'connected',
    socket: {},
    nextCorrelationId: () => 1,
    requestQueue: {
      push({ entry }: Pushed) {
        onRequest(entry)
        void answerOf(entry.apiKey)?.then((payload) => entry.resolve({ payload }))
      },
    },
  }
  const broker = {
    versions: Object.fromEntries(
      [...versions].map(([apiKey, maxVersion]) => [apiKey, { minVersion: 0, maxVersion }]),
    ),
    connectionPool: { getConnectionByRequest: async () => connection, pool: [connection] },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tested code uses no other members
  return broker as unknown as WireBroker
}

/** A log of one partition, as its leader reports it. */
export type ScriptedLog = { topic: string; partition: number; errorCode: number; end: number }

/**
 * Returns the broker that leads one partition. The broker says how far the log goes, and answers no other
 * request. `ready` is awaited before each answer.
 */
export function leaderOf(log: ScriptedLog, ready: () => Promise<void> = nothing): WireBroker {
  function answer(apiKey: number): Buffer {
    const { topic, partition, errorCode, end } = log
    const out = new ByteWriter().int32(0).int32(1).string(topic).int32(1)
    if (apiKey === apis.listOffsets) out.int32(partition).int16(errorCode).int64(-1).int64(end).int32(0)
    else out.int16(errorCode).int32(partition).int32(0).int64(end)
    return out.finished()
  }
  return brokerOf((apiKey) =>
    apiKey === apis.listOffsets || apiKey === apis.epochEnds ? ready().then(() => answer(apiKey)) : undefined,
  )
}

/** A view of a cluster with one broker, whose leader a test can take away and give back. */
export function viewOf(broker: WireBroker): ClusterView & { lead(leaderEpoch: number | undefined): void } {
  let epoch: number | undefined = 0
  const listeners = new Set<() => void>()
  return {
    connect: nothing,
    leaderOf: () => (epoch === undefined ? undefined : { nodeId: 1, leaderEpoch: epoch }),
    topicIdOf: () => undefined,
    partitionsOf: () => 1,
    troubleOf: () => undefined,
    broker: () => Promise.resolve(broker),
    refresh: nothing,
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: nothing,
    lead(leaderEpoch) {
      epoch = leaderEpoch
      for (const listener of listeners) listener()
    },
  }
}
