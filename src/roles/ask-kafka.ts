import type { Config } from '../config/schema.ts'
import { createKafka, type KafkaSettings } from '../kafka/client.ts'
import { reach } from '../kafka/reach.ts'
import { inTime } from './in-time.ts'
import { kafkaSettings } from './settings.ts'
import { StartError } from './start-error.ts'

type Log = Parameters<typeof createKafka>[1]

/** A broker that lives lets a client in within milliseconds. */
const reachWithinMs = 2_500

/** The client for a role that starts: one whose Kafka lets nobody in says so within seconds, whatever started it can do it again. */
export async function openKafka(
  config: Config,
  log: Log,
  settings: KafkaSettings = kafkaSettings(config),
): Promise<ReturnType<typeof createKafka>> {
  // All at the same time: one that is away doesn't use up the time of the others.
  const reached = firstOf(
    settings.brokers.map((broker) =>
      reach(createKafka({ ...settings, brokers: [broker] }, log, 'impatient')),
    ),
  )
  await askKafka(
    config,
    inTime(reached, reachWithinMs, () => problemOf(config, `no answer within ${reachWithinMs / 1000} s`)),
  )
  return createKafka(settings, log)
}

/** Rejects with the first fault where all do. */
async function firstOf(all: readonly Promise<void>[]): Promise<void> {
  try {
    await Promise.any(all)
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error
  }
}

/** Awaits what Kafka is asked for at the start. Where its client has given up, the error says so in one line. */
export async function askKafka<T>(config: Config, answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    if (!(cause instanceof Error && cause.name.startsWith('KafkaJS'))) throw cause
    throw new StartError(problemOf(config, cause.message), { cause })
  }
}

function problemOf({ kafka }: Config, reason: string): string {
  return `Kafka at ${kafka.brokers.join(',')} can not be used (${reason}): set SLUICE_KAFKA_BROKERS, and SLUICE_KAFKA_SSL and SLUICE_KAFKA_SASL_… where it asks for them, to a Kafka that runs.`
}
