import type { Admin, Kafka } from 'kafkajs'
import { openAdmin } from './open-admin.ts'

/** Calls `work` with an admin client of its own, and closes the client afterwards. */
export async function withAdmin<T>(kafka: Kafka, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = openAdmin(kafka)
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

/** Resolves once this client has connected and logged in to a broker. Rejects when the client gives up. */
export function reach(kafka: Kafka): Promise<void> {
  return withAdmin(kafka, () => Promise.resolve())
}

/** Returns the id of a Kafka cluster. Two clusters have different ids, even if they have the same address. */
export function clusterIdOf(kafka: Kafka): Promise<string> {
  return withAdmin(kafka, async (admin) => (await admin.describeCluster()).clusterId)
}
