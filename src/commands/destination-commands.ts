import type * as destinations from '../roles/destinations.ts'
import { type CommandTools, type Flags, textOf } from './tools.ts'

/** Adds `sluice destinations …`. */
export function addDestinationCommands({ program, command, once, screen }: CommandTools): void {
  const parent = program
    .command('destinations')
    .description('list and resume destinations that Sluice has paused since their URLs fail for too long')
  command('paused', 'list destinations that Sluice has paused', { parent })
    .option('--json', 'print JSON, one object a line')
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await load()).listPaused({ config, log, screen }, { asJson: flags['json'] === true }),
      ),
    )
  command('resume', 'send to a destination again that Sluice has paused', { parent })
    .argument('[destination]', 'its id in the catalog')
    .option('--all', 'all that Sluice has paused')
    .option('--detach', 'end at once, without waiting until all workers know it')
    .option('--by <name>', 'who does it, for the audit trail (default: the user of this machine)')
    .option('--json', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
Examples:
  sluice destinations resume crm && sluice replay dead-letters --destination crm --reason auto_paused

What was sent to it meanwhile is a dead letter, and stays one until it is replayed. docs/notices.md`,
    )
    .action((destination: string | undefined, flags: Flags) =>
      once(flags, async (config, log) =>
        (await load()).resumeDestinations(
          { config, log, screen },
          {
            destinationId: destination,
            isForAll: flags['all'] === true,
            by: textOf(flags['by']),
            isDetached: flags['detach'] === true,
            asJson: flags['json'] === true,
          },
        ),
      ),
    )
}

function load(): Promise<typeof destinations> {
  return import('../roles/destinations.ts')
}
