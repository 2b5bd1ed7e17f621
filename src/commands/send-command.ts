import { anySourceOption, type CommandTools, type Flags } from './command/tools.ts'

export function addSendCommand({ command, once }: CommandTools): void {
  command('send', 'produce messages to the events topic, as an upstream service would')
    .argument('[message]', 'a message as JSON; without it, one message a line is read from standard input')
    .requiredOption('--source <id>', 'the source of the messages: a source id of the catalog')
    .option(...anySourceOption)
    .addHelpText(
      'after',
      `
Examples:
  sluice send --source shop '{"type":"identify","userId":"u1","traits":{"plan":"pro"}}'
  sluice send --source shop < messages.ndjson`,
    )
    .action((message: string | undefined, { source, ...flags }: Flags) =>
      once(flags, async (config, log) =>
        (await import('./send.ts')).sendMessages(config, log, {
          sourceId: String(source),
          message,
          isAnySource: flags['anySource'] === true,
        }),
      ),
    )
}
