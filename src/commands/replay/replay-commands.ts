import type { Command } from 'commander'
import type * as replays from './replay.ts'
import { type CommandTools, type Flags, textOf } from '../command/tools.ts'

const times = 'ISO 8601; a date alone is its midnight in UTC'

export function addReplayCommands(tools: CommandTools): void {
  const parent = tools.program
    .command('replay')
    .description('send again: dead letters, or events of a time to a destination')
  addLetters(tools, parent)
  addEvents(tools, parent)
  const add = lookupsOf(tools, parent)
  add('list', 'list the replays of the last 90 days, newest first', async (run, _id, how) =>
    (await load()).listReplays(run, how),
  )
  add('show <replay>', 'show a replay: how far it is, and who did what', async (run, id, how) =>
    (await load()).showReplay(run, id, how),
  )
  add('stop <replay>', 'stop a replay; whoever wants can resume it', async (run, id, how) =>
    (await load()).requestReplay(run, id, 'stop', how),
  )
  add('resume <replay>', 'let a stopped replay go on where it was', async (run, id, how) =>
    (await load()).requestReplay(run, id, 'run', how),
  )
}

function addLetters(tools: CommandTools, parent: Command): void {
  replayCommand(tools, parent, { from: 'dead-letters', description: 'send dead letters again' })
    .option('--destination <id>', 'only those of this destination')
    .option('--reason <reason>', 'only those that died of this')
    .addHelpText(
      'after',
      `
Examples:
  sluice replay dead-letters --destination erp --from 2026-07-23T14:00:00Z --to 2026-07-23T15:00:00Z --dry-run
  sluice replay dead-letters --destination erp --reason expired --rate 200
  sluice replay dead-letters --reason unknown_source --source shop

The time is when it became a dead letter: hours after the message came, where its tries were used up. What was superseded, or whose user
was deleted since, is left out when it would be sent. What an earlier replay has sent is left out, unless you add
--again. docs/replay.md`,
    )
}

function addEvents(tools: CommandTools, parent: Command): void {
  const description = 'send events of a time to a destination, such as one that was off or is new'
  replayCommand(tools, parent, { from: 'events', description })
    .requiredOption('--destination <id>', 'who gets them')
    .addHelpText(
      'after',
      `
Examples:
  sluice replay events --destination warehouse --from 2026-07-21 --to 2026-07-22 --dry-run
  sluice replay events --destination warehouse --message-id order-4711

Those that it has had come again, with the messageId that they had. What an earlier replay has sent to it is left
out, unless you add --again. docs/replay.md`,
    )
}

/** Adds a command that creates replays. */
function replayCommand(
  { command, once, screen }: CommandTools,
  parent: Command,
  { from, description }: { from: 'dead-letters' | 'events'; description: string },
): Command {
  return command(from, description, { parent })
    .option('--source <id>', 'only of this source')
    .option('--message-id <id>', 'only this message')
    .option('--from <time>', `only from then on: ${times}`)
    .option('--to <time>', `only from before then: ${times}`)
    .option('--rate <number>', 'at most so many records a second (default: 1000)')
    .option('--all', 'take everything: needed if nothing is selected')
    .option('--again', 'also what an earlier replay has sent')
    .option('--dry-run', 'count by destination and reason, and send nothing')
    .option('--detach', 'end when it is asked for, without waiting for its end')
    .option('--by <name>', 'who asks, for the audit trail (default: the user of this machine)')
    .option('--json', 'print JSON, one object a line')
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await load()).replay(
          { config, log, screen },
          {
            from,
            destinationId: textOf(flags['destination']),
            sourceId: textOf(flags['source']),
            reason: textOf(flags['reason']),
            messageId: textOf(flags['messageId']),
            since: textOf(flags['from']),
            until: textOf(flags['to']),
            rate: textOf(flags['rate']),
            by: textOf(flags['by']),
            isAll: flags['all'] === true,
            isAgain: flags['again'] === true,
            isDryRun: flags['dryRun'] === true,
            isDetached: flags['detach'] === true,
            asJson: flags['json'] === true,
          },
        ),
      ),
    )
}

type Lookup = (
  run: Parameters<typeof replays.listReplays>[0],
  id: string,
  how: replays.ReplayLookup,
) => Promise<string[]>

function load(): Promise<typeof replays> {
  return import('./replay.ts')
}

/** Returns a function that adds a command about existing replays. */
function lookupsOf(
  { command, once, screen }: CommandTools,
  parent: Command,
): (name: string, description: string, work: Lookup) => void {
  return (name, description, work) => {
    command(name, description, { parent })
      .option('--by <name>', 'who asks, for the audit trail (default: the user of this machine)')
      .option('--json', 'print JSON, one object a line')
      .action((...given: unknown[]) => {
        const [id, flags] = given.length > 2 ? given : ['', given[0]]
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- commander gives the options behind the arguments
        const options = flags as Flags
        return once(options, (config, log) =>
          work({ config, log, screen }, String(id), {
            asJson: options['json'] === true,
            by: textOf(options['by']),
          }),
        )
      })
  }
}
