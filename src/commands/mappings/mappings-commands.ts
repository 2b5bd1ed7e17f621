import { type CommandTools, type Flags, textOf, wholeNumber } from '../command/tools.ts'

export function addMappingsCommands({ program, command, once }: CommandTools): void {
  const parent = program.command('mappings').description('try mappings on messages')
  command('test', 'show the requests that mappings make of messages, and why they make none of others', {
    parent,
    shown: { adminUrl: '--url' },
  })
    .argument('[messages]', 'messages: one JSON object a line, or a list; - reads them from standard input')
    .option('--destination <id>', 'try the filter and the mappings of this destination of the catalog')
    .option('--mappings <file>', 'try the mappings of a file, YAML or JSON; - reads them from standard input')
    .option('--source <id>', 'take the last events of this source, by the admin API, in place of a file')
    .option('--limit <count>', 'with --source: how many events, 1 to 100 (default: 20)', wholeNumber)
    .option('--json', 'print one JSON object a message')
    .addHelpText(
      'after',
      `
Examples:
  sluice mappings test messages.ndjson --destination crm
  sluice mappings test messages.ndjson --mappings mappings.yaml
  sluice mappings test --source shop --limit 5 --destination crm

Nothing is sent. A file of mappings has a list, one mapping, or an object with the field mappings, such as a
destination. Kafka is only needed if the catalog is in a topic. --source needs a token that sees content. Of a
URL, the path is left out, because it may be a secret: https://crm.example/…/users/u1.

The exit code is 0 if each message gets a request or is left out. It is 1 if a message would become a dead letter,
or if something can't be read. It is 2 if the mappings have a fault. docs/mappings.md has the mappings.`,
    )
    .action((messages: string | undefined, flags: Flags) =>
      once(flags, async (config, log) => {
        const { testMappings } = await import('./mappings-test.ts')
        const limit = flags['limit']
        const { lines, hasFailed } = await testMappings(config, log, {
          messages,
          destination: textOf(flags['destination']),
          mappings: textOf(flags['mappings']),
          source: textOf(flags['source']),
          limit: typeof limit === 'number' ? limit : undefined,
          asJson: flags['json'] === true,
        })
        if (hasFailed) process.exitCode = 1
        return lines
      }),
    )
}
