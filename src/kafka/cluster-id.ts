import type { Kafka } from 'kafkajs'
import { withAdmin } from './with-admin.ts'

/** Returns the id of a Kafka cluster. Two clusters have different ids, even if they have the same address. */
export function clusterIdOf(kafka: Kafka): Promise<string> {
  return withAdmin(kafka, async (admin) => (await admin.describeCluster()).clusterId)
}
