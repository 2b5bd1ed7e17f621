import { configKeys } from './schema.ts'

export type ConfigFlag = {
  /**
   * `--kafka-brokers <list>`; `--kafka-ssl [true|false]`, where the flag alone means true. As commander takes
   * it.
   */
  readonly flags: string
  /** Its name in commander's `opts()`: what `readConfig` looks for. */
  readonly option: string
  readonly description: string
}

/**
 * The flags to register, without defaults: an option that is always there would win over the variables.
 * Secrets have none, since every process of the machine can read the arguments.
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
