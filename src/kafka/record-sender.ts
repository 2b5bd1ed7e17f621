import type { Cluster, Kafka } from 'kafkajs'
import { openPartwiseCluster } from './partwise-cluster.ts'
import { type LinkTimeouts, ProduceLink } from './produce-link.ts'
import { within } from './within.ts'

/** A record whose place is known. Texts are written as UTF-8. */
export type PlacedRecord = {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** Records of one partition, in the order in which they are written. */
export type PartitionRecords = {
  readonly topic: string
  readonly partition: number
  readonly records: readonly PlacedRecord[]
}

/** What keeps Kafka from taking records of a partition; `partition` is `undefined` for all of its topic. */
export type Obstacle = {
  readonly topic: string
  readonly partition: number | undefined
  readonly reason: string
}

/**
 * Names the connections that records go by. A broker answers the requests of one connection in their order,
 * and all partitions of a request at once. So records of a partition that may be sick take the `isolated`
 * route: they hold up no others.
 */
export type ProduceRoute = 'main' | 'isolated'

/**
 * Writes records in batches, for one that answers for each of them and has no time to wait. It never throws.
 */
export type RecordSender = {
  /**
   * Sends records, those of one partition once in `batch`. Calls `onSettled` once for each of its items:
   * without `failure` when all in-sync replicas have its records, else with what Kafka or its client said;
   * they may have been written nevertheless. That comes as soon as it is known, at the latest after three
   * seconds. Nothing is tried again.
   */
  send<T extends PartitionRecords>(
    batch: readonly T[],
    route: ProduceRoute,
    onSettled: (item: T, failure: string | undefined) => void,
  ): void
  /**
   * Looks, on connections of its own, whether Kafka could take records of these topics now: each partition
   * has a leader, and so many in-sync replicas. Gives what is in the way.
   */
  obstacles(topics: readonly string[], minInsync: number): Promise<readonly Obstacle[]>
  stop(): Promise<void>
}

/** Somebody waits for each of them. */
const timeouts: LinkTimeouts = { replicasTimeoutMs: 1_500, sendTimeoutMs: 3_000 }
const lookTimeoutMs = 3_000

/**
 * Sends by kafkajs' connections, not idempotent: one produce of a partition at a time, or what is sent again
 * after a lost answer would be out of order. `kafka` should be impatient. Rejects when no broker can be
 * reached.
 */
export async function startRecordSender(kafka: Kafka): Promise<RecordSender> {
  const links = { main: new ProduceLink(kafka, timeouts), isolated: new ProduceLink(kafka, timeouts) }
  let isStopped = false
  await links.main.connect()

  return {
    send(batch, route, onSettled) {
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
      const sent = links[route].send(batch, (item, outcome) => {
        settle(item, outcome.isWritten ? undefined : outcome.reason)
      })
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
    if (!(await within(lookTimeoutMs, looked))) return inAll(`no broker answers within ${lookTimeoutMs} ms`)
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
