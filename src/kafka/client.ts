import { Kafka, type KafkaConfig, type LogEntry, logLevel, type SASLOptions } from 'kafkajs'
import { registerCodecs } from './codecs.ts'

/** How to reach the cluster. */
export type KafkaSettings = {
  brokers: readonly string[]
  clientId: string
  ssl: boolean
  saslMechanism: 'none' | 'plain' | 'scram-sha-256' | 'scram-sha-512'
  saslUsername: string | undefined
  saslPassword: string | undefined
}

type KafkaLog = {
  warn(fields: object, message: string): void
  debug(fields: object, message: string): void
}

/**
 * One client for a process. kafkajs calls much an error that it goes on to cure by itself; its errors and
 * warnings become warnings here, and all else is for debugging.
 */
export function createKafka(settings: KafkaSettings, log: KafkaLog): Kafka {
  registerCodecs()
  const config: KafkaConfig = {
    brokers: [...settings.brokers],
    clientId: settings.clientId,
    ssl: settings.ssl,
    connectionTimeout: 5_000,
    requestTimeout: 15_000,
    // kafkajs changes these defaults under NODE_ENV=test, so they are all given.
    retry: { initialRetryTime: 200, maxRetryTime: 5_000, factor: 0.2, multiplier: 2, retries: 10 },
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => writeLog(log, entry),
  }
  const sasl = saslOf(settings)
  if (sasl !== undefined) config.sasl = sasl
  return new Kafka(config)
}

function saslOf(settings: KafkaSettings): SASLOptions | undefined {
  const { saslMechanism: mechanism, saslUsername: username = '', saslPassword: password = '' } = settings
  return mechanism === 'none' ? undefined : { mechanism, username, password }
}

function writeLog(log: KafkaLog, { level, namespace, log: entry }: LogEntry): void {
  const { message, timestamp: _timestamp, logger: _logger, stack: _stack, ...fields } = entry
  const text = `kafka: ${namespace}: ${message}`
  if (level === logLevel.ERROR || level === logLevel.WARN) log.warn(fields, text)
  else log.debug(fields, text)
}
