import type { Config } from '../../config/schema.ts'
import { createKafka } from '../../kafka/cluster/client.ts'
import type { KafkaSettings } from '../../kafka/login/kafka-settings.ts'
import { LoginError, ReportedTroubles } from '../../http/login-error.ts'
import { isKafkaError, isProtocolError, OtherLogError, SilentKafkaError } from '../../kafka/wire/errors.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { refuseUnfitBroker } from './broker-check.ts'
import { unknownPlaces } from './broker-names.ts'
import { kafkaSettings } from './settings.ts'
import { StartError } from './start-error.ts'
import { type AdvertisedPlace, reach } from '../../kafka/cluster/with-admin.ts'

type Log = Parameters<typeof createKafka>[1]

/**
 * How long it may take to connect and log in to a broker, in milliseconds. A live broker needs a few
 * milliseconds. A login takes longer if its token comes from a third party.
 */
const reachWithinMs = { alone: 3_000, withTokens: 10_000 }

/**
 * Opens the client for a role that starts. Rejects within seconds, with a StartError, if no broker can be
 * reached, if the login fails, if Kafka is too old, or if Kafka doesn't give the role its rights. The process
 * then ends, and the supervisor of the process can start it again.
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
  const problem = (reason: string) => problemOf(config, troubles.unreached ?? reason, troubles)
  const impatient = clientOf(settings, log, 'impatient', troubles)
  let places: readonly AdvertisedPlace[]
  try {
    const late = (): Error => new StartError(problem(`no answer within ${withinMs / 1000} s`))
    places = await reach(impatient, { withinMs, late })
  } catch (cause) {
    if (!isOfKafka(cause)) throw cause
    if (isProtocolError(cause, unknownMechanism)) troubles.take(mechanismAdvice(settings))
    throw new StartError(problem(cause.message), { cause })
  }
  await refuseUnknownNames(config, places, log)
  await askKafka(config, refuseUnfitBroker(impatient, config, { role, settings }, log))
  return clientOf(settings, log)
}

/**
 * Throws if this machine can resolve none of the names that the brokers give themselves, because clients
 * connect to these names. If it can resolve some, the others may belong to brokers that don't run now.
 */
async function refuseUnknownNames(
  { kafka }: Config,
  places: readonly AdvertisedPlace[],
  log: Log,
): Promise<void> {
  const unknown = await unknownPlaces(places)
  if (unknown.length === 0) return
  const problem = `this machine can not resolve the name of ${unknown.join(', ')}, where brokers ask to be reached: set advertised.listeners of the brokers to names that clients can resolve, or kafka.brokers (SLUICE_KAFKA_BROKERS) to the listener that is meant for this network`
  if (unknown.length === places.length)
    throw new StartError(`Kafka answers at ${kafka.brokers.join(',')}, but ${problem}.`)
  log.warn({ brokers: unknown }, `kafka: ${problem}`)
}

const unknownMechanism: ReadonlySet<string> = new Set(['UNSUPPORTED_SASL_MECHANISM'])

function mechanismAdvice({ saslMechanism }: KafkaSettings): string {
  return `the listener takes no login by ${saslMechanism}: set kafka.saslMechanism (SLUICE_KAFKA_SASL_MECHANISM) to one that it takes`
}

/**
 * Creates a client without connecting. If a file that the settings name can't be used, throws an error that
 * says so in one line.
 */
export function clientOf(...given: Parameters<typeof createKafka>): ReturnType<typeof createKafka> {
  try {
    return createKafka(...given)
  } catch (cause) {
    if (!(cause instanceof LoginError)) throw cause
    throw new StartError(cause.message, { cause })
  }
}

/**
 * Awaits an answer of Kafka while a role starts, or the work of a command. If the client gives up, or Kafka
 * doesn't answer in time, throws a StartError that says so in one line. The line ends with `advice()`.
 */
export async function askKafka<T>(config: Config, answer: Promise<T>, advice?: () => string): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    const problem = isOfKafka(cause) ? problemOf(config, cause.message, undefined) : lossOf(cause)
    if (problem === undefined) throw cause
    throw new StartError(advice === undefined ? problem : `${problem} ${advice()}`, { cause })
  }
}

function isOfKafka(error: unknown): error is Error {
  return isKafkaError(error) || error instanceof SilentKafkaError
}

/** Returns what a topic has lost while it was read. Returns `undefined` for any other error. */
function lossOf(error: unknown): string | undefined {
  return error instanceof OtherLogError ? `${error.message}: run the command again.` : undefined
}

/**
 * Returns a text that says why Kafka can't be used. If there is a trouble, it names the setting to look at.
 * If there are several addresses, the text says what each of them did.
 */
function problemOf({ kafka }: Config, reason: string, troubles: ReportedTroubles | undefined): string {
  const where = `Kafka at ${kafka.brokers.join(',')} can not be used`
  const trouble = troubles?.last
  if (trouble !== undefined) {
    const isOne = kafka.brokers.length === 1
    return `${where}: ${isOne ? trouble : (troubles?.unreached ?? trouble)}.`
  }
  return `${where} (${reason}): set SLUICE_KAFKA_BROKERS, and SLUICE_KAFKA_SSL and SLUICE_KAFKA_SASL_… where it asks for them, to a Kafka that runs.`
}
