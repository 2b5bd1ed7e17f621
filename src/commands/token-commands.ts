import { type Command, Option } from 'commander'
import { type CommandTools, flagOf, type Flags, textOf, writeError } from './command/tools.ts'

export function addTokenCommands(tools: CommandTools): void {
  const parent = tools.program
    .command('tokens')
    .description(
      'make, list and revoke tokens of the admin API, with a scope and an end (catalog.source=topic)',
    )
  addList(parent, tools)
  addCreate(parent, tools)
  addRemove(parent, tools)
}

function addList(parent: Command, { command, once }: CommandTools): void {
  command('list', 'list the tokens in the topic of the catalog', { parent })
    .option('--json', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
The tokens of the file (admin.tokensFile) are not listed. When a token was used last, each process of the admin API
knows for itself: GET /v1/tokens.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./tokens.ts')).listTokens({ config, log }, { asJson: flags['json'] === true }),
      ),
    )
}

function addCreate(parent: Command, { command, once }: CommandTools): void {
  command('create', 'make a token, print it this once, and keep its hash in the topic', { parent })
    .requiredOption('--name <name>', 'who it is for: the audit trail has it')
    .addOption(
      new Option('--right <right>', 'what it may do')
        .choices(['read', 'operate', 'admin'])
        .makeOptionMandatory(),
    )
    .option('--content', 'it sees what messages contain (with operate and admin it does anyway)')
    .option('--no-content', 'it does not see what messages contain')
    .option('--all', 'for the whole installation')
    .option('--label <label>', 'only for destinations and sources with this label, such as tenant=acme')
    .option('--destination <id...>', 'only for these destinations')
    .option('--expires <when>', 'when it ends: after days or hours (90d, 12h), at a time, or never', '90d')
    .option('--by <name>', 'who makes it (default: the user of this machine)')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  sluice tokens create --name acme-portal --right operate --label tenant=acme
  sluice tokens create --name night-shift --right read --destination crm erp --expires 12h
  sluice tokens create --name ci --right admin --all --expires 2027-01-31T00:00:00Z

The token goes to standard output, and what it may do to standard error. Running processes take it within a second.
\`sluice admin token create\` is another way: it makes a line for the file of admin.tokensFile, which needs neither
Kafka nor catalog.source=topic. Such a token is for the whole installation, and has no end. See docs/admin-api.md.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config, log) => {
        const { destination } = flags
        const order = {
          name: String(flags['name']),
          right: String(flags['right']),
          seesContent: flagOf(flags['content']),
          isForAll: flags['all'] === true,
          label: textOf(flags['label']),
          destinations: Array.isArray(destination) ? destination.map(String) : undefined,
          expires: String(flags['expires']),
          by: textOf(flags['by']),
          asJson: flags['json'] === true,
        }
        const { line, said } = await (await import('./tokens.ts')).createToken({ config, log }, order)
        for (const text of said) writeError(text)
        return [line]
      }),
    )
}

function addRemove(parent: Command, { command, once }: CommandTools): void {
  command('rm', 'revoke a token of the topic: running processes refuse it within a second', { parent })
    .argument('<token>', 'its name')
    .option('--by <name>', 'who revokes it (default: the user of this machine)')
    .action((name: string, flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./tokens.ts')).removeToken({ config, log }, { name, by: textOf(flags['by']) }),
      ),
    )
}
