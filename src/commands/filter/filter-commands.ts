import type { Command } from 'commander'
import type { CommandTools, Flags } from '../command/tools.ts'

export function addFilterCommands(tools: CommandTools): void {
  const parent = tools.program
    .command('filter')
    .description('try a condition of a filter on messages; translate one of Segment')
  addTest(parent, tools)
  addFromFql(parent, tools)
}

function addTest(parent: Command, { command, once }: CommandTools): void {
  command('test', 'say which messages meet a condition, and why others do not', { parent })
    .argument('<condition>', 'the condition, as it is written in filter.condition')
    .argument('<file>', 'messages: one JSON object a line, or a list; - reads them from standard input')
    .option('--json', 'print one JSON object a message')
    .addHelpText(
      'after',
      `
Examples:
  sluice filter test 'event == "Order Completed" && properties.total > 100' messages.ndjson
  sluice filter test 'traits.plan == "pro"' - < one-message.json

docs/conditions.md has the language. Nothing is sent, and neither Kafka nor the catalog is needed. To try a condition
on the last messages of a source: POST /v1/sources/SOURCE/preview of the admin API.`,
    )
    .action((condition: string, file: string, flags: Flags) =>
      once(flags, async (config) =>
        (await import('./filter-test.ts')).testFilter(config, {
          condition,
          file,
          asJson: flags['json'] === true,
        }),
      ),
    )
}

function addFromFql(parent: Command, { command, once }: CommandTools): void {
  command('from-fql', "translate a filter in Segment's language (FQL) into a condition", { parent })
    .argument('<fql>', 'the filter, as a trigger of Segment has it')
    .addHelpText(
      'after',
      `
Example:
  sluice filter from-fql 'type = "track" and event = "Order Completed" and properties.total >= 100'`,
    )
    .action((fql: string, flags: Flags) =>
      once(flags, async () => (await import('./filter-test.ts')).fromFql(fql)),
    )
}
