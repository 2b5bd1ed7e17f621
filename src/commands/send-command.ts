import process from 'node:process'
import { text } from 'node:stream/consumers'
import type { CommandTools, Flags } from './tools.ts'

/** Adds `sluice send`. */
export function addSendCommand({ command, once }: CommandTools): void {
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
      once(flags, async (config, log) =>
        (await import('../roles/send.ts')).sendMessages(config, log, {
          sourceId: String(source),
          lines: await readLines(message),
        }),
      ),
    )
}

/**
 * Returns the lines of the message, or else of standard input. Standard input isn't read synchronously,
 * because Node makes a pipe non-blocking. A synchronous read fails while the pipe's writer has written
 * nothing.
 */
async function readLines(message: string | undefined): Promise<string[]> {
  const given = message ?? (await text(process.stdin))
  return given.split('\n').filter((line) => line.trim() !== '')
}
