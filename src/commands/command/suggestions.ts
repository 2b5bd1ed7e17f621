import type { Command } from 'commander'
import { nearest } from '../../catalog/nearest.ts'
import { configKeys } from '../../config/schema.ts'

/** What the first arguments of a command line name. */
export type Named = {
  readonly found: Command
  /** The argument that names no command of `found`. */
  readonly unknown?: string
  /** True if one of the arguments is `help`, at the place of a command. */
  readonly isHelp: boolean
}

/**
 * Finds what the first arguments name. Looks at no argument after a flag, or after a command that has no
 * commands below it.
 */
export function findNamed(program: Command, args: readonly string[]): Named {
  let found = program
  let isHelp = false
  for (const name of args) {
    if (name.startsWith('-') || found.commands.length === 0) break
    const next = found.commands.find((one) => one.name() === name || one.aliases().includes(name))
    if (next !== undefined) found = next
    else if (name === 'help' && !isHelp) isHelp = true
    else return { found, unknown: name, isHelp }
  }
  return { found, isHelp }
}

/** Ends the program as commander does with an unknown command of `parent`. */
export function refuseCommand(parent: Command, name: string): never {
  const names = parent.createHelp().visibleCommands(parent)
  const meant =
    optionOf(parent, `--${name}`) ??
    nearest(
      name,
      names.map((one) => one.name()),
    )
  return parent.error(`error: unknown command '${name}'${didYouMean(meant)}`, {
    code: 'commander.unknownCommand',
  })
}

/**
 * Returns commander's complaint with what may have been meant. Commander itself suggests only options that
 * the help shows, and the help of a command hides most settings.
 */
export function withSuggestion(complaint: string, program: Command, args: readonly string[]): string {
  const [, flag] = /^error: unknown option '(-[^'=]*)[^']*'\n$/.exec(complaint) ?? []
  if (flag === undefined) return complaint
  return `${complaint.trimEnd()}${advice(flag, findNamed(program, args).found)}\n`
}

function advice(flag: string, command: Command): string {
  const isSetting = configKeys.some((key) => key.flag === flag)
  if (isSetting) return '\n(A flag of a setting follows the command.)'
  const secret = configKeys.find((key) => key.flag === undefined && flagOf(key.variable) === flag)
  if (secret !== undefined)
    return `\n(Secrets have no flag, because other programs can read arguments: set ${secret.variable}.)`
  if (!flag.startsWith('--')) return didYouMean(optionOf(command, flag.toUpperCase()))
  return didYouMean(
    nearest(
      flag,
      command.options.flatMap(({ long }) => long ?? []),
    ),
  )
}

function optionOf(command: Command, flag: string): string | undefined {
  return command.options.some(({ short, long }) => short === flag || long === flag) ? flag : undefined
}

function flagOf(variable: string): string {
  return variable.replace('SLUICE_', '--').toLowerCase().replaceAll('_', '-')
}

function didYouMean(meant: string | undefined): string {
  return meant === undefined ? '' : `\n(Did you mean ${meant}?)`
}
