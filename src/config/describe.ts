import type { ConfigSources } from './read.ts'
import { configKeys, type Config } from './schema.ts'

export type DescribedKey = {
  /** The name of the key, such as `kafka.brokers`. */
  readonly key: string
  /**
   * The value, as it would be written in an environment variable. A secret is shown as `(set)` or `(not
   * set)`, and an empty value as `(none)`.
   */
  readonly value: string
  /** The origin of the value: `default`, `env SLUICE_KAFKA_BROKERS` or `flag --kafka-brokers`. */
  readonly source: string
}

/**
 * Returns the configuration in force with the origin of each value, for `sluice config` and the first log
 * line. Shows no secret.
 */
export function describeConfig({
  config,
  sources,
}: {
  config: Config
  sources: ConfigSources
}): readonly DescribedKey[] {
  const sections: Readonly<Record<string, Readonly<Record<string, unknown>>>> = config
  return configKeys.map(({ name, section, property, key }) => {
    const value = sections[section]?.[property]
    const shown = key.isSecret ? secretText(value) : key.format(value) || '(none)'
    return { key: name, value: shown, source: sources.get(name) ?? 'default' }
  })
}

/**
 * Returns the settings that differ from their defaults, by environment variable, as `readConfig` would read
 * them. Secrets are left out.
 */
export function settingsOf(config: Config): Readonly<Record<string, string>> {
  const sections: Readonly<Record<string, Readonly<Record<string, unknown>>>> = config
  const settings: Record<string, string> = {}
  for (const { variable, section, property, key } of configKeys) {
    const value = sections[section]?.[property]
    const text = key.isSecret || value === undefined ? '' : key.format(value)
    if (text !== '' && text !== key.format(key.defaultValue)) settings[variable] = text
  }
  return settings
}

function secretText(value: unknown): string {
  return value === undefined ? '(not set)' : '(set)'
}
