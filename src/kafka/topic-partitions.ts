import type { Kafka } from 'kafkajs'
import { withAdmin } from './with-admin.ts'

/** How many partitions a topic has; `undefined` when there is no such topic. */
export function countPartitions(kafka: Kafka, topic: string): Promise<number | undefined> {
  return withAdmin(kafka, async (admin) => {
    // Asking for a topic that isn't there would be tried again for half a minute.
    if (!(await admin.listTopics()).includes(topic)) return undefined
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0]?.partitions.length
  })
}
