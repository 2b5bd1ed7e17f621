import type { Command } from 'commander'
import { byOption, type CommandTools, type Flags, textOf, wholeNumber, yesOption } from '../command/tools.ts'

export function addSourceCommands(tools: CommandTools): void {
  const parent = tools.program
    .command('sources')
    .description('list and change the sources of the topic, and their write keys (catalog.source=topic)')
  addList(parent, tools)
  addGet(parent, tools)
  addSet(parent, tools)
  addKeyCommand(parent, tools)
  addRemove(parent, tools)
}

function addList(parent: Command, { command, once }: CommandTools): void {
  command('list', 'list the sources of the topic', { parent })
    .option('--json', 'print JSON, one object a line')
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./sources.ts')).listSources({ config, log }, { asJson: flags['json'] === true }),
      ),
    )
}

function addGet(parent: Command, { command, once }: CommandTools): void {
  command('get', 'print a source of the topic, without its server keys', { parent })
    .argument('<source>', 'its id in the catalog')
    .option('--json', 'print one JSON object')
    .action((id: string, flags: Flags) =>
      once(flags, async (config, log) =>
        (await edits()).getObject(
          { config, log },
          { kind: 'source', id },
          { asJson: flags['json'] === true },
        ),
      ),
    )
}

function addSet(parent: Command, { command, once }: CommandTools): void {
  command('set', 'make or replace a source in the topic', { parent })
    .argument('<source>', 'its id in the catalog')
    .argument('<file>', 'its fields, YAML or JSON; - reads them from standard input')
    .option('--version <version>', 'refuse the change unless the source has this version now', wholeNumber)
    .option(...byOption)
    .addHelpText(
      'after',
      `
Examples:
  echo 'name: Web shop' | sluice sources set shop - && sluice sources key shop

Gateways and workers use the change within a second. docs/catalog.md lists all fields.`,
    )
    .action((id: string, path: string, flags: Flags) =>
      once(flags, async (config, log) => {
        const version = typeof flags['version'] === 'number' ? flags['version'] : undefined
        const order = { kind: 'source', id, path, version, by: textOf(flags['by']) } as const
        return (await edits()).setObject({ config, log }, order)
      }),
    )
}

function addKeyCommand(parent: Command, { command, once, screen }: CommandTools): void {
  command('key', 'make a new write key of a source, or remove one', { parent })
    .argument('<source>', 'its id in the catalog')
    .option('--end <key>', 'remove the write key that begins so, and make none')
    .option('--yes', 'do not ask before a key is removed')
    .option(...byOption)
    .addHelpText(
      'after',
      `
Examples:
  sluice sources key shop
  sluice sources key shop --end wk_4Hq8

A source may have many write keys, and all of them are valid. To replace one, make a new key, give it to the
clients, and remove the old one.`,
    )
    .action((id: string, flags: Flags) =>
      once(flags, async (config, log) => {
        const { addKey, endKey } = await import('./sources.ts')
        const [prefix, by] = [textOf(flags['end']), textOf(flags['by'])]
        if (prefix === undefined) return addKey({ config, log }, { id, by })
        return endKey({ config, log, screen }, { id, by, prefix, isSure: flags['yes'] === true })
      }),
    )
}

function addRemove(parent: Command, { command, once, screen }: CommandTools): void {
  command('rm', 'remove a source from the topic', { parent })
    .argument('<source>', 'its id in the catalog')
    .option(...yesOption)
    .option(...byOption)
    .action((id: string, flags: Flags) =>
      once(flags, async (config, log) => {
        const { refuseInFile } = await import('../../roles/catalog/in-file.ts')
        refuseInFile(config, { deed: 'remove', kind: 'source', id })
        const { confirms } = await import('../command/question.ts')
        const question = `Remove the source ${id}? The gateway refuses what clients send with its keys.`
        if (flags['yes'] !== true && !(await confirms(screen, question))) return ['Nothing was removed.']
        return (await edits()).removeObject({ config, log }, { kind: 'source', id, by: textOf(flags['by']) })
      }),
    )
}

function edits() {
  return import('../command/edit-object.ts')
}
