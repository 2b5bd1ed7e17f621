import { existsSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Logger } from 'pino'
import { configFlags } from '../../config/flags.ts'
import { loginWarnings } from '../../config/rules.ts'
import { type ConfigInput, isGiven, type ReadConfig, readConfig } from '../../config/read.ts'
import { type Config, configKeys } from '../../config/schema.ts'
import type { Screen } from '../../roles/start/progress.ts'
import { printable } from '../../message/printable.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { readRunning, runningFile } from '../../workshop/running.ts'
import { workshopSettings } from '../../workshop/settings.ts'
import { asCalled } from './as-called.ts'
import { withLocalTimes } from './local-times.ts'

/** The options of a command line as commander gives them, by name. */
export type Flags = Record<string, unknown>

/** A configuration without faults, with the origin of each value. */
export type Settings = Extract<ReadConfig, { ok: true }>

/** The surroundings of the commands in this process. */
export type Surroundings = {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The screen for progress. Results go to standard output. */
  readonly screen: Screen
}

/** The settings that the help of a command shows, by the name of their option. */
type ShownSettings = Readonly<Record<string, string | true>>

/** The tools for adding commands to the program. */
export type CommandTools = {
  readonly program: Command
  /**
   * Creates a command that takes every setting as a flag. To stay short, the command's help shows only the
   * settings in `shown`, and names the page that lists all settings. Each key of `shown` is the name of an
   * option. Its value is a second flag for that option, or `true` if it has none.
   */
  readonly command: (
    name: string,
    description: string,
    how?: { parent?: Command; shown?: ShownSettings },
  ) => Command
  /**
   * Reads the configuration. If it has faults, throws an error that lists all of them. If no brokers are set,
   * and `sluice up` runs in this folder, its settings stand in for the defaults.
   */
  readonly configOf: (flags: Flags) => Settings
  /**
   * Reads the configuration of `sluice up`. If no brokers are set, the settings for development stand in for
   * the defaults.
   */
  readonly configOfUp: (flags: Flags) => Settings
  /** Runs a command that prints lines and ends. */
  readonly once: (flags: Flags, work: Work) => Promise<void>
  readonly screen: Screen
}

/** The work of a command that ends. Its promise resolves to the lines of the output. */
export type Work = (config: Config, log: Logger) => Promise<readonly string[]>

export function createTools(program: Command, { env, screen }: Surroundings): CommandTools {
  const hasBrokers = (flags: Flags): boolean => isGiven('kafka.brokers', { env, flags })
  const configOf = (flags: Flags): Settings => {
    const running = hasBrokers(flags) ? undefined : readRunning()
    const standIns = running && { origin: runningFile, values: running.settings }
    return soundConfig({ env, flags, ...(standIns && { standIns }) })
  }
  const configOfUp = (flags: Flags): Settings => {
    if (hasBrokers(flags)) return soundConfig({ env, flags })
    const isGivenHere = (name: string): boolean => isGiven(name, { env, flags })
    const values = workshopSettings({
      hasCatalogFile: isGivenHere('catalog.file') || existsSync(defaultCatalogFile),
      hasUserKey: isGivenHere('attempts.userKey'),
    })
    return soundConfig({ env, flags, standIns: { origin: 'sluice up', values } })
  }
  return {
    program,
    command: (name, description, { parent = program, shown = {} } = {}) =>
      withSettings(parent.command(name).description(description), shown),
    configOf,
    configOfUp,
    once: async (flags, work) => runOnce(configOf(flags).config, work),
    screen,
  }
}

const defaultCatalogFile = String(configKeys.find(({ name }) => name === 'catalog.file')?.key.defaultValue)

function soundConfig(input: ConfigInput): Settings {
  const read = readConfig(input)
  if (!read.ok) throw new (read.areFlags ? WrongUseError : StartError)(read.message)
  return read
}

/**
 * The settings, each with an option that no help shows. All commands share these options, because there are
 * many options and many commands.
 */
const settings = configFlags().map((flag) => ({
  ...flag,
  hidden: new Option(flag.flags, flag.description).hideHelp(),
}))

function withSettings(made: Command, shown: ShownSettings): Command {
  made.addHelpText('after', '\nEvery setting is a variable and a flag: docs/configuration.md.')
  for (const { flags, option, description, hidden } of settings) {
    const second = shown[option]
    if (second === undefined) made.addOption(hidden)
    else made.addOption(new Option(second === true ? flags : `${second}, ${flags}`, description))
  }
  return made
}

async function runOnce(config: Config, work: Work): Promise<void> {
  for (const warning of loginWarnings(config.kafka)) writeError(`sluice: warning: ${warning}`)
  const { createLogger } = await import('../../telemetry/logger.ts')
  const { log, flush } = createLogger({ level: 'error', isOfCommand: true })
  try {
    for (const line of await work(config, log)) writeLine(line)
  } finally {
    flush()
  }
}

export function textOf(flag: unknown): string | undefined {
  return typeof flag === 'string' ? flag : undefined
}

/** Options of commands that change something. */
export const dryRunOption = ['--dry-run', 'say what would change, and change nothing'] as const
export const yesOption = ['--yes', 'do not ask'] as const
export const anySourceOption = [
  '--any-source',
  'send although the catalog that is read here has no such source',
] as const
export const byOption = ['--by <name>', 'who makes the change (default: the user of this machine)'] as const

/** Reads the number of an option or argument: 1 or more. */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It is a whole number, 1 or more.')
}

/** Writes a line of the results. Returns false if the output takes no more for now. */
export function writeLine(line: string): boolean {
  const shown = process.stdout.isTTY && !isJson(line) ? withLocalTimes(asCalled(line)) : line
  return process.stdout.write(`${printable(shown)}\n`)
}

/** Returns true for a line that a program may read, so that nothing in it may change. */
function isJson(line: string): boolean {
  return line.startsWith('{') || line.startsWith('[')
}

/** Writes a line for the person at the terminal. */
export function writeError(line: string): void {
  const shown = process.stderr.isTTY ? asCalled(line) : line
  process.stderr.write(`${printable(shown)}\n`)
}

/** Returns the value of a flag that has a form with `no-`. `undefined`: neither was given. */
export function flagOf(flag: unknown): boolean | undefined {
  return typeof flag === 'boolean' ? flag : undefined
}
