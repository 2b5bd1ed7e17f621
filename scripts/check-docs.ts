import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { adminOpenApi } from '../src/admin/openapi.ts'
import { configKeys } from '../src/config/schema.ts'
import { openApiDocument } from '../src/gateway/http/gateway-openapi.ts'
import { syntaxFaults } from './block-syntax.ts'
import { decisionFaults } from './decisions.ts'
import { type CommandTree, docFaults, readerFaults, spokenFaults } from './docs-faults.ts'
import { blocksOf, linksOf, type Page } from './markdown-page.ts'
import { diagramFault } from './mermaid.ts'
import { metricsTable } from './metrics-table.ts'
import { svgFault } from './svg.ts'

/**
 * `npm run check:docs`: fails in each of these cases.
 *
 * - A page names a file, an anchor, a command, a flag, a metric, a variable, a setting or a route that doesn't
 *   exist, or a value that its setting refuses.
 * - A message of the program, a compose file or the chart names a command or a flag that doesn't exist.
 * - A diagram or a picture can't be read, or a block of code isn't in its language.
 * - A page of `docs` isn't in its index, or doesn't say in its first hundred words whom it is for.
 * - The README has too many words.
 * - A decision is too long, or differs from its row in the index of decisions.
 */
const root = resolve(import.meta.dirname, '..')
/** The README shows the way. What is over this goes to a page of `docs`. */
const maxReadmeWords = 1_200
const run = promisify(execFile)
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const found = (pattern: string): string[] =>
  globSync(pattern, { cwd: root, exclude: ['**/node_modules', 'dist'] }).toSorted()

const [program, series] = await Promise.all([readProgram(), readSeries()])
const facts = {
  program,
  series,
  scripts: new Set(Object.keys(readManifestScripts())),
  benchmarks: new Set(found('bench/*/benchmark.ts').map((file) => file.split('/')[1] ?? '')),
  variables: new Set([...configKeys.map(({ variable }) => variable), ...testVariables()]),
  settings: new Set([...configKeys.map(({ name }) => name), ...chartValues()]),
  refusalOf,
  // The last one is that of a collector of traces.
  routes: [
    ...routesOf(adminOpenApi()),
    ...routesOf(openApiDocument()),
    { method: 'POST', path: '/v1/traces' },
  ],
  exists: (path: string) => existsSync(join(root, path)),
  read,
}
const pages = found('**/*.md').map(pageOf)
/** What tells people to run commands, and isn't a page. */
const spoken = [
  'docker-compose.yml',
  ...found('{src,bin,demo,drill}/**/*.{ts,js}'),
  ...found('deploy/**/*.{yaml,yml,txt,tpl,mjs,json}'),
].map(pageOf)
const faults = [
  ...pages.flatMap((page) => docFaults(page, facts)),
  ...spoken.flatMap((page) => spokenFaults(page, facts)),
  ...(await Promise.all(pages.map(diagramFaults))).flat(),
  ...(await Promise.all(pages.map(syntaxFaults))).flat(),
  ...pages.filter(({ file }) => hasReaders(file)).flatMap(readerFaults),
  ...pictureFaults(),
  ...indexFaults(),
  ...readmeFaults(),
  ...decisionFaults(found('docs/decisions/[0-9]*.md').map(pageOf), pageOf('docs/decisions/README.md')),
]

for (const fault of faults) console.log(fault)
// Without pages, metrics or commands, the check would pass without having checked anything.
const isBlind = pages.length < 10 || facts.series.size < 50 || facts.program.commands.length < 5
if (isBlind) console.log('no pages, metrics or commands were found')
if (faults.length > 0 || isBlind) process.exitCode = 1

/** Returns what a setting expects, if it refuses the value. */
function refusalOf(name: string, value: string): string | undefined {
  const setting = configKeys.find((key) => [key.name, key.variable, key.flag].includes(name))
  return setting === undefined || setting.key.parse(value) !== undefined ? undefined : setting.key.expected
}

function routesOf(document: object): { method: string; path: string }[] {
  const { paths }: { paths?: Record<string, object> } = document
  return Object.entries(paths ?? {}).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
  )
}

function pageOf(file: string): Page {
  return { file, text: read(file) }
}

/**
 * Returns a fault for each page of `docs` that the index doesn't link to. No reader would find such a page.
 */
function indexFaults(): string[] {
  const index = pageOf('docs/README.md')
  const linked = new Set(linksOf(index.text).map(({ target }) => `docs/${target.split('#')[0]}`))
  return found('docs/*.md')
    .filter((file) => file !== index.file && !linked.has(file))
    .map((file) => `${file} is not in docs/README.md: add a row`)
}

function readmeFaults(): string[] {
  const words = read('README.md').trim().split(/\s+/).length
  return words > maxReadmeWords ? [`README.md has ${words} words, of ${maxReadmeWords} at most`] : []
}

/** Pages that people come to from outside of the code. */
function hasReaders(file: string): boolean {
  const others = [
    'README.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'deploy/runbooks/README.md',
    'deploy/helm/sluice/README.md',
  ]
  return /^(docs|clients\/[^/]+)\/[^/]+\.md$/.test(file) || others.includes(file)
}

function pictureFaults(): string[] {
  return found('docs/**/*.svg').flatMap((file) => {
    const fault = svgFault(read(file))
    return fault === undefined ? [] : [`${file} can't be drawn: ${fault}`]
  })
}

async function diagramFaults({ file, text }: Page): Promise<string[]> {
  const diagrams = blocksOf(text).filter(({ language }) => language === 'mermaid')
  const told = await Promise.all(
    diagrams.map(async ({ text: diagram, line }) => {
      const fault = await diagramFault(diagram)
      return fault === undefined ? [] : [`${file}:${line} holds a diagram that Mermaid can't read: ${fault}`]
    }),
  )
  return told.flat()
}

async function readProgram(): Promise<CommandTree> {
  const { stdout } = await run(process.execPath, ['--import', './scripts/print-commands.ts', 'src/main.ts'], {
    cwd: root,
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- print-commands.ts has written it
  return JSON.parse(stdout) as CommandTree
}

async function readSeries(): Promise<ReadonlySet<string>> {
  const told = [...(await metricsTable()).values()].flatMap(({ name, type }) =>
    type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  )
  const rules = [...found('deploy/prometheus/*.rules.yaml'), ...found('deploy/helm/sluice/templates/*')]
  const recorded = rules.flatMap((file) =>
    [...read(file).matchAll(/(?:- record|^  series): (\w\S*)/gm)].map(([, name = '']) => name),
  )
  return new Set([...told, ...recorded])
}

/**
 * Returns the variables that tests, scripts and benchmarks read themselves. They aren't settings of Sluice.
 */
function testVariables(): string[] {
  const texts = ['test', 'scripts', 'bench', 'vitest.config.ts'].flatMap((folder) =>
    found(folder.endsWith('.ts') ? folder : `${folder}/**/*.ts`).map(read),
  )
  return texts.flatMap((text) => text.match(/\bSLUICE_TEST_[A-Z_]+\b/g) ?? [])
}

function readManifestScripts(): Readonly<Record<string, string>> {
  const { scripts = {} }: { scripts?: Record<string, string> } = JSON.parse(read('package.json'))
  return scripts
}

/**
 * Returns the names of the Helm chart's values, such as `worker.replicas`. Pages about Kubernetes name them
 * in the same form as settings.
 */
function chartValues(): string[] {
  const values: Record<string, unknown> = parse(read('deploy/helm/sluice/values.yaml'))
  return Object.entries(values).flatMap(([section, inner]) =>
    typeof inner === 'object' && inner !== null ? Object.keys(inner).map((name) => `${section}.${name}`) : [],
  )
}
