import { once as onceEmitted } from 'node:events'
import { type Command, Option } from 'commander'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { logKinds, logOutcomes } from '../command/command-choices.ts'
import type { CommandOutput, SearchFlags } from './log-search.ts'
import { runRole } from '../command/run-role.ts'
import { type CommandTools, type Flags, textOf, writeError, writeLine } from '../command/tools.ts'

const exitCodes = `
Exit codes: 0 found, 3 the log has no such entries, 1 it can not be queried, 2 wrong use.`

const findExamples = `
Examples:
  sluice log find order-4711
  sluice log find 4711                  the last messages with this value, where attempts.index has properties.orderId
`

const searchExamples = `
Examples:
  sluice log search --destination crm --failed --since 24h
  sluice log search --user u1 --since 7d --json
  sluice log search --value 4711 --since 7d                              where attempts.index has properties.orderId
  sluice log search --reason expired --since 2026-01-31T00:00:00Z --until 2026-02-01T00:00:00Z
`

export function addLogCommands(tools: CommandTools): void {
  const { program, command, configOf } = tools
  const parent = program
    .command('log')
    .description('what became of messages: the delivery log, indexed, searched and followed')
  command('serve', 'index the topic attempts, and answer what the other commands ask', {
    parent,
    shown: { indexFolder: '--folder', indexPort: '--port' },
  }).action((flags: Flags) =>
    runRole(
      async (options) => (await import('../../roles/log-serve.ts')).startLogServe(options),
      configOf(flags).config,
    ),
  )
  addTail(parent, tools)
  addFind(parent, tools)
  addSearch(parent, tools)
  addStats(parent, tools)
  addScan(parent, tools)
  addDdl(parent, tools)
}

function addTail(parent: Command, { command, once }: CommandTools): void {
  command('tail', 'write what becomes of deliveries from now on, straight from Kafka; Ctrl-C ends it', {
    parent,
  })
    .option('--destination <id>', 'of this destination alone')
    .option('--failed', 'attempts that fail, and dead letters, alone')
    .option('--json', 'a JSON object a line')
    .action(async ({ destination, failed, json, ...flags }: Flags) => {
      const ending = new AbortController()
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort())
      await once(flags, async (config, log) => {
        const { tailLog } = await import('./log-tail.ts')
        await tailLog(config, log, {
          destination: textOf(destination),
          onlyFailed: failed === true,
          isJson: json === true,
          write: writeLine,
          drained: async () => {
            await onceEmitted(process.stdout, 'drain')
          },
          say: writeError,
          signal: ending.signal,
        })
        return []
      })
    })
}

function addFind(parent: Command, tools: CommandTools): void {
  tools
    .command('find', 'show the whole life of a message, and what it said while Kafka has it', { parent })
    .argument('<message>', 'the messageId, or the value of a field that attempts.index names')
    .option('--no-payload', 'ask Kafka for nothing')
    .option('--json', 'a JSON object a line: each record, then what Kafka has')
    .addHelpText('after', findExamples + exitCodes)
    .action((sought: string, { payload, json, ...flags }: Flags) =>
      tell(tools, flags, async (config, log) =>
        (await import('./log-find.ts')).findMessages(config, log, {
          sought,
          withPayload: payload !== false,
          isJson: json === true,
        }),
      ),
    )
}

function addSearch(parent: Command, tools: CommandTools): void {
  logFilter(tools.command('search', 'list what became of deliveries, newest first', { parent }))
    .option('--limit <number>', 'how many at most, up to 1000', '100')
    .option('--cursor <cursor>', 'go on where a page before has ended')
    .option('--json', 'a JSON object a line; the last one has the cursor where there is more')
    .addHelpText('after', searchExamples + exitCodes)
    .action(({ limit, cursor, json, ...flags }: Flags) =>
      tell(tools, flags, async (config) =>
        (await import('./log-search.ts')).searchLog(config, searchFlags(flags), {
          limit: String(limit),
          cursor: textOf(cursor),
          isJson: json === true,
        }),
      ),
    )
}

function addStats(parent: Command, tools: CommandTools): void {
  const about = 'count what became of deliveries, and how long attempts took, by the minute'
  logFilter(tools.command('stats', about, { parent }))
    .option('--json', 'a JSON object a minute')
    .addHelpText('after', exitCodes)
    .action(({ json, ...flags }: Flags) =>
      tell(tools, flags, async (config) =>
        (await import('./log-search.ts')).logStats(config, searchFlags(flags), json === true),
      ),
    )
}

function addScan(parent: Command, { command, once, screen }: CommandTools): void {
  command('scan', 'find messages by what they say, by reading them from Kafka', { parent })
    .argument('[conditions...]', 'a field and its value, such as properties.orderId=4711; all must hold')
    .option('--from <time>', 'written from then on: 15m, 24h, 7d ago, or a time as ISO 8601', '1h')
    .option('--to <time>', 'written before then (default: now)')
    .option('--source <id>', 'a source id of the catalog')
    .option('--text <text>', 'a text that the message has somewhere, as JSON writes it')
    .option('--limit <number>', 'end once so many were found, up to 10,000', '100')
    .option('--max-read <number>', 'end once so many messages were read', '1000000')
    .option('--json', 'a JSON object a line')
    .addHelpText(
      'after',
      `
Examples:
  sluice log scan properties.orderId=4711 --from 24h
  sluice log scan type=track event="Order Completed" properties.products.sku=A-1 --from 2h --source shop
  sluice log scan 'traits["e.mail"]=ann@example.com' --from 2026-07-29T09:00:00Z --to 2026-07-29T10:00:00Z

It reads the topic of events in this range of time, so it finds what no index has, and takes as long as reading
does. A list meets a condition if one of its items does. \`sluice log find MESSAGE_ID\` then says what became of a
message. Exit codes: 0 found, 3 nothing found, 1 Kafka can not be read, 2 wrong use.`,
    )
    .action(
      (conditions: readonly string[], { from, to, source, text, limit, maxRead, json, ...flags }: Flags) =>
        once(flags, async (config, log) => {
          const [{ scanEvents }, { readCondition }, { timeGiven, wholeNumber: numberGiven }] =
            await Promise.all([
              import('./log-scan.ts'),
              import('../../roles/content/body-condition.ts'),
              import('./log-search.ts'),
            ])
          const nowMs = Date.now()
          const ending = new AbortController()
          for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort())
          const { found } = await scanEvents(config, log, {
            fromMs: timeGiven('--from', String(from), nowMs),
            toMs: textOf(to) === undefined ? undefined : timeGiven('--to', textOf(to) ?? '', nowMs),
            conditions: conditions.map(readCondition),
            source: textOf(source),
            text: textOf(text),
            mostFound: numberGiven('--limit', String(limit), 10_000),
            mostRead: numberGiven('--max-read', String(maxRead), 1_000_000_000),
            isJson: json === true,
            write: writeLine,
            screen,
            signal: ending.signal,
          })
          if (found > 0) return []
          process.exitCode = 3
          await tellUnknown({ config, log }, { source })
          return []
        }),
    )
}

function addDdl(parent: Command, { command, once }: CommandTools): void {
  command('ddl', 'print the tables of the delivery log in ClickHouse, as SQL', { parent })
    .option('--apply', 'make them instead, and give them the retention that is set')
    .addHelpText(
      'after',
      `
Examples:
  sluice log ddl | clickhouse-client
  sluice log ddl --apply --clickhouse-url https://clickhouse:8443`,
    )
    .action(({ apply, ...flags }: Flags) =>
      once(flags, async (config, log) => {
        const { applyClickHouseTables, printClickHouseTables } =
          await import('../../roles/operations/log-clickhouse.ts')
        return apply === true ? applyClickHouseTables(config, log) : printClickHouseTables(config)
      }),
    )
}

function searchFlags(flags: Flags): SearchFlags {
  return {
    since: textOf(flags['since']),
    until: textOf(flags['until']),
    destination: textOf(flags['destination']),
    source: textOf(flags['source']),
    hook: textOf(flags['hook']),
    message: textOf(flags['message']),
    user: textOf(flags['user']),
    value: textOf(flags['value']),
    kind: textOf(flags['kind']),
    outcome: textOf(flags['outcome']),
    reason: textOf(flags['reason']),
    status: textOf(flags['status']),
    job: textOf(flags['job']),
    failed: flags['failed'] === true,
  }
}

/** Runs a command and prints its lines. The exit code is 3 if the command found nothing. */
async function tell(
  { once }: CommandTools,
  flags: Flags,
  ask: (config: Config, log: Logger) => Promise<CommandOutput>,
): Promise<void> {
  await once(flags, async (config, log) => {
    const { lines, isFound } = await ask(config, log)
    if (isFound) return lines
    process.exitCode = 3
    await tellUnknown({ config, log }, flags)
    return lines
  })
}

/** Says which ids of the flags the catalog lacks, because that is why nothing was found. */
async function tellUnknown(
  { config, log }: { readonly config: Config; readonly log: Logger },
  { destination, source }: Flags,
): Promise<void> {
  const { unknownIds } = await import('./unknown-ids.ts')
  const given = { destination: textOf(destination), source: textOf(source) }
  for (const line of await unknownIds(config, log, 'log find', given)) writeError(line)
}

/** Adds the options that restrict a search of the delivery log to some records. */
function logFilter(made: Command): Command {
  return made
    .option('--since <time>', 'from then on: 15m, 24h, 7d ago, or a time as ISO 8601 (default: 1h)')
    .option('--until <time>', 'before then (default: now)')
    .option('--destination <id>', 'a destination id of the catalog')
    .option('--source <id>', 'a source id of the catalog')
    .option('--hook <id>', 'a hook id of the catalog')
    .option('--message <id>', 'a messageId')
    .option('--user <id>', 'a user; needs attempts.userKey')
    .option('--value <value>', 'the value of a field that attempts.index names, such as an order number')
    .addOption(new Option('--kind <kind>', 'what became of it').choices([...logKinds]))
    .addOption(new Option('--outcome <outcome>', 'what an attempt came to').choices(logOutcomes.slice(1)))
    .option('--reason <reason>', 'why it was parked, is dead, omitted or filtered')
    .option('--status <number>', 'the HTTP status of an attempt')
    .option('--job <id>', 'the replay that it came by')
    .option('--failed', 'attempts that failed, and dead letters, alone')
}
