import { type Command, InvalidArgumentError, Option } from 'commander'
import type * as destinations from './destinations.ts'
import { listedStates } from '../command/command-choices.ts'
import { WrongUseError } from '../../roles/start/start-error.ts'
import { byOption, dryRunOption, type CommandTools, type Flags, textOf, yesOption } from '../command/tools.ts'

export function addDestinationCommands(tools: CommandTools): void {
  const parent = tools.program
    .command('destinations')
    .description(
      'list and test destinations; resume those that Sluice has paused because their URLs failed for too long or are gone; try now what waits for a retry; give up what waits',
    )
  addList(parent, tools)
  addStatus(parent, tools)
  addTest(parent, tools)
  addPaused(parent, tools)
  addResume(parent, tools)
  addRetryNow(parent, tools)
  addDrop(parent, tools)
  addGet(parent, tools)
  addSet(parent, tools)
  addCreate(parent, tools)
  addRotate(parent, tools)
  addPause(parent, tools)
  addRemove(parent, tools)
}

function versionOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('`sluice destinations get` shows the version, which is a whole number.')
}

function addGet(parent: Command, { command, once }: CommandTools): void {
  command('get', 'print a destination of the topic, without secrets (catalog.source=topic)', { parent })
    .argument('<destination>', 'its id in the catalog')
    .option('--json', 'print one JSON object')
    .action((id: string, flags: Flags) =>
      once(flags, async (config, log) =>
        (await edits()).getObject(
          { config, log },
          { kind: 'destination', id },
          { asJson: flags['json'] === true },
        ),
      ),
    )
}

/** The options of the settings that people change in an incident. `none` removes a setting. */
function addSettings(command: Command): Command {
  return command
    .option('--rate <number>', 'send at most so many requests a second; none: no limit', numberOrNone)
    .option(
      '--max-in-flight <number>',
      'make at most so many deliveries at once in each process; none: the default',
      numberOrNone,
    )
    .option('--timeout <time>', 'wait so long for an answer, such as 2s; none: delivery.timeout')
}

const none = 'none'

function numberOrNone(text: string): number | typeof none {
  if (text === none) return none
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Give a number, or none.')
}

/** Returns the fields that the options of settings set. `null`: the field is removed. */
function settingsIn({ rate, maxInFlight, timeout }: Flags): Readonly<Record<string, unknown>> {
  return {
    ...(rate !== undefined && { rateLimit: rate === none ? null : { perSecond: rate } }),
    ...(maxInFlight !== undefined && { maxInFlight: maxInFlight === none ? null : maxInFlight }),
    ...(timeout !== undefined && { timeout: timeout === none ? null : timeout }),
  }
}

function addSet(parent: Command, { command, once }: CommandTools): void {
  const about = 'make or replace a destination in the topic, or change settings of it (catalog.source=topic)'
  addSettings(command('set', about, { parent }).argument('<destination>', 'its id in the catalog'))
    .argument('[file]', 'its fields, YAML or JSON; - reads them from standard input')
    .option('--version <version>', 'refuse the change unless the destination has this version now', versionOf)
    .option(...byOption)
    .addHelpText(
      'after',
      `
Examples:
  echo '{ "sources": ["shop"], "hooks": [{ "url": "https://example.com/hook" }] }' | sluice destinations set crm -
  sluice destinations get crm > crm.yaml && $EDITOR crm.yaml && sluice destinations set crm crm.yaml
  sluice destinations set crm --rate 20 --timeout 5s

Without a file, only what the options name is changed. Workers use the change within a second. docs/catalog.md lists all fields.`,
    )
    .action((id: string, path: string | undefined, flags: Flags) => {
      const fields = settingsIn(flags)
      if (path === undefined && Object.keys(fields).length === 0)
        throw new WrongUseError(
          'Name a file with the fields of the destination, or say what to change: --rate, --max-in-flight, --timeout.',
        )
      const version = typeof flags['version'] === 'number' ? flags['version'] : undefined
      const order = { kind: 'destination', id, fields, version, by: textOf(flags['by']) } as const
      return once(flags, async (config, log) => {
        const { patchObject, setObject } = await edits()
        return path === undefined
          ? patchObject({ config, log }, order)
          : setObject({ config, log }, { ...order, path })
      })
    })
}

function addCreate(parent: Command, { command, once }: CommandTools): void {
  const about = 'make a destination that does not exist yet in the topic (catalog.source=topic)'
  addSettings(command('create', about, { parent }).argument('<destination>', 'its id in the catalog'))
    .argument('[file]', 'its fields, YAML or JSON; - reads them from standard input')
    .option('--url <url>', 'post messages to this URL')
    .option('--source <id...>', 'the sources whose messages it gets')
    .option(...byOption)
    .addHelpText(
      'after',
      `
Example:
  sluice destinations create crm --url https://example.com/hook --source shop`,
    )
    .action((id: string, path: string | undefined, flags: Flags) => {
      const { url, source } = flags
      if (path === undefined && url === undefined)
        throw new WrongUseError('Name a file with the fields of the destination, or give --url and --source.')
      const fields = {
        ...(url !== undefined && { hooks: [{ url }] }),
        ...(source !== undefined ? { sources: source } : path === undefined && { sources: [] }),
        ...settingsIn(flags),
      }
      return once(flags, async (config, log) => {
        const order = { kind: 'destination', id, path, fields, by: textOf(flags['by']) } as const
        return (await edits()).createObject({ config, log }, order)
      })
    })
}

function addRotate(parent: Command, { command, once }: CommandTools): void {
  command('rotate', 'make a new secret of a destination in the topic, beside the old one', { parent })
    .argument('<destination>', 'its id in the catalog')
    .option('--end', 'end the old secret, so that only the new one is used')
    .option('--ed25519', 'make or end keys of Ed25519 instead of the secret: receivers get the public key')
    .option(
      '--old-ends-at <time>',
      'when the old secret ends by itself (ISO 8601); needed without Standard Webhooks',
    )
    .option('--dry-run', 'only look whether this can be done')
    .option(...byOption)
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  sluice destinations rotate crm
  sluice destinations rotate crm --end
  sluice destinations rotate crm --ed25519

The new secret is shown once. With Standard Webhooks, requests are signed with both secrets until --end. The
header X-Signature has room for one signature only: it is made with the old secret until the old one ends. See
docs/verifying-signatures.md.`,
    )
    .action((id: string, flags: Flags) =>
      once(flags, async (config, log) =>
        (await import('./rotate.ts')).rotate(
          { config, log },
          {
            id,
            isEnd: flags['end'] === true,
            isEd25519: flags['ed25519'] === true,
            oldEndsAt: textOf(flags['oldEndsAt']),
            isDryRun: flags['dryRun'] === true,
            by: textOf(flags['by']),
            asJson: flags['json'] === true,
          },
        ),
      ),
    )
}

function addPause(parent: Command, tools: CommandTools): void {
  const { command, once } = tools
  const about = 'pause a destination in the topic, or many: their messages wait (catalog.source=topic)'
  addChoice(command('pause', about, { parent }).argument('[destination]', 'its id in the catalog'))
    .option(...byOption)
    .addHelpText(
      'after',
      `
Examples:
  sluice destinations pause crm
  sluice destinations pause --label tenant=acme --dry-run
  sluice destinations pause --label tenant=acme --yes

Many are paused in one change, which \`sluice catalog undo\` takes back.`,
    )
    .action((id: string | undefined, flags: Flags) =>
      once(flags, async (config, log) => {
        if (isChoice(id, flags)) return changeChosen(tools, { config, log }, 'pause', flags)
        if (id === undefined)
          throw new WrongUseError('Name a destination, or choose some with --label or --search.')
        return (await edits()).pause({ config, log }, { id, by: textOf(flags['by']) })
      }),
    )
}

/** The options of commands that do the same to many destinations. */
function addChoice(command: Command): Command {
  return command
    .option('--label <label>', 'all destinations with this label, such as tenant=acme')
    .option('--search <text>', 'all destinations whose id, name or host has this text')
    .option(...dryRunOption)
    .option(...yesOption)
}

/** Returns true if many are chosen. Throws if one is named too. */
function isChoice(id: string | undefined, { label, search, dryRun }: Flags): boolean {
  const isMany = label !== undefined || search !== undefined
  if (isMany && id !== undefined)
    throw new WrongUseError('Name a destination, or choose some with --label or --search, and not both.')
  if (!isMany && dryRun === true) throw new WrongUseError('--dry-run is for --label and --search.')
  return isMany
}

async function changeChosen(
  { screen }: CommandTools,
  run: Pick<destinations.Run, 'config' | 'log'>,
  deed: 'pause' | 'resume',
  flags: Flags,
): Promise<string[]> {
  const { changeChosen: change } = await import('./many.ts')
  return change(
    { ...run, screen },
    {
      deed,
      label: textOf(flags['label']),
      search: textOf(flags['search']),
      isDryRun: flags['dryRun'] === true,
      isSure: flags['yes'] === true,
      by: textOf(flags['by']),
    },
  )
}

function addRemove(parent: Command, { command, once, screen }: CommandTools): void {
  command('rm', 'remove a destination from the topic (catalog.source=topic)', { parent })
    .argument('<destination>', 'its id in the catalog')
    .option(...yesOption)
    .option(...byOption)
    .action((id: string, flags: Flags) =>
      once(flags, async (config, log) => {
        const { refuseInFile } = await import('../../roles/catalog/in-file.ts')
        refuseInFile(config, { deed: 'remove', kind: 'destination', id })
        const { confirms } = await import('../command/question.ts')
        const question = `Remove the destination ${id}? What waits for it becomes dead letters (destination_removed).`
        if (flags['yes'] !== true && !(await confirms(screen, question))) return ['Nothing was removed.']
        return (await edits()).removeObject(
          { config, log },
          { kind: 'destination', id, by: textOf(flags['by']) },
        )
      }),
    )
}

function edits() {
  return import('../command/edit-object.ts')
}

function addList(parent: Command, { command, once, screen }: CommandTools): void {
  command('list', 'list the destinations of the catalog, with their present states', { parent })
    .option('--source <id>', 'only destinations of this source')
    .addOption(
      new Option('--state <state>', 'only destinations in this state or condition').choices(listedStates),
    )
    .option('--search <text>', 'only destinations whose id, name or host has this text')
    .option('--label <key=value>', 'only destinations with this label')
    .option('--worst', 'the worst first, and not by their ids (default with --state)')
    .option('--limit <number>', 'show at most so many', limitOf)
    .option('--json', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
Examples:
  sluice destinations list --state failing --limit 20
  sluice destinations list --label tenant=acme

The condition is failing (a URL fails), gone (a URL has answered 410), auto_paused (Sluice has paused it),
paced (messages wait for their turn), paused, healthy or off. The other columns say how many messages wait for
their turn, since when the oldest of them waits, in how long all of them are sent at the present rate, how many
have failed and wait for their next try (500 to 620: not all of these are counted yet), and how much the endpoint
takes, if it is less than it could get. A ? is not known. See docs/status.md.`,
    )
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await load()).listAll(
          { config, log, screen },
          {
            sourceId: textOf(flags['source']),
            state: textOf(flags['state']),
            search: textOf(flags['search']),
            label: textOf(flags['label']),
            isByWorst: flags['worst'] === true || flags['state'] !== undefined,
            limit: typeof flags['limit'] === 'number' ? flags['limit'] : undefined,
            asJson: flags['json'] === true,
          },
        ),
      ),
    )
}

function limitOf(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Give a whole number from 1.')
}

function addStatus(parent: Command, { command, once, screen }: CommandTools): void {
  command('status', 'say how a destination is, which of its URLs fail, and what to do', { parent })
    .argument('<destination>', 'its id in the catalog')
    .option('--json', 'print one JSON object')
    .action((destinationId: string, flags: Flags) =>
      once(flags, async (config, log) =>
        (await load()).showStatus({ config, log, screen }, { destinationId, asJson: flags['json'] === true }),
      ),
    )
}

function addTest(parent: Command, { command, once }: CommandTools): void {
  command('test', 'send one test message to the URLs of a destination, without Kafka', { parent })
    .argument('<destination>', 'its id in the catalog')
    .argument(
      '[message]',
      'a Segment message as JSON; - reads it from standard input (default: a track, "Sluice Test")',
    )
    .option('--hook <id>', 'send only to the URL with this id (default: to all URLs)')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  sluice destinations test crm
  sluice destinations test crm '{"type":"identify","userId":"u1","traits":{"plan":"pro"}}' --hook primary

The request is the one that a worker would make, with the header X-Sluice-Test added. The state,
the filter and the rate limit of the destination don't stop it. The delivery log doesn't have it.

The exit code is 0 if every URL accepts the message. It is 1 if any URL doesn't, or if the catalog or a setting
has a fault. It is 2 if there is no such destination or URL, or if a worker would refuse the message.`,
    )
    .action((destinationId: string, message: string | undefined, flags: Flags) =>
      once(flags, async (config, log) => {
        const order = { destinationId, message, hookId: textOf(flags['hook']) }
        const { tryDestination } = await import('./try-destination.ts')
        const asJson = flags['json'] === true
        const { lines, areAllAccepted } = await tryDestination(config, log, order, { asJson })
        if (!areAllAccepted) process.exitCode = 1
        return lines
      }),
    )
}

function addPaused(parent: Command, { command, once, screen }: CommandTools): void {
  command('paused', 'list destinations that Sluice has paused', { parent })
    .option('--json', 'print JSON, one object a line')
    .action((flags: Flags) =>
      once(flags, async (config, log) =>
        (await load()).listPaused({ config, log, screen }, { asJson: flags['json'] === true }),
      ),
    )
}

function addResume(parent: Command, tools: CommandTools): void {
  const { command, once, screen } = tools
  const about = 'resume a destination, or many that are paused in the topic'
  addChoice(command('resume', about, { parent }).argument('[destination]', 'its id in the catalog'))
    .option('--all', 'resume all destinations that Sluice has paused')
    .option('--detach', 'end at once, without waiting until all workers know of the change')
    .option('--by <name>', 'who resumes it, for the audit trail (default: the user of this machine)')
    .option('--json', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
Examples:
  sluice destinations test crm && sluice destinations resume crm
  sluice destinations resume --label tenant=acme --yes

--label and --search resume what is paused in the topic of the catalog, and not what Sluice has paused.

The messages that came for it meanwhile wait, and are delivered now. With notices.whileAutoPaused=dead-letter
they are dead letters, and stay dead letters until you replay them. A URL that answered 410 is asked again. See
docs/notices.md.`,
    )
    .action((destination: string | undefined, flags: Flags) =>
      once(flags, async (config, log) => {
        if (isChoice(destination, flags)) return changeChosen(tools, { config, log }, 'resume', flags)
        const order = {
          destinationId: destination,
          isForAll: flags['all'] === true,
          by: textOf(flags['by']),
          isDetached: flags['detach'] === true,
          asJson: flags['json'] === true,
        }
        return (await load()).resumeDestinations({ config, log, screen }, order)
      }),
    )
}

function addRetryNow(parent: Command, { command, once, screen }: CommandTools): void {
  command('retry-now', 'try the messages of a destination now that wait for a retry', { parent })
    .argument('<destination>', 'its id in the catalog')
    .option('--message-id <id>', 'only the message with this id')
    .option('--dry-run', 'only look whether this can be done')
    .option('--by <name>', 'who does it, for the audit trail (default: the user of this machine)')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  sluice destinations test crm && sluice destinations retry-now crm
  sluice destinations retry-now crm --message-id 5f3c1d0a

Workers begin within 2 s with a few messages, and go on as these arrive. If too many fail, the rest keeps its
time. No message is tried twice. An edit of the URL, headers or secret of a destination does the same by
itself, and so does a destination that becomes on again. See docs/retry-now.md.`,
    )
    .action((destinationId: string, flags: Flags) =>
      once(flags, async (config, log) =>
        (await load()).retryNow(
          { config, log, screen },
          {
            destinationId,
            messageId: textOf(flags['messageId']),
            isPreview: flags['dryRun'] === true,
            by: textOf(flags['by']),
            asJson: flags['json'] === true,
          },
        ),
      ),
    )
}

function addDrop(parent: Command, { command, once, screen }: CommandTools): void {
  command('drop', 'make dead letters of the messages of a destination that wait', { parent })
    .argument('<destination>', 'its id in the catalog')
    .option('--waiting', 'what waits in its queue, and on the retry topics (must be given)')
    .option('--dry-run', 'only say how many wait')
    .option(...yesOption)
    .option('--by <name>', 'who does it, for the audit trail (default: the user of this machine)')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  sluice destinations drop crm --waiting --dry-run
  sluice destinations drop crm --waiting --yes

Without a terminal, --yes must be given. Messages that come later are not dropped. The dead letters have the
reason dropped, and a replay sends them after all. See docs/waiting.md for what is not reached.`,
    )
    .action((destinationId: string, flags: Flags) =>
      once(flags, async (config, log) =>
        (await load()).dropWaiting(
          { config, log, screen },
          {
            destinationId,
            isOfWaiting: flags['waiting'] === true,
            isPreview: flags['dryRun'] === true,
            isSure: flags['yes'] === true,
            by: textOf(flags['by']),
            asJson: flags['json'] === true,
          },
        ),
      ),
    )
}

function load(): Promise<typeof destinations> {
  return import('./destinations.ts')
}
