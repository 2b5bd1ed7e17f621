import type { Cluster, Kafka } from 'kafkajs'
import { openPartwiseCluster } from '../cluster/partwise-cluster.ts'
import type { OnClockSkew } from './clock-skew.ts'
import { type LinkTimeouts, ProduceLink } from './produce-link.ts'
import { within } from '../../async/within.ts'
import { messageOf } from '../wire/errors.ts'

/** A record whose partition is known. Strings are written as UTF-8. */
export type PlacedRecord = {
  readonly key: string
  readonly value: string | Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** Records of one partition, in the order in which they are written. */
export type PartitionRecords = {
  readonly topic: string
  readonly partition: number
  readonly records: readonly PlacedRecord[]
}

/**
 * The reason why Kafka doesn't take records of a partition. `partition` is `undefined` if the whole topic is
 * affected.
 */
export type Obstacle = {
  readonly topic: string
  readonly partition: number | undefined
  readonly reason: string
}

/**
 * The set of connections over which records are sent. A broker answers the requests of one connection in
 * their order, and answers for all partitions of a request together. So a failing partition delays the other
 * records on the same connection. For this reason, records of a partition that may be failing take the
 * `isolated` route.
 */
export type ProduceRoute = 'main' | 'isolated'

/**
 * A writer of records in batches, for a caller that has to report the outcome of each record and can't wait
 * long. The methods never throw.
 */
export type RecordSender = {
  /**
   * Sends each item once. `batch` has at most one item for each partition. Calls `onSettled` once for each
   * item, as soon as the outcome is known, and after three seconds at the latest. `failure` is absent when
   * all in-sync replicas have the records. Otherwise it is the error of Kafka or its client. In that case,
   * the records may have been written or not. Nothing is tried again.
   *
   * Calls `onThrottled` when the broker has announced a throttle that is longer than `mostThrottleMs`. If
   * `isSent` is true, the broker writes the records when the throttle is over, and `onSettled` is called only
   * then. Otherwise the records are never sent, and `onSettled` is called next.
   */
  send<T extends PartitionRecords>(
    batch: readonly T[],
    route: ProduceRoute,
    onSettled: (item: T, failure: string | undefined) => void,
    onThrottled: (item: T, throttleMs: number, isSent: boolean) => void,
  ): void
  /**
   * Checks whether Kafka could take records of these topics now. Uses separate connections. Each partition
   * needs a leader, and `minInsync` in-sync replicas. Returns what is missing.
   */
  obstacles(topics: readonly string[], minInsync: number): Promise<readonly Obstacle[]>
  stop(): Promise<void>
}

/** Short timeouts, because a caller waits for each of these records. */
const timeouts: LinkTimeouts = { replicasTimeoutMs: 1_500, sendTimeoutMs: 3_000 }
const lookTimeoutMs = 3_000

/**
 * Starts a sender over kafkajs' connections. The sender isn't idempotent. So the caller must have only one
 * request for a partition under way at a time. Otherwise records that are sent again after a lost answer
 * would be out of order. `kafka` should have short timeouts and few retries. Rejects when no broker can be
 * reached.
 *
 * @param mostThrottleMs the longest throttle for which a record waits, in milliseconds
 */
export async function startRecordSender(
  kafka: Kafka,
  { mostThrottleMs, onClockSkew }: { readonly mostThrottleMs: number; readonly onClockSkew?: OnClockSkew },
): Promise<RecordSender> {
  const link = (): ProduceLink => new ProduceLink(kafka, { ...timeouts, mostThrottleMs }, { onClockSkew })
  const links = { main: link(), isolated: link() }
  let isStopped = false
  await links.main.connect()

  return {
    send(batch, route, onSettled, onThrottled) {
      const open = new Set(batch)
      const settle = (item: (typeof batch)[number], failure: string | undefined): void => {
        if (open.delete(item)) onSettled(item, failure)
      }
      const settleRest = (failure: string): void => {
        for (const item of open) settle(item, failure)
      }
      if (isStopped) {
        settleRest('the sender is stopped')
        return
      }
      const sent = links[route].send(
        batch,
        (item, outcome) => settle(item, outcome.isWritten ? undefined : outcome.reason),
        {
          throttled(items, throttleMs, isSent) {
            for (const item of items) if (open.has(item)) onThrottled(item, throttleMs, isSent)
          },
        },
      )
      void sent.catch((error: unknown) => settleRest(messageOf(error)))
    },
    obstacles: (topics, minInsync) => findObstacles(kafka, topics, minInsync),
    async stop() {
      isStopped = true
      await Promise.all([links.main.close(), links.isolated.close()])
    },
  }
}

async function findObstacles(
  kafka: Kafka,
  topics: readonly string[],
  minInsync: number,
): Promise<readonly Obstacle[]> {
  const opened = openPartwiseCluster(kafka)
  const inAll = (reason: string): Obstacle[] =>
    topics.map((topic) => ({ topic, partition: undefined, reason }))
  try {
    const { cluster } = opened
    const looked = cluster.connect().then(() => cluster.addMultipleTargetTopics([...topics]))
    if (!(await within(lookTimeoutMs, looked, () => opened.readsFromMs)))
      return inAll(`no broker answers within ${lookTimeoutMs} ms`)
    return topics.flatMap((topic) => obstaclesOf(cluster, topic, minInsync))
  } catch (error) {
    return inAll(messageOf(error))
  } finally {
    void opened.close()
  }
}

function obstaclesOf(cluster: Cluster, topic: string, minInsync: number): Obstacle[] {
  const partitions = cluster.findTopicPartitionMetadata(topic)
  if (partitions.length === 0) {
    return [{ topic, partition: undefined, reason: `${topic} does not exist, or may not be written` }]
  }
  return partitions.flatMap(({ partitionId: partition, leader, isr }) => {
    if (leader < 0) return [{ topic, partition, reason: `${topic}/${partition} has no leader` }]
    if (isr.length >= minInsync) return []
    const reason = `${topic}/${partition} has ${isr.length} in-sync replicas of ${minInsync}`
    return [{ topic, partition, reason }]
  })
}
