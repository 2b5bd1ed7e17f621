import type { Kafka } from 'kafkajs'
import { withAdmin } from './with-admin.ts'

/** What tells one Kafka from another, whatever its addresses are. */
export function clusterIdOf(kafka: Kafka): Promise<string> {
  return withAdmin(kafka, async (admin) => (await admin.describeCluster()).clusterId)
}
