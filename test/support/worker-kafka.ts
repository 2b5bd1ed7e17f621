import type { Kafka } from 'kafkajs'
import { createKafka } from '../../src/kafka/cluster/client.ts'
import { testKafka } from './kafka.ts'
import { quietLog } from './emitted-lines.ts'

/**
 * Creates a Kafka client as the worker does. By default, it connects to the test run's Kafka. It logs
 * nothing.
 */
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
    quietLog,
  )
}
