import type { Config } from '../config/schema.ts'
import { createKafka } from '../kafka/client.ts'
import type { KafkaSettings } from '../kafka/kafka-settings.ts'
import { LoginError, ReportedTroubles } from '../kafka/login-error.ts'
import { isProtocolError } from '../kafka/protocol-error.ts'
import { reach } from '../kafka/reach.ts'
import type { KafkaRole } from '../kafka/kafka-roles.ts'
import { refuseUnfitBroker } from './broker-check.ts'
import { inTime } from './in-time.ts'
import { kafkaSettings } from './settings.ts'
import { StartError } from './start-error.ts'

type Log = Parameters<typeof createKafka>[1]

/**
 * A broker that lives lets a client in within milliseconds; where tokens come from others, they take their
 * time.
 */
const reachWithinMs = { alone: 2_500, withTokens: 10_000 }

/**
 * The client for a role that starts. A Kafka that lets nobody in, is too old, or doesn't let the role do its
 * work is told within seconds, as a StartError: whatever started it can do it again.
 */
export async function openKafka(
  config: Config,
  log: Log,
  role: KafkaRole,
): Promise<ReturnType<typeof createKafka>> {
  const settings = kafkaSettings(config)
  const troubles = new ReportedTroubles(() => undefined)
  const { saslMechanism } = settings
  const withinMs =
    saslMechanism === 'oauthbearer' || saslMechanism === 'aws-iam'
      ? reachWithinMs.withTokens
      : reachWithinMs.alone
  const problem = (reason: string) => problemOf(config, reason, troubles.last)
  // All at the same time: one that is away doesn't use up the time of the others.
  const reached = firstOf(
    settings.brokers.map((broker) =>
      reach(clientOf({ ...settings, brokers: [broker] }, log, 'impatient', troubles)),
    ),
  )
  try {
    await inTime(reached, withinMs, () => problem(`no answer within ${withinMs / 1000} s`))
  } catch (cause) {
    if (!isOfKafka(cause)) throw cause
    if (isProtocolError(cause, unknownMechanism)) troubles.take(mechanismAdvice(settings))
    throw new StartError(problem(cause.message), { cause })
  }
  const impatient = clientOf(settings, log, 'impatient', troubles)
  await askKafka(config, refuseUnfitBroker(impatient, config, role, settings, log))
  return clientOf(settings, log)
}

const unknownMechanism: ReadonlySet<string> = new Set(['UNSUPPORTED_SASL_MECHANISM'])

function mechanismAdvice({ saslMechanism }: KafkaSettings): string {
  return `the listener takes no login by ${saslMechanism}: set kafka.saslMechanism (SLUICE_KAFKA_SASL_MECHANISM) to one that it takes`
}

/**
 * A client that nobody has tried yet. Where a file of its settings can't be used, the error says so in one
 * line.
 */
export function clientOf(...given: Parameters<typeof createKafka>): ReturnType<typeof createKafka> {
  try {
    return createKafka(...given)
  } catch (cause) {
    if (!(cause instanceof LoginError)) throw cause
    throw new StartError(cause.message, { cause })
  }
}

/** Rejects with the first fault where all do. */
async function firstOf(all: readonly Promise<void>[]): Promise<void> {
  try {
    await Promise.any(all)
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error
  }
}

/**
 * Awaits what Kafka is asked for at the start. Where its client has given up, the error says so in one line.
 */
export async function askKafka<T>(config: Config, answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    if (!isOfKafka(cause)) throw cause
    throw new StartError(problemOf(config, cause.message, undefined), { cause })
  }
}

function isOfKafka(error: unknown): error is Error {
  return error instanceof Error && error.name.startsWith('KafkaJS')
}

/** `trouble` names the setting to look at. */
function problemOf({ kafka }: Config, reason: string, trouble: string | undefined): string {
  const where = `Kafka at ${kafka.brokers.join(',')} can not be used`
  if (trouble !== undefined) return `${where}: ${trouble}.`
  return `${where} (${reason}): set SLUICE_KAFKA_BROKERS, and SLUICE_KAFKA_SSL and SLUICE_KAFKA_SASL_… where it asks for them, to a Kafka that runs.`
}
