import { nearest } from '../catalog/nearest.ts'
import { describeConfig, type DescribedKey } from '../config/describe.ts'
import { WrongUseError } from '../roles/start/start-error.ts'
import { type CommandTools, type Flags, type Settings, writeLine } from './command/tools.ts'

export function addConfigCommand({ command, configOf }: CommandTools): void {
  command('config', 'print the configuration in force and the origin of each value, without secrets')
    .argument('[names...]', 'only these keys, variables or sections, such as kafka.brokers or retry')
    .option('--json', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
Examples:
  sluice config
  sluice config kafka.brokers SLUICE_RETRY_LADDER
  sluice config delivery --json`,
    )
    .action((names: readonly string[], flags: Flags) =>
      printConfig(wantedKeys(configOf(flags), names), flags['json'] === true),
    )
}

function wantedKeys(settings: Settings, names: readonly string[]): readonly DescribedKey[] {
  const keys = describeConfig(settings)
  const wanted = names.flatMap((name) => {
    const found = keys.filter(({ key, variable }) =>
      [key, variable, key.slice(0, key.indexOf('.'))].includes(name),
    )
    if (found.length === 0) throw new WrongUseError(unknownText(name, keys))
    return found
  })
  return names.length === 0 ? keys : wanted
}

function unknownText(name: string, keys: readonly DescribedKey[]): string {
  const meant = nearest(
    name,
    keys.flatMap(({ key, variable }) => [key, variable]),
  )
  const advice = meant === undefined ? '`sluice config` lists all of them' : `did you mean ${meant}?`
  return `${name} is no setting; ${advice}`
}

function printConfig(rows: readonly DescribedKey[], isJson: boolean): void {
  if (isJson) {
    for (const row of rows)
      writeLine(JSON.stringify({ ...row, value: row.value === '(none)' ? '' : row.value }))
    return
  }
  const widths = {
    key: Math.max(...rows.map(({ key }) => key.length)),
    value: Math.max(...rows.map(({ value }) => value.length)),
  }
  for (const { key, value, source } of rows) {
    writeLine(`${key.padEnd(widths.key)}  ${value.padEnd(widths.value)}  ${source}`)
  }
}
