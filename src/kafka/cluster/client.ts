import { Kafka, type KafkaConfig, type LogEntry, logLevel } from 'kafkajs'
import { noteClient } from './client-notes.ts'
import { registerCodecs } from '../wire/codecs.ts'
import type { KafkaSettings } from '../login/kafka-settings.ts'
import { ReportedTroubles } from '../../http/login-error.ts'
import { mendAnswerBuffers } from '../wire/answer-reads.ts'
import { mendRequestQueue } from '../wire/request-queue.ts'
import { createLogin } from '../login/sasl.ts'
import { createSocketFactory } from '../login/sockets.ts'

export { throttledSeconds } from '../wire/throttle.ts'

type KafkaLog = {
  warn(fields: object, message: string): void
  debug(fields: object, message: string): void
  error?(fields: object, message: string): void
  isLevelEnabled?(level: 'warn'): boolean
}

/**
 * How long the client tries a request before it gives up. A `patient` client tries for half a minute or more,
 * because its caller would repeat a failed request anyway. An `impatient` client tries for a few seconds,
 * because somebody waits for its caller. All timeouts and retries are set here, because kafkajs changes its
 * defaults under NODE_ENV=test.
 */
export type Patience = 'patient' | 'impatient'

const patiences = {
  patient: {
    connectionTimeout: 5_000,
    requestTimeout: 15_000,
    retry: { initialRetryTime: 200, maxRetryTime: 5_000, factor: 0.2, multiplier: 2, retries: 10 },
  },
  impatient: {
    connectionTimeout: 2_000,
    requestTimeout: 4_000,
    retry: { initialRetryTime: 100, maxRetryTime: 800, factor: 0.2, multiplier: 2, retries: 3 },
  },
} satisfies Record<Patience, Partial<KafkaConfig>>

/**
 * Creates the Kafka client of a process. kafkajs logs many faults as errors although it recovers from them by
 * itself. So its errors and warnings are logged as warnings here. Its other lines are logged at the debug
 * level. `troubles` collects the reasons why connections can't be made or logins fail. Throws a LoginError if
 * a file that the settings name can't be used.
 */
export function createKafka(
  settings: KafkaSettings,
  log: KafkaLog,
  patience: Patience = 'patient',
  troubles: ReportedTroubles = new ReportedTroubles((message) => log.warn({}, `kafka: ${message}`)),
): Kafka {
  registerCodecs()
  mendRequestQueue()
  mendAnswerBuffers()
  const config: KafkaConfig = {
    brokers: [...settings.brokers],
    clientId: settings.clientId,
    ssl: settings.ssl,
    socketFactory: createSocketFactory(settings, troubles),
    ...patiences[patience],
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => writeLog(log, entry),
  }
  const sasl = createLogin(settings, troubles)
  if (sasl !== undefined) config.sasl = sasl
  const kafka = new Kafka(config)
  noteClient(kafka, {
    retry: patiences[patience].retry,
    addresses: settings.brokers,
    troubles,
    tellThrottle: (message, ms) => tellThrottle(log, `kafka: ${message}`, ms),
  })
  return kafka
}

/**
 * Logs a throttle. Commands log only errors. A long throttle is an error for them, because somebody waits for
 * the command, and has to know why it stands still.
 */
function tellThrottle(log: KafkaLog, message: string, ms: number): void {
  const isOfCommand = log.isLevelEnabled?.('warn') === false
  if (isOfCommand && ms >= longThrottleMs) log.error?.({}, message)
  else log.warn({}, message)
}

const longThrottleMs = 2_000

function writeLog(log: KafkaLog, { level, namespace, log: entry }: LogEntry): void {
  const { message, timestamp: _timestamp, logger: _logger, stack: _stack, ...fields } = entry
  const text = `kafka: ${namespace}: ${message}`
  if (level === logLevel.ERROR || level === logLevel.WARN) log.warn(fields, text)
  else log.debug(fields, text)
}
