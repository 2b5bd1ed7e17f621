import type { Kafka } from 'kafkajs'

/** How many partitions a topic has; `undefined` when there is no such topic. */
export async function countPartitions(kafka: Kafka, topic: string): Promise<number | undefined> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    // Asking for a topic that isn't there would be tried again for half a minute.
    if (!(await admin.listTopics()).includes(topic)) return undefined
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0]?.partitions.length
  } finally {
    await admin.disconnect()
  }
}
