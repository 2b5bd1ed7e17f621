import { Kafka, logLevel } from 'kafkajs'
import { registerCodecs } from '../../src/kafka/wire/codecs.ts'
import { mendRequestQueue } from '../../src/kafka/wire/request-queue.ts'

/** Creates a plain client that acts as another program. It logs nothing. */
export function plainClient(brokers: readonly string[]): Kafka {
  registerCodecs()
  mendRequestQueue()
  return new Kafka({
    brokers: [...brokers],
    clientId: 'test',
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 10 },
  })
}
