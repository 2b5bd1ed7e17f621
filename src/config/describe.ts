import type { ConfigSources } from './read.ts'
import { configKeys, type Config } from './schema.ts'

export type DescribedKey = {
  /** `kafka.brokers` */
  readonly key: string
  /** As it is written in a variable; `(set)` or `(not set)` for a secret, `(none)` for what is empty. */
  readonly value: string
  /** `default`, `env SLUICE_KAFKA_BROKERS`, `flag --kafka-brokers` */
  readonly source: string
}

/**
 * What the process runs with, and why: for `sluice config` and the first line of the log. Shows no secret.
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

function secretText(value: unknown): string {
  return value === undefined ? '(not set)' : '(set)'
}
