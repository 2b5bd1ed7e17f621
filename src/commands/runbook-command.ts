import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nearest } from '../catalog/nearest.ts'
import { WrongUseError } from '../roles/start/start-error.ts'
import { packageFolder } from '../telemetry/build-info.ts'
import { type CommandTools, writeLine } from './command/tools.ts'

export function addRunbookCommand({ program }: CommandTools): void {
  program
    .command('runbook')
    .description('print what an alert means, how bad it is, what to look at and what to do')
    .argument('[name]', 'the name of an alert or of a runbook; without it, all of them are listed')
    .addHelpText(
      'after',
      `
Examples:
  sluice runbook
  sluice runbook SluiceEndpointFailing
  sluice runbook lag

The runbooks are a part of the program, so this needs neither a network nor a configuration. In a cluster, any pod
has the runbooks of its own version: kubectl exec POD -- sluice runbook lag`,
    )
    .action((name: string | undefined) => {
      for (const line of name === undefined ? listRunbooks() : showRunbook(name)) writeLine(line)
    })
}

type Runbook = {
  /** The name of the page's file, without its ending. */
  readonly name: string
  readonly title: string
  readonly alerts: readonly string[]
  readonly text: string
}

/** The page about the variables that the commands of all runbooks use. It is about no alert. */
const variablesPage = 'README'

/** Returns one line for each runbook, with its title and its alerts below. */
export function listRunbooks(): string[] {
  const pages = runbooks().filter(({ name }) => name !== variablesPage)
  const width = Math.max(...pages.map(({ name }) => name.length))
  return [
    ...pages.flatMap(({ name, title, alerts }) => [
      `${name.padEnd(width)}  ${title}`,
      ...(alerts.length === 0 ? [] : [`${' '.repeat(width)}  ${alerts.join(', ')}`]),
    ]),
    '',
    '`sluice runbook NAME` prints one of them; NAME may be that of an alert. `sluice runbook variables` says which',
    'variables their commands use.',
  ]
}

/** Returns the lines of the runbook with this name, or of the one about the alert with this name. */
export function showRunbook(asked: string): string[] {
  const pages = runbooks()
  const wanted = asked === 'variables' ? variablesPage : basename(asked, '.md')
  const page = pages.find(({ name, alerts }) => name === wanted || alerts.includes(wanted))
  if (page === undefined) throw new WrongUseError(unknownText(asked, pages))
  return readable(page.text).trimEnd().split('\n')
}

function unknownText(asked: string, pages: readonly Runbook[]): string {
  const names = pages.flatMap(({ name, alerts }) => (name === variablesPage ? [] : [name, ...alerts]))
  const meant = nearest(asked, names)
  const advice =
    meant === undefined ? '`sluice runbook` lists all of them' : `did you mean \`sluice runbook ${meant}\`?`
  return `there is no runbook ${asked}; ${advice}`
}

/** Returns the page with its links to other runbooks as commands, because a terminal can't follow links. */
function readable(text: string): string {
  return text
    .replaceAll(/\[([^\]]+)\]\(README\.md[^)]*\)/g, '$1 (`sluice runbook variables`)')
    .replaceAll(/\[([^\]]+)\]\(([\w-]+)\.md[^)]*\)/g, '$1 (`sluice runbook $2`)')
}

function runbooks(): Runbook[] {
  const folder = join(fileURLToPath(packageFolder), 'deploy/runbooks')
  return globSync('*.md', { cwd: folder })
    .toSorted()
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8')
      const [title = ''] = /(?<=^# ).*/m.exec(text) ?? []
      const [told = ''] = /^Alerts?: .*$/m.exec(text) ?? []
      return { name: basename(file, '.md'), title, alerts: told.match(/\bSluice\w+/g) ?? [], text }
    })
}
