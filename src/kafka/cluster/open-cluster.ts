import type { Cluster, Kafka } from 'kafkajs'
import { notesOf } from './client-notes.ts'
import { type ConnectionPoolBuilder, Connections } from '../wire/connections.ts'
import { replaceSeeds, type SeededPool } from './seeds.ts'
import { noteThrottle } from '../wire/throttle.ts'

/**
 * A cluster client with connections that nobody else uses. The connection to a broker is opened when the
 * first request is sent to this broker.
 */
export type OpenCluster = {
  readonly cluster: Cluster
  /**
   * The time from which all brokers read the connections of this client again, by `performance.now`. It lies
   * in the past unless a broker throttles this client.
   */
  readonly readsFromMs: number
  /**
   * Waits a few seconds at most for the answers that are still to come, and closes the connections. Never
   * rejects.
   */
  close(): Promise<void>
  /** Rejects all requests under way with this reason, and closes the connections at once. */
  cut(reason: string): void
}

/**
 * Opens a cluster client. kafkajs passes its `Cluster` object only to partition assigners. So this function
 * creates a consumer that never joins a group, and takes the object from that consumer's partition assigner.
 */
export function openCluster(kafka: Kafka): OpenCluster {
  let cluster: Cluster | undefined
  const consumer = kafka.consumer({
    // The consumer never sends this group id to a broker.
    groupId: 'none',
    allowAutoTopicCreation: false,
    partitionAssigners: [
      (given) => {
        cluster = given.cluster
        return neverJoins
      },
    ],
  })
  if (cluster === undefined) throw new Error('kafkajs made a consumer without its assigner')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares only a part of its cluster
  const { connectionPoolBuilder, brokerPool } = cluster as unknown as Internals
  const notes = notesOf(kafka)
  const connections = new Connections(connectionPoolBuilder, (throttle) => {
    if (notes !== undefined) noteThrottle(throttle, notes.tellThrottle)
  })
  if (notes !== undefined) replaceSeeds(brokerPool, connectionPoolBuilder, { connections, notes })
  return {
    cluster,
    get readsFromMs() {
      return connections.readsFromMs
    },
    async close() {
      await consumer.disconnect().catch(() => undefined)
      connections.cut('the client was closed')
    },
    cut: (reason) => connections.cut(reason),
  }
}

type Internals = { readonly connectionPoolBuilder: ConnectionPoolBuilder; readonly brokerPool: SeededPool }

const neverJoins = {
  name: 'none',
  version: 0,
  assign: () => Promise.reject(new Error('this consumer joins no group')),
  protocol: () => ({ name: 'none', metadata: Buffer.alloc(0) }),
}
