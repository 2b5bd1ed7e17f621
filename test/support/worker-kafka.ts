import type { Kafka } from 'kafkajs'
import { createKafka } from '../../src/kafka/client.ts'
import { testKafka } from './kafka.ts'

/** The client as the worker makes it, of the run's Kafka or of other brokers; it logs nothing. */
export function workerKafka({
  brokers = testKafka(),
  clientId = 'sluice',
}: { brokers?: readonly string[]; clientId?: string } = {}): Kafka {
  return createKafka(
    {
      brokers,
      clientId,
      ssl: false,
      saslMechanism: 'none',
      saslUsername: undefined,
      saslPassword: undefined,
    },
    { warn() {}, debug() {} },
  )
}
