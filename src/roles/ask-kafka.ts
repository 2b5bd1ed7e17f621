import type { Config } from '../config/schema.ts'
import { StartError } from './start-error.ts'

/** Awaits the first thing that Kafka is asked for. Where its client has given up, the error says so in one line. */
export async function askKafka<T>({ kafka }: Config, answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    if (!(cause instanceof Error && cause.name.startsWith('KafkaJS'))) throw cause
    throw new StartError(`Kafka at ${kafka.brokers.join(',')} can not be used: ${cause.message}`, { cause })
  }
}
