import { type Command, Option } from 'commander'
import { printFormats } from '../command/command-choices.ts'
import type * as topicTable from '../../roles/operations/topic-table.ts'
import type { CommandTools, Flags } from '../command/tools.ts'

export function addTopicCommands(tools: CommandTools): void {
  const { program, command, once } = tools
  const parent = program.command('topics').description('create, check and list the topics')
  command('apply', 'create missing topics and correct settings', { parent }).action((flags: Flags) =>
    once(flags, async (config, log) => (await load()).applyTopicTable(config, log)),
  )
  command('check', 'compare the topics with what Sluice needs; exit code 1 if they differ', {
    parent,
  }).action((flags: Flags) => once(flags, async (config, log) => (await load()).checkTopicTable(config, log)))
  addGrow(tools, parent)
  command('list', 'show the topics and their purposes', { parent }).action((flags: Flags) =>
    once(flags, async (config) => (await load()).listTopicTable(config)),
  )
  addPrint(tools, parent)
}

function addGrow({ command, once, screen }: CommandTools, parent: Command): void {
  command(
    'grow',
    'take the installation to more partitions: workers are stopped for it, producers may go on',
    {
      parent,
    },
  )
    .argument(
      '[partitions]',
      'how many there are to be; killed, it goes on where it was when it is run again',
    )
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
      once(flags, async (config, log) =>
        (await import('./topics-grow.ts')).growTopics(
          config,
          log,
          {
            partitions,
            isDryRun: flags['dryRun'] === true,
            isAbandoned: flags['abandon'] === true,
            isClean: flags['clean'] === true,
          },
          screen,
        ),
      ),
    )
}

function addPrint({ command, once }: CommandTools, parent: Command): void {
  command('print', 'print the topics in the format of another tool, for whoever may create them', {
    parent,
  })
    .addOption(new Option('--format <format>', 'the tool').choices(printFormats).makeOptionMandatory())
    .option('--strimzi-cluster <name>', 'the Kafka resource of the topics', 'my-cluster')
    .action((flags: Flags) =>
      once(flags, async (config) => {
        const format = printFormats.find((known) => known === flags['format']) ?? 'kafka-topics'
        return (await load()).printTopicTable(config, format, String(flags['strimziCluster']))
      }),
    )
}

function load(): Promise<typeof topicTable> {
  return import('../../roles/operations/topic-table.ts')
}
