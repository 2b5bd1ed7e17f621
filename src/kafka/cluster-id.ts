import type { Kafka } from 'kafkajs'

/** What tells one Kafka from another, whatever its addresses are. */
export async function clusterIdOf(kafka: Kafka): Promise<string> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return (await admin.describeCluster()).clusterId
  } finally {
    await admin.disconnect()
  }
}
