import { configKeys, type Config } from './schema.ts'

type Kafka = Config['kafka']
type Key = keyof Kafka
type Mechanism = Kafka['saslMechanism']

/**
 * The settings of one kind of login. `needed`: lists of settings. Exactly one setting of each list must be
 * set. `optional`: settings that may be set.
 */
type Needs = { readonly needed: readonly (readonly Key[])[]; readonly optional: readonly Key[] }

const nothing: Needs = { needed: [], optional: [] }
const password: Needs = { needed: [['saslUsername'], ['saslPassword', 'saslPasswordFile']], optional: [] }

const needsOf: Readonly<Record<Mechanism, Needs>> = {
  none: nothing,
  plain: password,
  'scram-sha-256': password,
  'scram-sha-512': password,
  oauthbearer: {
    needed: [['oauthTokenUrl'], ['oauthClientId'], ['oauthClientSecret', 'oauthClientSecretFile']],
    optional: ['oauthScope', 'oauthAudience', 'oauthExtensions'],
  },
  'aws-iam': { needed: [['awsRegion']], optional: [] },
}

/** Finds contradictory settings of Kafka's connection and login. Returns one line per fault. */
export function loginFaults(kafka: Kafka): readonly string[] {
  const { saslMechanism: mechanism } = kafka
  const { needed, optional } = needsOf[mechanism]
  const missing = needed.filter((keys) => keys.every((key) => !isSet(kafka, key)))
  const idle = allKeys.filter((key) => isSet(kafka, key) && ![...needed.flat(), ...optional].includes(key))
  return [
    ...missing.map((keys) => {
      const [first = '', ...others] = keys.map(spelled)
      const instead = others.map((other) => `, or ${other}`).join('')
      return `${first}: is not set; expected it${instead}, since kafka.saslMechanism is ${mechanism}`
    }),
    ...idle.map(
      (key) =>
        `${spelled(key)}: is set while kafka.saslMechanism is ${mechanism}; expected a mechanism that it is for, or neither`,
    ),
    ...needed.flatMap(([first, second]) =>
      first !== undefined && second !== undefined ? eitherFault(kafka, first, second) : [],
    ),
    ...tlsFaults(kafka),
  ]
}

/** Finds settings of the login that work but are risky. Returns one line per warning. */
export function loginWarnings({ ssl, saslMechanism }: Kafka): readonly string[] {
  if (ssl || (saslMechanism !== 'plain' && saslMechanism !== 'oauthbearer')) return []
  const what = saslMechanism === 'plain' ? 'the password' : 'the token'
  return [
    `${what} of kafka.saslMechanism=${saslMechanism} goes to the brokers in the clear, where everybody on the way can read it: set kafka.ssl (SLUICE_KAFKA_SSL=true), and the port of a listener with TLS`,
  ]
}

function tlsFaults(kafka: Kafka): readonly string[] {
  const faults = [...eitherFault(kafka, 'keyPassword', 'keyPasswordFile')]
  if (isSet(kafka, 'certFile') !== isSet(kafka, 'keyFile')) {
    const [missing, given] = isSet(kafka, 'certFile')
      ? (['keyFile', 'certFile'] as const)
      : (['certFile', 'keyFile'] as const)
    faults.push(`${spelled(missing)}: is not set; expected together with kafka.${given}, or neither`)
  }
  if (kafka.ssl) return faults
  const idle = (['certFile', 'keyFile', 'serverName'] as const).filter((key) => isSet(kafka, key))
  // With OAuth, `caFile` may contain the certificate authorities of the token endpoint. So it is useful even
  // if the brokers are reached without TLS.
  if (isSet(kafka, 'caFile') && kafka.saslMechanism !== 'oauthbearer')
    return [...faults, ...idle.map(withoutTls), withoutTls('caFile')]
  return [...faults, ...idle.map(withoutTls)]
}

function withoutTls(key: Key): string {
  return `${spelled(key)}: is set while kafka.ssl is false; expected kafka.ssl (SLUICE_KAFKA_SSL=true), or neither`
}

function eitherFault(kafka: Kafka, first: Key, second: Key): readonly string[] {
  if (!isSet(kafka, first) || !isSet(kafka, second)) return []
  return [`${spelled(second)}: is set beside kafka.${first}; expected one of them`]
}

/** Finds contradictory login settings of the schema registry. Returns one line per fault. */
export function registryFaults({
  url,
  username,
  password: given,
  passwordFile,
}: Config['registry']): readonly string[] {
  const faults: string[] = []
  if (url === undefined && username !== undefined)
    faults.push(
      'registry.username (SLUICE_REGISTRY_USERNAME): is set, and registry.url is not; expected both',
    )
  if (given !== undefined && passwordFile !== undefined) {
    faults.push(
      'registry.passwordFile (SLUICE_REGISTRY_PASSWORD_FILE): is set beside registry.password; expected one of them',
    )
  }
  if ((username === undefined) !== (given === undefined && passwordFile === undefined)) {
    faults.push(
      'registry.password (SLUICE_REGISTRY_PASSWORD): expected together with registry.username, or neither',
    )
  }
  return faults
}

/** Finds contradictory settings of the delivery log. Returns one line per fault. */
export function deliveryLogFaults({
  attempts,
  index,
  clickhouse,
}: Pick<Config, 'attempts' | 'index' | 'clickhouse'>): readonly string[] {
  const faults: string[] = []
  if (attempts.userKey !== undefined && attempts.userKeyFile !== undefined) {
    faults.push(
      'attempts.userKeyFile (SLUICE_ATTEMPTS_USER_KEY_FILE): is set beside attempts.userKey; expected one of them',
    )
  }
  if (attempts.index.length > mostIndexed)
    faults.push(`attempts.index (SLUICE_ATTEMPTS_INDEX): has more than ${mostIndexed} fields; expected fewer`)
  if (index.token !== undefined && index.tokenFile !== undefined)
    faults.push('index.tokenFile (SLUICE_INDEX_TOKEN_FILE): is set beside index.token; expected one of them')
  if (clickhouse.password !== undefined && clickhouse.passwordFile !== undefined) {
    faults.push(
      'clickhouse.passwordFile (SLUICE_CLICKHOUSE_PASSWORD_FILE): is set beside clickhouse.password; expected one of them',
    )
  }
  return faults
}

/** The most fields of messages that may be indexed. Each costs a search in the body of a message. */
const mostIndexed = 8

const allKeys: readonly Key[] = [
  ...new Set(Object.values(needsOf).flatMap(({ needed, optional }) => [...needed.flat(), ...optional])),
]

function isSet(kafka: Kafka, key: Key): boolean {
  const value: unknown = kafka[key]
  return Array.isArray(value) ? value.length > 0 : value !== undefined
}

/** Returns the name of a key with its environment variable, such as `kafka.caFile (SLUICE_KAFKA_CA_FILE)`. */
function spelled(key: Key): string {
  const name = `kafka.${key}`
  return `${name} (${configKeys.find((one) => one.name === name)?.variable ?? name})`
}
