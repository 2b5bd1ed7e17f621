import { Option } from 'commander'
import { runRole } from './command/run-role.ts'
import { type CommandTools, flagOf, type Flags, writeError, writeLine } from './command/tools.ts'

export function addAdminCommands({ command, configOf }: CommandTools): void {
  const shown = { adminPort: '--port' }
  const about =
    'answer the HTTP API: destinations, replays, the delivery log, and who did what; docs/admin-api.md'
  const admin = command('admin', about, { shown }).action((flags: Flags) =>
    runRole(
      async (options) => (await import('../roles/admin.ts')).startAdmin(options),
      configOf(flags).config,
    ),
  )
  admin
    .command('token')
    .description('make lines for the file of its first tokens (`sluice tokens` makes all others)')
    .command('create')
    .description(
      'make a token for the whole installation, without an end: its line for the token file goes to standard output, the token itself to standard error',
    )
    .requiredOption('--name <name>', 'who it is for: the audit trail has it')
    .addOption(
      new Option('--right <right>', 'what it may do')
        .choices(['read', 'operate', 'admin'])
        .makeOptionMandatory(),
    )
    .option('--content', 'it sees what messages contain (with operate and admin it does anyway)')
    .option('--no-content', 'it does not see what messages contain')
    .action(async ({ name, right, content }: Flags) => {
      const { newToken } = await import('../roles/admin-tokens.ts')
      const { line, said } = newToken(String(name), String(right), flagOf(content))
      for (const text of said) writeError(text)
      writeLine(line)
    })
}
