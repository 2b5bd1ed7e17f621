import { readFileSync } from 'node:fs'
import completion from '@bomb.sh/tab/commander'
import { Command, CommanderError, Option } from 'commander'
import type { Logger } from 'pino'
import { describeConfig } from './config/describe.ts'
import { configFlags } from './config/flags.ts'
import { loginWarnings } from './config/login.ts'
import { readConfig } from './config/read.ts'
import type { Config } from './config/schema.ts'
import { addLogCommands } from './log-commands.ts'
import { addAdminCommands, addReplayCommands, type CommandTools } from './replay-commands.ts'
import { backfill } from './roles/audience-backfill.ts'
import { changeAudience } from './roles/change-audience.ts'
import { syncAudience } from './roles/audience-sync.ts'
import { startForkedWorker } from './roles/forked-worker.ts'
import { startGateway } from './roles/gateway.ts'
import { processCount, startProcesses } from './roles/processes.ts'
import type { Screen } from './roles/progress.ts'
import { sendMessages } from './roles/send.ts'
import { StartError } from './roles/start-error.ts'
import {
  applyTopicTable,
  checkTopicTable,
  listTopicTable,
  printFormats,
  printTopicTable,
} from './roles/topic-commands.ts'
import { growTopics } from './roles/topics-grow.ts'
import { startUp } from './roles/up.ts'
import { startWorker } from './roles/worker.ts'
import { runRole } from './run-role.ts'
import { buildInfo, describeBuild } from './telemetry/build-info.ts'
import { createLogger } from './telemetry/logger.ts'

/** argv → role → run → exit code. */

type Flags = Record<string, unknown>

/** Results go to standard output, how far it is to standard error. */
const errorScreen: Screen = {
  isTerminal: process.stderr.isTTY && process.env['TERM'] !== 'dumb',
  columns: () => process.stderr.columns,
  write: (text) => {
    process.stderr.write(text)
  },
}

const program = new Command('sluice')
  .description(
    'Delivers customer-data events from Kafka to webhooks: signed, isolated by destination, retried for four hours.',
  )
  .option('-V, --version', 'print the version, and the commit that it was made of')
  .on('option:version', () => {
    process.stdout.write(`${describeBuild(buildInfo())}\n`)
    throw new CommanderError(0, 'commander.version', '')
  })
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
  sluice topics grow 48                       more partitions, with the state and all that waits
  sluice send --source shop '{"type":"track","userId":"u1","event":"Hello"}'
  sluice audience sync vips.csv --space personas --audience aud_1 --name "Big spenders"
  sluice audience change --space personas --audience aud_1 --name "Big spenders" --user u1 --member true
  sluice log find MESSAGE_ID                  what became of a message
  sluice log tail --failed                    what fails, as it does
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
  .addOption(new Option('--process-number <number>', 'the number of this process of the worker').hideHelp())
  .action(({ processNumber, ...flags }: Flags) => {
    const { config } = configOf(flags)
    if (processNumber !== undefined) {
      const processOf = { number: Number(processNumber), count: processCount(config) }
      return runRole((options) => startForkedWorker({ ...options, processOf }), config, processOf.number)
    }
    if (processCount(config) > 1) return runRole(startProcesses, config, 'primary')
    return runRole(startWorker, config)
  })

command('gateway', "accept messages over HTTP from Segment's clients, and write them to Kafka", {
  shown: { gatewayPort: '--port' },
}).action((flags: Flags) => runRole(startGateway, configOf(flags).config))

addLogCommands(program, { command, runOnce, configOf })

const topics = program.command('topics').description('create, check and list the topics')
command('apply', 'create missing topics and correct settings', { parent: topics }).action((flags: Flags) =>
  runOnce(flags, applyTopicTable),
)
command('check', 'compare the topics with what Sluice needs; exit code 1 if they differ', {
  parent: topics,
}).action((flags: Flags) => runOnce(flags, checkTopicTable))
command('grow', 'take the installation to more partitions: workers are stopped for it, producers may go on', {
  parent: topics,
})
  .argument('[partitions]', 'how many there are to be; killed, it goes on where it was when it is run again')
  .option('--dry-run', 'say what would be done, how long it takes and what it needs, and write nothing')
  .option('--abandon', 'give up a growth that is under way: all is as it was')
  .option('--clean', 'remove the topics of before, once the workers run with the new ones')
  .addHelpText(
    'after',
    `
Examples:
  sluice topics grow 48 --dry-run
  sluice topics grow 48

docs/growing.md tells what it does, and what upstream has to know.`,
  )
  .action((partitions: string | undefined, flags: Flags) =>
    runOnce(flags, (config, log) =>
      growTopics(
        config,
        log,
        {
          partitions,
          isDryRun: flags['dryRun'] === true,
          isAbandoned: flags['abandon'] === true,
          isClean: flags['clean'] === true,
        },
        errorScreen,
      ),
    ),
  )
command('list', 'show the topics and their purposes', { parent: topics }).action((flags: Flags) =>
  runOnce(flags, async (config) => listTopicTable(config)),
)

command('print', 'print the topics in the format of another tool, for whoever may create them', {
  parent: topics,
})
  .addOption(new Option('--format <format>', 'the tool').choices(printFormats).makeOptionMandatory())
  .option('--strimzi-cluster <name>', 'the Kafka resource of the topics', 'my-cluster')
  .action((flags: Flags) =>
    runOnce(flags, async (config) => {
      const format = printFormats.find((known) => known === flags['format']) ?? 'kafka-topics'
      return printTopicTable(config, format, String(flags['strimziCluster']))
    }),
  )

command('send', 'produce messages to the events topic, as an upstream service would')
  .argument('[message]', 'a message as JSON; without it, one message a line is read from standard input')
  .requiredOption('--source <id>', 'the source of the messages: a source id of the catalog')
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

const audience = program
  .command('audience')
  .description('write audiences and computed traits to Kafka, as an upstream service would')

command('sync', 'write a whole audience: users who are not in the file leave it', { parent: audience })
  .argument('<file>', 'users as CSV or NDJSON; - is standard input')
  .requiredOption('--space <id>', 'the space of the audience: a source id of the catalog')
  .requiredOption('--audience <id>', 'the id of the audience')
  .requiredOption('--name <name>', 'the name of the audience; its property is named after it without --key')
  .option('--key <key>', 'the name of the property; it never changes')
  .option(
    '--snapshot-at <time>',
    'when the audience was read, ISO 8601; changes after that are kept (default: now)',
  )
  .addOption(new Option('--format <format>', "default: by the file's ending").choices(['csv', 'ndjson']))
  .option('--column <name>', 'the column or field with the user ids (default: userId or user_id)')
  .option('--no-header', 'the CSV has no header line; --column is then a number')
  .option('--allow-empty', 'accept a file without users, which ends the audience: all users leave')
  .option('--dry-run', 'read and check the file, count, and write nothing')
  .addHelpText(
    'after',
    `
Examples:
  sluice audience sync vips.csv --space personas --audience aud_1 --name "Big spenders"
  sluice audience sync vips.csv --space personas --audience aud_1 --name "Big spenders" --dry-run
  psql -Atc 'select user_id from vips' |
    sluice audience sync - --format csv --no-header --space personas --audience aud_1 --name "Big spenders"

In NDJSON a line is a user id ("u1") or an object ({"userId":"u1"}). All of the file is read and checked before the
first user is sent, in flat memory, with a copy in the folder for temporary files (TMPDIR).`,
  )
  .action((file: string, { space, audience: id, name, key, ...flags }: Flags) =>
    runOnce(flags, (config, log) =>
      syncAudience(
        config,
        log,
        {
          spaceId: String(space),
          audience: { id: String(id), name: String(name), key: textOf(key) },
          file,
          format: flags['format'] === 'csv' || flags['format'] === 'ndjson' ? flags['format'] : undefined,
          column: textOf(flags['column']),
          hasHeader: flags['header'] !== false,
          snapshotAt: textOf(flags['snapshotAt']),
          isEmptyAllowed: flags['allowEmpty'] === true,
          isDryRun: flags['dryRun'] === true,
        },
        errorScreen,
      ),
    ),
  )

command('change', 'write one change of an audience or a computed trait, or the changes on standard input', {
  parent: audience,
})
  .requiredOption('--space <id>', 'the space: a source id of the catalog')
  .option('--audience <id>', 'the id of the audience that the user enters or leaves')
  .option('--trait <id>', 'the id of the computed trait that has a new value')
  .option('--name <name>', 'the name of the audience or trait; its property is named after it without --key')
  .option('--key <key>', 'the name of the property; it never changes')
  .option('--user <id>', 'the user')
  .option('--member <true|false>', 'whether the user is in the audience now')
  .option('--value <json>', 'the value of the computed trait now')
  .option('--changed-at <time>', 'when it changed, ISO 8601; the later of two changes wins (default: now)')
  .addHelpText(
    'after',
    `
Examples:
  sluice audience change --space personas --audience aud_1 --name "Big spenders" --user u1 --member true
  sluice audience change --space personas --trait trait_1 --name "Plan" --user u1 --value '"gold"'
  sluice audience change --space personas < changes.ndjson

A line of standard input is a change as schemas/audience-change.schema.json has it. All changes are checked before the first is sent.`,
  )
  .action(({ space, ...flags }: Flags) =>
    runOnce(flags, (config, log) =>
      changeAudience(
        config,
        log,
        {
          spaceId: String(space),
          flags: {
            audience: textOf(flags['audience']),
            trait: textOf(flags['trait']),
            name: textOf(flags['name']),
            key: textOf(flags['key']),
            user: textOf(flags['user']),
            member: textOf(flags['member']),
            value: textOf(flags['value']),
            changedAt: textOf(flags['changedAt']),
          },
        },
        errorScreen,
      ),
    ),
  )

command('backfill', 'deliver the present values of audiences and traits to one destination', {
  parent: audience,
})
  .requiredOption('--space <id>', 'the space: a source id of the catalog')
  .requiredOption('--destination <id>', 'the destination that gets them: its id in the catalog')
  .option('--audience <id>', 'only the members of this audience')
  .option('--property <name>', 'only this property')
  .option(
    '--with-left',
    'include users who have left and traits without a value, for a destination that missed changes',
  )
  .option('--rate <number>', 'the most Identifies a second (default: 1000)')
  .option('--state <file>', 'a file that remembers the progress: run the command again to go on from there')
  .option('--dry-run', 'count, and write nothing')
  .addHelpText(
    'after',
    `
Examples:
  sluice audience backfill --space personas --destination crm --dry-run
  sluice audience backfill --space personas --destination crm --audience aud_1 --state backfill.json
  sluice audience backfill --space personas --destination crm --with-left --rate 200

The values are delivered after everything else. Values that change meanwhile are delivered by themselves, and win.`,
  )
  .action(({ space, destination, ...flags }: Flags) =>
    runOnce(flags, (config, log) =>
      backfill(
        config,
        log,
        {
          spaceId: String(space),
          destinationId: String(destination),
          audienceId: textOf(flags['audience']),
          property: textOf(flags['property']),
          withLeft: flags['withLeft'] === true,
          rate: textOf(flags['rate']),
          stateFile: textOf(flags['state']),
          isDryRun: flags['dryRun'] === true,
        },
        errorScreen,
      ),
    ),
  )

const tools: CommandTools = {
  program,
  command,
  once: runOnce,
  role: (flags, start) => runRole(start, configOf(flags).config),
  screen: errorScreen,
}
addReplayCommands(tools)
addAdminCommands(tools)

command('config', 'print the configuration in force and the origin of each value, without secrets').action(
  printConfig,
)

/**
 * A command that takes every setting as a flag; the help stays short, and names the page that lists them.
 * Shows only those of `shown`, by their option, each under a second name.
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
  for (const warning of loginWarnings(config.kafka)) writeError(`sluice: warning: ${warning}`)
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

function textOf(flag: unknown): string | undefined {
  return typeof flag === 'string' ? flag : undefined
}

function writeError(line: string): void {
  process.stderr.write(`${line}\n`)
}

/**
 * Who reads an output may have seen enough, as `head` has. Results are written when the work is done: without
 * a reader of them the process ends. How far it is it tells nobody then, and goes on.
 */
function outliveReaders(): void {
  process.stdout.on('error', (error) => {
    if (!isBrokenPipe(error)) throw error
    process.exit()
  })
  process.stderr.on('error', (error) => {
    if (!isBrokenPipe(error)) throw error
  })
}

function isBrokenPipe(error: Error): boolean {
  return 'code' in error && error.code === 'EPIPE'
}

completion(program, { completionCommandName: 'completion' })
outliveReaders()

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
