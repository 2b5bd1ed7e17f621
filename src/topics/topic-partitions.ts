import type { Kafka } from 'kafkajs'
import { withAdmin } from '../kafka/cluster/with-admin.ts'

/**
 * Returns the number of a topic's partitions. Returns `undefined` if the topic doesn't exist, or if the user
 * may not see it.
 */
export function countPartitions(kafka: Kafka, topic: string): Promise<number | undefined> {
  return withAdmin(kafka, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    const count = topics[0]?.partitions.length ?? 0
    return count === 0 ? undefined : count
  })
}

/** Returns those of the topics that don't exist, or that the user may not see. */
export function missingTopics(kafka: Kafka, wanted: readonly string[]): Promise<readonly string[]> {
  return withAdmin(kafka, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [...wanted] })
    return topics.filter(({ partitions }) => partitions.length === 0).map(({ name }) => name)
  })
}
