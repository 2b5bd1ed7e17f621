import type { Kafka } from 'kafkajs'
import { openPartwiseCluster } from '../cluster/partwise-cluster.ts'
import type { OnClockSkew } from './clock-skew.ts'
import { type Obstacle, obstaclesOf } from './obstacle.ts'
import type { LinkTimeouts } from './produce-link.ts'
import { RoutedLinks } from './routed-links.ts'
import type { Route } from '../../async/partition-dispatch.ts'
import { within } from '../../async/within.ts'
import type { PartitionRecords } from '../../message/records.ts'
import { messageOf } from '../wire/errors.ts'

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
    route: Route,
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
 * Starts a sender. The caller must have only one request for a partition under way at a time (see
 * `RoutedLinks`). `kafka` should have short timeouts and few retries. Rejects when no broker can be reached.
 *
 * @param mostThrottleMs the longest throttle for which a record waits, in milliseconds
 */
export async function startRecordSender(
  kafka: Kafka,
  { mostThrottleMs, onClockSkew }: { readonly mostThrottleMs: number; readonly onClockSkew?: OnClockSkew },
): Promise<RecordSender> {
  const links = new RoutedLinks(kafka, { ...timeouts, mostThrottleMs }, { onClockSkew })
  await links.main.connect()
  return {
    send(batch, route, onSettled, onThrottled) {
      void links
        .on(route)
        .send(batch, (item, outcome) => onSettled(item, outcome.isWritten ? undefined : outcome.reason), {
          throttled(items, throttleMs, isSent) {
            for (const item of items) onThrottled(item, throttleMs, isSent)
          },
        })
    },
    obstacles: (topics, minInsync) => findObstacles(kafka, topics, minInsync),
    stop: () => links.close(),
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
    return topics.flatMap((topic) => obstaclesOf(topic, cluster.findTopicPartitionMetadata(topic), minInsync))
  } catch (error) {
    return inAll(messageOf(error))
  } finally {
    void opened.close()
  }
}
