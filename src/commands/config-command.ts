import { describeConfig } from '../config/describe.ts'
import { type CommandTools, type Flags, type Settings, writeLine } from './command/tools.ts'

export function addConfigCommand({ command, configOf }: CommandTools): void {
  command('config', 'print the configuration in force and the origin of each value, without secrets').action(
    (flags: Flags) => printConfig(configOf(flags)),
  )
}

function printConfig(settings: Settings): void {
  const rows = describeConfig(settings)
  const widths = {
    key: Math.max(...rows.map(({ key }) => key.length)),
    value: Math.max(...rows.map(({ value }) => value.length)),
  }
  for (const { key, value, source } of rows) {
    writeLine(`${key.padEnd(widths.key)}  ${value.padEnd(widths.value)}  ${source}`)
  }
}
