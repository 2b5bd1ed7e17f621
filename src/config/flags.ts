import { configKeys } from './schema.ts'

export type ConfigFlag = {
  /**
   * The flag in commander's syntax, such as `--kafka-brokers <list>`. In `--kafka-ssl [true|false]`, the flag
   * without a value means true.
   */
  readonly flags: string
  /** The flag's name in commander's `opts()`, by which `readConfig` finds it. */
  readonly option: string
  readonly description: string
}

/**
 * Returns the flags to register. They have no defaults, because a flag with a default would always be present
 * and would overrule the environment variable. Secrets have no flag, because every process of the machine can
 * read the arguments.
 */
export function configFlags(): readonly ConfigFlag[] {
  return configKeys.flatMap(({ flag, option, variable, key }) => {
    if (flag === undefined) return []
    const isBoolean = typeof key.defaultValue === 'boolean'
    const value = isBoolean ? `[${key.placeholder}]` : `<${key.placeholder}>`
    const defaultText = key.format(key.defaultValue)
    const preset = defaultText === '' ? '' : `, default ${defaultText}`
    return [{ flags: `${flag} ${value}`, option, description: `${key.description} (${variable}${preset})` }]
  })
}
