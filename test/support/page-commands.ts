import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { commandsOf, examplesOf, type PageCommand } from '../../scripts/page-commands.ts'

/** The commands of the pages and of the help, and which of them the test of pages can't run. */

const root = resolve(import.meta.dirname, '../..')

/** What a command needs that a test doesn't have, or who runs it instead. */
type Need = 'docker' | 'kubernetes' | 'cloud' | 'minutes' | 'elsewhere'

type Unrun = {
  /** The page, or the file of a help text. `undefined`: each of them. */
  readonly file?: RegExp
  readonly command: RegExp
  readonly needs: Need
  /** What is needed, or the test that runs the command. */
  readonly by: string
}

export const unrun: readonly Unrun[] = [
  {
    file: /^deploy\/runbooks\/(?!README)/,
    command: /./,
    needs: 'elsewhere',
    by: 'test/fault/runbooks.test.ts',
  },
  {
    command: /^docker /,
    needs: 'docker',
    by: 'a Docker engine; test/e2e/long/compose.test.ts runs its services',
  },
  { command: /demo-write-key/, needs: 'docker', by: 'the services of docker-compose.yml' },
  {
    file: /^docs\/growing\.md$/,
    command: /^helm (get|template)/,
    needs: 'elsewhere',
    by: 'test/deploy/growing-recipe.test.ts',
  },
  { command: /^(kubectl|helm) /, needs: 'kubernetes', by: 'a cluster' },
  {
    command: /^npm (ci && npm run demo|run drill)/,
    needs: 'minutes',
    by: 'a Kafka of its own, for minutes: it checks itself',
  },
  {
    command: /^(npm run test:go|go test|cd bench && go run)/,
    needs: 'elsewhere',
    by: 'scripts/test-go.ts',
  },
  { command: /^(gh |git push|go get )/, needs: 'cloud', by: 'a repository at GitHub' },
  { command: /^psql /, needs: 'cloud', by: 'a database of the reader' },
  { file: /^docs\/tutorial\.md$/, command: /./, needs: 'elsewhere', by: 'test/e2e/long/tutorial.test.ts' },
  {
    file: /^docs\/releasing\.md$/,
    command: /^(npm run release|git commit|npx @acme|npm install)/,
    needs: 'elsewhere',
    by: 'test/fault/release-push.test.ts',
  },
  { command: /^kafka-acls\.sh/, needs: 'elsewhere', by: 'test/fault/rights.test.ts' },
  { command: /--reset-offsets/, needs: 'elsewhere', by: 'test/fault/disaster.test.ts' },
  {
    command: /^sluice topics grow (?!.*--dry-run)/,
    needs: 'elsewhere',
    by: 'test/fault/topics-grow.test.ts',
  },
  {
    command: /^sluice log ddl (--apply|\|)/,
    needs: 'elsewhere',
    by: 'test/clients/delivery-log-clickhouse.test.ts',
  },
]

/** The needs for which only the syntax of a command is checked. */
export const onlyRead: ReadonlySet<Need> = new Set(['docker', 'kubernetes', 'cloud'])

/** The pages whose commands are run. */
export const pages: readonly string[] = [
  'README.md',
  ...globSync(['docs/*.md', 'clients/*/README.md', 'deploy/runbooks/*.md'], { cwd: root }).toSorted(),
]

export function readPage(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

export const allCommands: readonly PageCommand[] = [
  ...pages.flatMap((file) => commandsOf({ file, text: readPage(file) })),
  ...globSync('src/commands/**/*.ts', { cwd: root })
    .toSorted()
    .flatMap((file) => examplesOf({ file, text: readPage(file) })),
]

/** Returns why the test of pages doesn't run a command. `undefined`: it runs it. */
export function reasonOf({ file, text }: PageCommand): Unrun | undefined {
  return unrun.find((one) => (one.file?.test(file) ?? true) && one.command.test(text))
}
