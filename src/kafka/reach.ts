import type { Kafka } from 'kafkajs'
import { withAdmin } from './with-admin.ts'

/** Resolves once this client has connected and logged in to a broker. Rejects when the client gives up. */
export function reach(kafka: Kafka): Promise<void> {
  return withAdmin(kafka, () => Promise.resolve())
}
