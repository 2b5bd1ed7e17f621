import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import type { Logger } from 'pino'
import { describeConfig } from './config/describe.ts'
import { configFlags } from './config/flags.ts'
import { readConfig } from './config/read.ts'
import type { Config } from './config/schema.ts'
import { startForkedWorker } from './roles/forked-worker.ts'
import { startGateway } from './roles/gateway.ts'
import { processCount, startProcesses } from './roles/processes.ts'
import { sendMessages } from './roles/send.ts'
import { StartError } from './roles/start-error.ts'
import { applyTopicTable, checkTopicTable, listTopicTable } from './roles/topics.ts'
import { startUp } from './roles/up.ts'
import { startWorker } from './roles/worker.ts'
import { runRole } from './run-role.ts'
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
  sluice up                                   Kafka for development, topics, a gateway and a worker, in one process
  sluice gateway                              take messages by HTTP, as Segment's clients send them
  sluice worker                               a member of the consumer group for each CPU
  sluice worker --processes 4                 four of them
  sluice topics apply                         create the topics, correct their settings
  sluice send --source shop '{"type":"track","userId":"u1","event":"Hello"}'
  sluice config                               the configuration in force, and where each value is from

Every setting has a variable (SLUICE_KAFKA_BROKERS) and a flag (--kafka-brokers): docs/configuration.md.`,
  )

command(
  'up',
  'run everything in one process; without configured brokers, with a Kafka for development',
).action((flags: Flags) =>
  runRole((options) => startUp({ ...options, say: writeError }), configOf(flags).config),
)

command('worker', 'consume, deliver and retry: one member of the consumer group for each CPU', {
  shown: { workerProcesses: '--processes' },
})
  .addOption(new Option('--process-number <number>', 'which of its own processes this is').hideHelp())
  .action(({ processNumber, ...flags }: Flags) => {
    const { config } = configOf(flags)
    if (processNumber !== undefined) return runRole(startForkedWorker, config, Number(processNumber))
    return runRole(processCount(config) === 1 ? startWorker : startProcesses, config)
  })

command('gateway', "take messages by HTTP, as Segment's clients send them, and write them to Kafka", {
  shown: { gatewayPort: '--port' },
}).action((flags: Flags) => runRole(startGateway, configOf(flags).config))

const topics = program.command('topics').description('create, check and list the topics')
command('apply', 'create missing topics and correct settings', { parent: topics }).action((flags: Flags) =>
  runOnce(flags, applyTopicTable),
)
command('check', 'compare the topics with what they must be; exit code 1 if they differ', {
  parent: topics,
}).action((flags: Flags) => runOnce(flags, checkTopicTable))
command('list', 'show the topics and what they are for', { parent: topics }).action((flags: Flags) =>
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

/**
 * A command that takes every setting as a flag; the help stays short, and names the page that lists them. Shows
 * only those of `shown`, by their option, each under a second name.
 */
function command(
  name: string,
  description: string,
  { parent = program, shown = {} }: { parent?: Command; shown?: Readonly<Record<string, string>> } = {},
): Command {
  const made = parent
    .command(name)
    .description(description)
    .addHelpText('after', '\nEvery setting is a variable and a flag: docs/configuration.md.')
  for (const { flags, option, description: meaning } of configFlags()) {
    const second = shown[option]
    made.addOption(
      second === undefined
        ? new Option(flags, meaning).hideHelp()
        : new Option(`${second}, ${flags}`, meaning),
    )
  }
  return made
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
