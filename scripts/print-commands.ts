import { Command } from 'commander'
import type { CommandTree } from './docs-faults.ts'

/**
 * Makes `src/main.ts` print its commands as JSON (a `CommandTree`) instead of running a command:
 * `node --import ./scripts/print-commands.ts src/main.ts`.
 */
Command.prototype.parseAsync = async function printCommands(this: Command) {
  process.stdout.write(JSON.stringify(treeOf(this)))
  return this
}

function treeOf(command: Command): CommandTree {
  return {
    name: command.name(),
    flags: command.options.flatMap(({ short, long, flags }) => [
      ...(short === undefined ? [] : [short]),
      ...(long === undefined || long === null ? [] : [long]),
      ...(flags.match(/--[a-z-]+/g) ?? []),
    ]),
    commands: command.commands.map(treeOf),
  }
}
