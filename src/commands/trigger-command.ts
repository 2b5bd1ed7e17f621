import { Argument } from 'commander'
import { anySourceOption, type CommandTools, type Flags, textOf } from './command/tools.ts'
import { sampleKinds } from './trigger-samples.ts'

export function addTriggerCommand({ command, once, screen }: CommandTools): void {
  command('trigger', 'send a sample message of a kind, to a destination or as a message of a source', {
    shown: { adminUrl: '--url' },
  })
    .addArgument(new Argument('<kind>', 'what to send').choices([...sampleKinds]))
    .option('--to <destination>', 'post it to the URLs of this destination, by the admin API')
    .option('--hook <id>', 'with --to: only to the URL with this id')
    .option('--source <source>', 'write it to Kafka as a message of this source')
    .option(...anySourceOption)
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  sluice trigger track --to crm
  sluice trigger audience-enter --to crm
  sluice trigger identify --source shop

With --to, one request is made with the header X-Sluice-Test: nothing is tried again, and the delivery log doesn't
have it. With --source, the sample takes the way of every message, so filters apply and failures are tried again;
this needs Kafka. For audience-enter and audience-exit, the source is a space. The exit code is 1 if a URL did not
accept the sample.`,
    )
    .action((kind: (typeof sampleKinds)[number], flags: Flags) =>
      once(flags, async (config, log) => {
        const { trigger } = await import('./trigger.ts')
        const order = {
          kind,
          to: textOf(flags['to']),
          hook: textOf(flags['hook']),
          source: textOf(flags['source']),
          isAnySource: flags['anySource'] === true,
          asJson: flags['json'] === true,
        }
        const { lines, isAccepted } = await trigger(config, log, order, screen)
        if (!isAccepted) process.exitCode = 1
        return lines
      }),
    )
}
