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
