import type { Kafka } from 'kafkajs'
import { withAdmin } from './with-admin.ts'

/** Returns how many partitions a topic has; `undefined` where there is none, or the user may not see it. */
export function countPartitions(kafka: Kafka, topic: string): Promise<number | undefined> {
  return withAdmin(kafka, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    const count = topics[0]?.partitions.length ?? 0
    return count === 0 ? undefined : count
  })
}
