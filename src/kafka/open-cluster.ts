import type { Cluster, Kafka } from 'kafkajs'

/** The brokers, through connections that nobody else uses. Each is made when it is first asked. */
export type OpenCluster = {
  readonly cluster: Cluster
  /** Waits for what is still to be answered. Never rejects. */
  close(): Promise<void>
}

/**
 * kafkajs shows its cluster to none but those who make an assigner. The consumer that this one is taken from
 * never joins a group.
 */
export function openCluster(kafka: Kafka): OpenCluster {
  let cluster: Cluster | undefined
  const consumer = kafka.consumer({
    // It is never told to a broker.
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
  return { cluster, close: () => consumer.disconnect().catch(() => undefined) }
}

const neverJoins = {
  name: 'none',
  version: 0,
  assign: () => Promise.reject(new Error('this consumer joins no group')),
  protocol: () => ({ name: 'none', metadata: Buffer.alloc(0) }),
}
