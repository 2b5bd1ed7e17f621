import type { Kafka } from 'kafkajs'
import { withAdmin } from './with-admin.ts'

/** Resolves when one of the brokers has let this client in; rejects when it has given up. */
export function reach(kafka: Kafka): Promise<void> {
  return withAdmin(kafka, () => Promise.resolve())
}
