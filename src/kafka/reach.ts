import type { Kafka } from 'kafkajs'
import { withAdmin } from './with-admin.ts'

/** Resolves once a broker has let this client in. Rejects when the client has given up. */
export function reach(kafka: Kafka): Promise<void> {
  return withAdmin(kafka, () => Promise.resolve())
}
