import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import type { Logger } from 'pino'
import { describeConfig } from './config/describe.ts'
import { configFlags } from './config/flags.ts'
import { readConfig } from './config/read.ts'
import type { Config } from './config/schema.ts'
import { sendMessages } from './roles/send.ts'
import { StartError } from './roles/start-error.ts'
import { applyTopicTable, checkTopicTable, listTopicTable } from './roles/topics.ts'
import { startUp } from './roles/up.ts'
import { startWorker } from './roles/worker.ts'
import { createLogger } from './telemetry/logger.ts'

/** argv → role → run → exit code. */

silenceTimerWarnings()

type Flags = Record<string, unknown>

const program = new Command('sluice')
  .description(
    'Delivers customer-data events from Kafka to webhooks: signed, isolated by destination, retried for four hours.',
  )
  .exitOverride()
  .showHelpAfterError('(--help shows what there is)')
  .addHelpText(
    'after',
    `
Examples:
  sluice up                                   Kafka for development, topics and a worker, in one process
  sluice worker                               one member of the consumer group
  sluice topics apply                         create the topics, correct their settings
  sluice send --source shop '{"type":"track","userId":"u1","event":"Hello"}'
  sluice config                               the configuration in force, and where each value is from

Every setting has a variable (SLUICE_KAFKA_BROKERS) and a flag (--kafka-brokers): docs/configuration.md.`,
  )

command(
  'up',
  'run everything in one process; without configured brokers, with a Kafka for development',
).action((flags: Flags) =>
  runRole(flags, ({ config, log, onFatal }) => startUp({ config, log, onFatal, say: writeError })),
)

command('worker', 'consume, deliver and retry: one member of the consumer group').action((flags: Flags) =>
  runRole(flags, startWorker),
)

const topics = program.command('topics').description('create, check and list the topics')
command('apply', 'create missing topics and correct settings', topics).action((flags: Flags) =>
  runOnce(flags, applyTopicTable),
)
command('check', 'compare the topics with what they must be; exit code 1 if they differ', topics).action(
  (flags: Flags) => runOnce(flags, checkTopicTable),
)
command('list', 'show the topics and what they are for', topics).action((flags: Flags) =>
  runOnce(flags, async (config) => listTopicTable(config)),
)

command('send', 'produce messages to the events topic, as an upstream service would')
  .argument('[message]', 'a message as JSON; without it, one message a line is read from standard input')
  .requiredOption('--source <id>', 'the source that the message is from: a source id of the catalog')
  .addHelpText(
    'after',
    `
Examples:
  sluice send --source shop '{"type":"identify","userId":"u1","traits":{"plan":"pro"}}'
  sluice send --source shop < messages.ndjson`,
  )
  .action((message: string | undefined, { source, ...flags }: Flags) =>
    runOnce(flags, (config, log) =>
      sendMessages(config, log, { sourceId: String(source), lines: readLines(message) }),
    ),
  )

command('config', 'print the configuration in force and where each value is from, without secrets').action(
  printConfig,
)

/** A command that takes every setting as a flag; the help stays short, and names the page that lists them. */
function command(name: string, description: string, parent: Command = program): Command {
  const made = parent
    .command(name)
    .description(description)
    .addHelpText('after', '\nEvery setting is a variable and a flag: docs/configuration.md.')
  for (const { flags, description: meaning } of configFlags())
    made.addOption(new Option(flags, meaning).hideHelp())
  return made
}

type Role = (options: {
  config: Config
  log: Logger
  onFatal: (error: Error) => void
}) => Promise<{ stop(): Promise<void> }>

/** Under `npx` and `npm run` one Ctrl-C may arrive twice, from the terminal and from npm: that isn't a second one. */
const secondSignalAfterMs = 1_000

/** Starts a role and runs it until SIGINT or SIGTERM; a second signal doesn't wait. */
async function runRole(flags: Flags, role: Role): Promise<void> {
  const { config } = configOf(flags)
  const { log, flush } = createLogger({ level: config.log.level })
  let stoppingSinceMs: number | undefined
  const exit = (code: number): never => {
    flush()
    process.exit(code)
  }
  const fatal = (error: unknown): void => {
    log.fatal({ err: error }, 'sluice can not go on')
    exit(1)
  }
  process.on('uncaughtException', fatal)
  process.on('unhandledRejection', fatal)
  const ended = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        const isSecond = performance.now() - (stoppingSinceMs ?? Infinity) >= secondSignalAfterMs
        if (isSecond) exit(130)
        stoppingSinceMs ??= performance.now()
        resolve()
      })
    }
  })
  try {
    // A signal during the start finds nothing taken yet: there is nothing to finish.
    const running = await Promise.race([role({ config, log, onFatal: fatal }), ended])
    await ended
    await running?.stop()
  } catch (error) {
    flush()
    throw error
  }
  exit(0)
}

/** Runs a command that prints lines and ends. */
async function runOnce(
  flags: Flags,
  work: (config: Config, log: Logger) => Promise<readonly string[]>,
): Promise<void> {
  const { config } = configOf(flags)
  const { log, flush } = createLogger({ level: 'error' })
  try {
    for (const line of await work(config, log)) process.stdout.write(`${line}\n`)
  } finally {
    flush()
  }
}

function printConfig(flags: Flags): void {
  const rows = describeConfig(configOf(flags))
  const widths = {
    key: Math.max(...rows.map(({ key }) => key.length)),
    value: Math.max(...rows.map(({ value }) => value.length)),
  }
  for (const { key, value, source } of rows) {
    process.stdout.write(`${key.padEnd(widths.key)}  ${value.padEnd(widths.value)}  ${source}\n`)
  }
}

function configOf(flags: Flags) {
  const read = readConfig({ env: process.env, flags })
  if (!read.ok) throw new StartError(read.message)
  return read
}

function readLines(message: string | undefined): string[] {
  const text = message ?? readFileSync(0, 'utf8')
  return text.split('\n').filter((line) => line.trim() !== '')
}

function writeError(line: string): void {
  process.stderr.write(`${line}\n`)
}

/**
 * kafkajs 2.2.4 sets timers in the past, for which Node prints a warning that no operator can act on. Only
 * that one is left out.
 */
function silenceTimerWarnings(): void {
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] === 'TimeoutNegativeWarning') return
    Reflect.apply(emitWarning, process, [warning, ...rest])
  }
}

try {
  await program.parseAsync()
} catch (error) {
  // Commander has written its own message; a wrong use is exit code 2, help asked for is 0.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else {
    writeError(
      error instanceof StartError
        ? `sluice: ${error.message}`
        : String(error instanceof Error ? error.stack : error),
    )
    process.exitCode = 1
  }
}
