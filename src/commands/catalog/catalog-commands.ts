import type { Command } from 'commander'
import { isString, listOf } from '../../catalog/plain-data.ts'
import {
  byOption,
  type CommandTools,
  dryRunOption,
  type Flags,
  textOf,
  wholeNumber,
  yesOption,
} from '../command/tools.ts'

export function addCatalogCommands(tools: CommandTools): void {
  const parent = tools.program
    .command('catalog')
    .description(
      'check a catalog before it is used; take it into its topic, and out of it (catalog.source=topic)',
    )
  addCheck(parent, tools)
  addImport(parent, tools)
  addExport(parent, tools)
  addRestore(parent, tools)
  addAccept(parent, tools)
  addDiff(parent, tools)
  addHistory(parent, tools)
  addUndo(parent, tools)
  addKey(parent, tools)
}

/** Adds `sluice apply`. */
export function addApplyCommand({ command, once, screen }: CommandTools): void {
  command('apply', 'make sources and destinations in the topic as files have them (catalog.source=topic)')
    .requiredOption(
      '-f, --file <path>',
      'a file or a folder, - for standard input; may be given again',
      collected,
    )
    .option('--prune', 'also remove what has the label of --selector, and is not in the files')
    .option('--selector <label>', 'the label of what --prune may remove, such as tenant=acme')
    .option(
      '--allow-empty',
      'prune also if the files have nothing with the label, and so remove all that have it',
    )
    .option(...dryRunOption)
    .option(...yesOption)
    .option(...byOption)
    .addHelpText(
      'after',
      `
Examples:
  sluice apply -f crm.yaml
  sluice apply -f destinations/ --prune --selector tenant=acme

A file has sources: and destinations:, or the fields of one destination. Of a folder, the files .yaml, .yml and
.json are read. Only what the files name is touched. The difference is shown before the question: + new, ~ changed,
- removed. \${CATALOG_X} is filled in here. See docs/catalog-topic.md.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./apply.ts')).applyFiles(
          { config, log, screen },
          {
            paths: listOf(flags['file']).filter(isString),
            prunes: flags['prune'] === true,
            allowsEmpty: flags['allowEmpty'] === true,
            selector: textOf(flags['selector']),
            isDryRun: flags['dryRun'] === true,
            isSure: flags['yes'] === true,
            by: textOf(flags['by']),
          },
        ),
      ),
    )
}

function collected(path: string, before: readonly string[] = []): readonly string[] {
  return [...before, path]
}

function addDiff(parent: Command, { command, once }: CommandTools): void {
  command('diff', 'compare a file with the catalog in the topic', { parent })
    .argument('<path>', 'the file or the folder, YAML or JSON; - reads standard input')
    .addHelpText(
      'after',
      `
+ is only in the file, ~ differs, - is only in the topic. The exit code is 0 if they are equal, 1 if they
differ, and 2 if the file has faults. \${CATALOG_X} is filled in here.`,
    )
    .action((path: string, flags: Flags) =>
      once(flags, async (config, log) => {
        const lines = await (await import('./apply.ts')).diffFiles({ config, log }, path)
        if (lines.length > 0) process.exitCode = 1
        return lines
      }),
    )
}

function addImport(parent: Command, { command, once }: CommandTools): void {
  command('import', 'make the catalog in the topic equal to a file, in one change', { parent })
    .argument('<file>', 'the file, YAML or JSON; - reads it from standard input')
    .option(...dryRunOption)
    .option('--repair', 'write all objects again, after records of the topic were destroyed')
    .option(...byOption)
    .addHelpText(
      'after',
      `
Examples:
  sluice catalog import catalog.yaml --dry-run
  sluice catalog export > catalog.yaml && $EDITOR catalog.yaml && sluice catalog import catalog.yaml

Objects that the file lacks are removed. A file that lacks more than a tenth of them is refused, unless it says
how many it has: expect: { destinations: 5 }. \${CATALOG_X} is filled in here. A secret that is written as
\${kept:…}, as an export has it, stays as it is. See docs/catalog-topic.md.`,
    )
    .action((path: string, flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./import-export.ts')).importCatalog(
          { config, log },
          {
            path,
            isDryRun: flags['dryRun'] === true,
            isRepair: flags['repair'] === true,
            by: textOf(flags['by']),
          },
        ),
      ),
    )
}

function addExport(parent: Command, { command, once }: CommandTools): void {
  command('export', 'print the catalog of the topic as a file, without secrets; or keep all of it', {
    parent,
  })
    .option('--json', 'print JSON')
    .option('--sealed <file>', 'write a backup instead, with sealed secrets and tokens; - is standard output')
    .option('--copy', 'with --sealed: from the last good copy on this machine, without Kafka')
    .addHelpText(
      'after',
      `
Examples:
  sluice catalog export > catalog.yaml
  sluice catalog export --sealed backup.jsonl    (sluice catalog restore backup.jsonl brings it back)

A sealed export is of use only with the keys of catalog.keysFile: keep them elsewhere.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config, log) => {
        const path = textOf(flags['sealed'])
        const isOfCopy = flags['copy'] === true
        if (path !== undefined)
          return (await import('./restore.ts')).exportSealed({ config, log }, { path, isOfCopy })
        if (isOfCopy) {
          const { WrongUseError } = await import('../../roles/start/start-error.ts')
          throw new WrongUseError('--copy needs --sealed FILE.')
        }
        const { exportCatalog } = await import('./import-export.ts')
        return exportCatalog({ config, log }, { asJson: flags['json'] === true })
      }),
    )
}

function addRestore(parent: Command, { command, once, screen }: CommandTools): void {
  command('restore', 'make the topic what a sealed export has, with secrets and tokens, in one change', {
    parent,
  })
    .argument('<file>', 'what `sluice catalog export --sealed` has written; - reads standard input')
    .option('--keep-newer', 'leave what was changed after the export as it is')
    .option('--replace-newer', 'make also that what the export has')
    .option(...dryRunOption)
    .option(...yesOption)
    .option(...byOption)
    .addHelpText(
      'after',
      `
Examples:
  sluice catalog restore backup.jsonl --dry-run
  sluice catalog export --sealed - --copy | sluice catalog restore - --yes

Without --keep-newer or --replace-newer, nothing is changed if something was changed after the export. The
difference is shown before the question. Processes that go on with their copy use the topic again. Tokens that were
revoked after the export come back: look at the lines with token/. A restore is a change, and can be undone, but
not for tokens. See docs/catalog-topic.md.`,
    )
    .action((path: string, flags: Flags) =>
      once(flags, async (config, log) => {
        const [keeps, replaces] = [flags['keepNewer'] === true, flags['replaceNewer'] === true]
        if (keeps && replaces) {
          const { WrongUseError } = await import('../../roles/start/start-error.ts')
          throw new WrongUseError('Give --keep-newer or --replace-newer, not both.')
        }
        return (await import('./restore.ts')).restoreCatalog(
          { config, log, screen },
          {
            path,
            newer: keeps ? 'keep' : replaces ? 'replace' : 'refuse',
            isDryRun: flags['dryRun'] === true,
            isSure: flags['yes'] === true,
            by: textOf(flags['by']),
          },
        )
      }),
    )
}

function addAccept(parent: Command, { command, once, screen }: CommandTools): void {
  command(
    'accept',
    'say that the topic is the catalog as it is, after it was made anew or has lost records',
    {
      parent,
    },
  )
    .option('--after <revision>', 'the last change that a process has seen, as it says', wholeNumber)
    .option(...yesOption)
    .option(...byOption)
    .addHelpText(
      'after',
      `
Processes that have seen more changes than the topic has go on with what they know, until you restore an export, or
give this word. What the topic lacks is then given up. A process that says so even afterwards has seen a change with a
higher number: name this number with --after. See docs/catalog-topic.md.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./restore.ts')).acceptCatalog(
          { config, log, screen },
          {
            after: typeof flags['after'] === 'number' ? flags['after'] : undefined,
            isSure: flags['yes'] === true,
            by: textOf(flags['by']),
          },
        ),
      ),
    )
}

function addHistory(parent: Command, { command, once }: CommandTools): void {
  command('history', 'list the changes of the catalog, newest first', { parent })
    .argument(
      '[object]',
      'only changes of this object, such as destination/crm, with the fields that changed',
    )
    .option('--limit <number>', 'how many changes (default: 20)', wholeNumber)
    .option('--revision <revision>', 'only this change, with all fields that changed', wholeNumber)
    .option('--json', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
Examples:
  sluice catalog history
  sluice catalog history destination/crm
  sluice catalog history --revision 1785317403

Each change has a revision, which is its number. + is a new object, ~ a changed one, - a removed one. Secrets
are not shown, only since when they are set. See docs/catalog-topic.md.`,
    )
    .action((object: string | undefined, flags: Flags) =>
      once(flags, async (config, log) => {
        const { listHistory, showChange } = await import('./history.ts')
        const asJson = flags['json'] === true
        const { revision, limit = 20 } = flags
        return typeof revision === 'number'
          ? showChange({ config, log }, revision, asJson)
          : listHistory({ config, log }, { object, limit: Number(limit), asJson })
      }),
    )
}

function addUndo(parent: Command, { command, once, screen }: CommandTools): void {
  command('undo', 'make the opposite of a change of the catalog, in one change', { parent })
    .argument('<revision>', 'the revision of the change, as `sluice catalog history` shows it', wholeNumber)
    .option(...dryRunOption)
    .option(...yesOption)
    .option(...byOption)
    .addHelpText(
      'after',
      `
Examples:
  sluice catalog undo 1785317403 --dry-run

If an object was changed again since, the command says by which change: undo that one first. An undo is a
change, and can be undone. Secrets come back too.`,
    )
    .action((revision: number, flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./history.ts')).undo(
          { config, log, screen },
          {
            revision,
            isDryRun: flags['dryRun'] === true,
            isSure: flags['yes'] === true,
            by: textOf(flags['by']),
          },
        ),
      ),
    )
}

function addKey(parent: Command, { command, once }: CommandTools): void {
  command('key', 'make a key, as a line for the file of catalog.keysFile', { parent }).action(
    (flags: Flags) => once(flags, async () => [(await import('../../catalog-log/keys.ts')).newKeyLine()]),
  )
}

function addCheck(parent: Command, { command, once }: CommandTools): void {
  command('check', 'name the faults of a catalog, as a worker would', { parent })
    .argument('[file]', 'the file (default: the setting catalog.file)')
    .option(
      '--allow-unset',
      'accept ${CATALOG_X} variables that are not set here, as in continuous integration',
    )
    .option(
      '--against <file>',
      'an earlier version: name what differs, and refuse a file that lacks many of its destinations or sources (default: the catalog that a worker with this state folder used last)',
    )
    .addHelpText(
      'after',
      `
Examples:
  sluice catalog check catalog.yaml
  sluice catalog check catalog.yaml --allow-unset
  sluice catalog check catalog.yaml --against catalog.yaml.old
  sluice catalog check catalog.yaml --delivery-allow-addresses 127.0.0.0/8    (as sluice up does)

The exit code is 0 if the catalog has no faults, and 1 if it has any. docs/catalog.md lists all fields.`,
    )
    .action((path: string | undefined, flags: Flags) =>
      once(flags, async (config) =>
        (await import('./catalog-check.ts')).checkCatalog(config, {
          path,
          against: typeof flags['against'] === 'string' ? flags['against'] : undefined,
          mayLackVariables: flags['allowUnset'] === true,
        }),
      ),
    )
}
