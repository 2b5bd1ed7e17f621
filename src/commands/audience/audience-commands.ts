import { type Command, Option } from 'commander'
import { anySourceOption, type CommandTools, type Flags, textOf } from '../command/tools.ts'

export function addAudienceCommands(tools: CommandTools): void {
  const parent = tools.program
    .command('audience')
    .description('write audiences and computed traits to Kafka, as an upstream service would')
  addSync(tools, parent)
  addChange(tools, parent)
  addBackfill(tools, parent)
}

function addSync({ command, once, screen }: CommandTools, parent: Command): void {
  command('sync', 'write a whole audience: users who are not in the file leave it', { parent })
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
    .option('--allow-leaving', 'let any number of the known members leave; who they are is not read')
    .option('--allow-odd-ids', 'accept user ids that look like undivided rows, footers or headers')
    .option(...anySourceOption)
    .option('--dry-run', 'read and check the file, count who would enter and leave, and write nothing')
    .addHelpText(
      'after',
      `
Examples:
  sluice audience sync vips.csv --space personas --audience aud_1 --name "Big spenders"
  sluice audience sync vips.csv --space personas --audience aud_1 --name "Big spenders" --dry-run
  psql --csv -tc 'select user_id from vips' |
    sluice audience sync - --format csv --no-header --space personas --audience aud_1 --name "Big spenders"

In NDJSON a line is a user id ("u1") or an object ({"userId":"u1"}). All of the file is read and checked before the
first user is sent, in flat memory, with a copy in the folder for temporary files (TMPDIR). If a query may fail
half-way, write its result to a file first: users who are missing from the result leave the audience. The command
compares the file with the known members, and refuses it if more than half of them (and at least 20) would leave.`,
    )
    .action((file: string, { space, audience: id, name, key, ...flags }: Flags) =>
      once(flags, async (config, log) =>
        (await import('./audience-sync.ts')).syncAudience(
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
            isLeavingAllowed: flags['allowLeaving'] === true,
            areOddIdsAllowed: flags['allowOddIds'] === true,
            isAnySource: flags['anySource'] === true,
            isDryRun: flags['dryRun'] === true,
          },
          screen,
        ),
      ),
    )
}

function addChange({ command, once, screen }: CommandTools, parent: Command): void {
  command('change', 'write one change of an audience or a computed trait, or the changes on standard input', {
    parent,
  })
    .requiredOption('--space <id>', 'the space: a source id of the catalog')
    .option('--audience <id>', 'the id of the audience that the user enters or leaves')
    .option('--trait <id>', 'the id of the computed trait that has a new value')
    .option(
      '--name <name>',
      'the name of the audience or trait; its property is named after it without --key',
    )
    .option('--key <key>', 'the name of the property; it never changes')
    .option('--user <id>', 'the user')
    .option('--member <true|false>', 'whether the user is in the audience now')
    .option('--value <json>', 'the value of the computed trait now')
    .option('--changed-at <time>', 'when it changed, ISO 8601; the later of two changes wins (default: now)')
    .option(...anySourceOption)
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
      once(flags, async (config, log) =>
        (await import('./change-audience.ts')).changeAudience(
          config,
          log,
          {
            spaceId: String(space),
            isAnySource: flags['anySource'] === true,
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
          screen,
        ),
      ),
    )
}

function addBackfill({ command, once, screen }: CommandTools, parent: Command): void {
  command('backfill', 'deliver the present values of audiences and traits to one destination', {
    parent,
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

While other deliveries wait for the destination, these values get only one of ten turns. Values that
change meanwhile are delivered by themselves, and win.`,
    )
    .action(({ space, destination, ...flags }: Flags) =>
      once(flags, async (config, log) =>
        (await import('./audience-backfill.ts')).backfill(
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
          screen,
        ),
      ),
    )
}
