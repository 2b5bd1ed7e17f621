import process from 'node:process'
import { groupIdFor } from './kafka-keys.ts'
import { deliveryLogFaults, loginFaults, registryFaults } from './rules.ts'
import { nearest } from '../catalog/nearest.ts'
import { configKeys, type Config, type ConfigKey } from './schema.ts'

/**
 * The origin of each value, by the name of its key: `default`, `env SLUICE_KAFKA_BROKERS` or
 * `flag --kafka-brokers`.
 */
export type ConfigSources = ReadonlyMap<string, string>

export type ConfigInput = {
  /** The environment variables. Default: the environment of the process. */
  env?: Readonly<Record<string, string | undefined>>
  /**
   * The result of commander's `opts()`. The flags of `configFlags()` must be registered without defaults.
   * Options that aren't such flags are ignored.
   */
  flags?: Readonly<Record<string, unknown>>
  /** Values that stand in for the defaults, by environment variable. `origin`: where they are from. */
  standIns?: { readonly origin: string; readonly values: Readonly<Record<string, string>> }
}

export type ReadConfig =
  | { ok: true; config: Config; sources: ConfigSources }
  /**
   * `message` has a first line, and below it a line for each fault. It contains no secret. `areFlags` is true
   * if each fault is the value of a flag.
   */
  | { ok: false; message: string; areFlags: boolean }

/**
 * Reads the configuration. A flag overrules an environment variable, and a variable overrules the default. An
 * empty variable counts as unset.
 */
export function readConfig({ env = process.env, flags = {}, standIns }: ConfigInput = {}): ReadConfig {
  const faults: string[] = []
  let flagFaults = 0
  const faultySections = new Set<string>()
  const sources = new Map<string, string>()
  const values = new Map<string, unknown>()
  for (const configKey of configKeys) {
    const given = givenFor(configKey, env, flags) ?? standInFor(configKey, standIns)
    sources.set(configKey.name, given?.source ?? 'default')
    const read = given === undefined ? { value: configKey.key.defaultValue } : configKey.key.parse(given.text)
    if (read !== undefined) {
      values.set(configKey.name, read.value)
    } else if (given !== undefined) {
      faults.push(valueFault(configKey, given))
      if (given.source.startsWith('flag ')) flagFaults++
      faultySections.add(configKey.section)
    }
  }
  if (sources.get('kafka.groupId') === 'default')
    values.set('kafka.groupId', groupIdFor(String(values.get('kafka.topicPrefix'))))
  const config = toConfig(values)
  if (!faultySections.has('kafka')) faults.push(...loginFaults(config.kafka))
  if (!faultySections.has('topics')) faults.push(...replicationFaults(config.topics))
  if (!faultySections.has('registry')) faults.push(...registryFaults(config.registry))
  if (!faultySections.has('attempts') && !faultySections.has('index'))
    faults.push(...deliveryLogFaults(config))
  faults.push(...unknownVariables(env))
  if (faults.length === 0) return { ok: true, config, sources }

  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  return {
    ok: false,
    areFlags: flagFaults === faults.length,
    message: `The configuration has ${count}:\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
  }
}

/** Returns only those environment variables that a catalog may read, as in `${CATALOG_X}`. */
export function catalogVariables(env: ConfigInput['env'] = process.env): Readonly<Record<string, string>> {
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith('CATALOG_') && value !== undefined) variables[name] = value
  }
  return variables
}

type Given = { text: string; source: string }

function givenFor(
  { variable, flag, option, key }: ConfigKey,
  env: NonNullable<ConfigInput['env']>,
  flags: NonNullable<ConfigInput['flags']>,
): Given | undefined {
  const fromFlag = flag === undefined ? undefined : flags[option]
  if (fromFlag !== undefined) {
    // If a flag was given without a value, commander returns `true` for it.
    return {
      text: typeof fromFlag === 'string' ? fromFlag : JSON.stringify(fromFlag),
      source: `flag ${flag}`,
    }
  }
  for (const name of [variable, ...(key.alias === undefined ? [] : [key.alias])]) {
    const text = env[name]
    // In Kubernetes, a Service with the name sluice-gateway creates a SLUICE_GATEWAY_PORT of its own.
    if (text !== undefined && text !== '' && !isServiceLink(name, text))
      return { text, source: `env ${name}` }
  }
  return undefined
}

function standInFor({ variable }: ConfigKey, standIns: ConfigInput['standIns']): Given | undefined {
  const text = standIns?.values[variable]
  return standIns === undefined || text === undefined ? undefined : { text, source: standIns.origin }
}

/** Returns true if a variable or a flag gives a value for a setting. */
export function isGiven(
  name: string,
  { env = process.env, flags = {} }: Pick<ConfigInput, 'env' | 'flags'>,
): boolean {
  const configKey = configKeys.find((one) => one.name === name)
  return configKey !== undefined && givenFor(configKey, env, flags) !== undefined
}

function valueFault({ name, variable, key }: ConfigKey, { text, source }: Given): string {
  const shown = key.isSecret ? 'a value that is not shown' : JSON.stringify(shortened(withoutLogin(text)))
  return `${name} (${variable}): ${source} gives ${shown}; expected ${key.expected}`
}

/**
 * Hides a login and a query, which may have a password too. Somebody may have written them into a setting in
 * which they aren't allowed. A login may contain any character, so everything before the last `@` counts as
 * part of it.
 */
function withoutLogin(text: string): string {
  return text.replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, '$1…@').replace(/\?.*/s, '?…')
}

function shortened(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

/**
 * Puts the values into their sections. The result has the fields of `Config`, because both are made from the
 * table of keys. If a value is faulty, its field is missing, and `readConfig` doesn't return the result.
 */
function toConfig(values: ReadonlyMap<string, unknown>): Config {
  const config: Record<string, Record<string, unknown>> = {}
  for (const { name, section, property } of configKeys) {
    const entries = (config[section] ??= {})
    if (values.has(name)) entries[property] = values.get(name)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- TypeScript can't check a mapped type that a loop fills
  return config as unknown as Config
}

function replicationFaults({ minInsync, replication, development }: Config['topics']): readonly string[] {
  if (development || minInsync <= replication) return []
  return [
    `topics.minInsync (SLUICE_TOPICS_MIN_INSYNC): is ${minInsync}; expected at most topics.replication, which is ${replication}`,
  ]
}

/**
 * The environment variable that names the folder for the downloads of `src/development`. It isn't part of the
 * configuration.
 */
const developmentVariable = 'SLUICE_CACHE_DIR'

/**
 * Returns a fault for each unknown environment variable that begins with `SLUICE_`. Otherwise nobody would
 * notice a misspelled variable, and the default would stay in force.
 */
function unknownVariables(env: NonNullable<ConfigInput['env']>): readonly string[] {
  const known = configKeys.map(({ variable }) => variable)
  return Object.entries(env).flatMap(([name, value]) => {
    if (!name.startsWith('SLUICE_') || value === undefined) return []
    if (known.includes(name) || name === developmentVariable || isServiceLink(name, value)) return []
    const meant = nearest(name, known)
    return [
      `${name}: is not a variable of Sluice; ${meant === undefined ? 'remove it' : `did you mean ${meant}?`}`,
    ]
  })
}

/**
 * Returns true for a variable that Kubernetes creates for a Service in the pod's namespace. Services with the
 * names `sluice` and `sluice-admin` create `SLUICE_SERVICE_HOST`, `SLUICE_ADMIN_PORT=tcp://10.0.0.1:80` and
 * more.
 */
function isServiceLink(name: string, value: string): boolean {
  return (
    /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$/.test(name) ||
    /_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name) ||
    (name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value))
  )
}
