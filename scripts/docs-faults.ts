import { posix } from 'node:path'
import { routeFaults, type Route, spokenCalls, valueFaults } from './docs-promises.ts'
import { anchorsOf, blocksOf, type Code, linksOf, type Page, spansOf } from './markdown-page.ts'

/** A command of `sluice` with its flags and subcommands, as commander has them. */
export type CommandTree = {
  readonly name: string
  /** The flags of the command, such as `--processes` and `-V`. */
  readonly flags: readonly string[]
  readonly commands: readonly CommandTree[]
}

/** All things that exist and that pages may name. */
export type DocFacts = {
  readonly scripts: ReadonlySet<string>
  readonly benchmarks: ReadonlySet<string>
  readonly program: CommandTree
  /**
   * The names of all series in Prometheus, including the parts of histograms and the results of recording
   * rules.
   */
  readonly series: ReadonlySet<string>
  /** The names of environment variables, such as `SLUICE_KAFKA_BROKERS`. */
  readonly variables: ReadonlySet<string>
  /** The names of settings, such as `kafka.brokers`. */
  readonly settings: ReadonlySet<string>
  /**
   * Returns what a setting expects, if it refuses a value. `name` is the name of a setting, of its variable or of
   * its flag.
   */
  readonly refusalOf: (name: string, value: string) => string | undefined
  /** The routes of the gateway, of the admin API and of the index. */
  readonly routes: readonly Route[]
  /** Returns true if a file or folder exists. The path is relative to the project's root. */
  readonly exists: (path: string) => boolean
  /** Returns the text of a Markdown file that exists. The path is relative to the project's root. */
  readonly read: (path: string) => string
}

/**
 * Returns a fault for each thing that the page names and that doesn't exist. Each fault is one line, such as
 * `docs/kafka.md:12 …`.
 */
export function docFaults({ file, text }: Page, facts: DocFacts): string[] {
  const code = [...blocksOf(text), ...spansOf(text)].filter(({ language }) => language !== 'mermaid')
  return [
    ...at(1, strangerFault(text)),
    ...linksOf(text).flatMap(({ target, line }) => at(line, linkFault({ file, text }, target, facts))),
    ...code.flatMap((piece) => codeFaults(piece, factsFor(file, facts))),
    ...text.split('\n').flatMap((row, index) => at(index + 1, ...seriesFaults(row, facts))),
  ].map((fault) => `${file}:${fault}`)
}

/**
 * Returns a fault for each command or flag that a program, a compose file or a template of the chart tells people
 * to use, and that doesn't exist.
 */
export function spokenFaults({ file, text }: Page, facts: DocFacts): string[] {
  return text
    .split('\n')
    .flatMap((row, index) =>
      at(index + 1, ...spokenCalls(row, facts).flatMap((rest) => callFaults(rest, facts.program))).map(
        (fault) => `${file}:${fault}`,
      ),
    )
}

/**
 * In a checkout, `npx sluice` runs Sluice. Elsewhere, it runs what somebody has published under this name. So a page
 * that says it says this, too.
 */
function strangerFault(text: string): string | undefined {
  return /npx\s+sluice/.test(text) && !text.includes('npx @OWNER/sluice')
    ? 'says npx sluice, which runs a package of somebody else outside of a checkout: write sluice'
    : undefined
}

/** Returns a fault for a page whose first hundred words don't say whom it is for. */
export function readerFaults({ file, text }: Page): string[] {
  const words = text
    .replaceAll(/^ *```[^]*?^ *```$/gm, '')
    .split(/\s+/)
    .slice(0, 100)
    .join(' ')
  return /\b(is|are) (also )?for\b/.test(words)
    ? []
    : [`${file}:1 doesn't say in its first hundred words whom it is for: add "This page is for …"`]
}

/** A page in a folder of `src` names files of this folder as `lanes/breaker.ts`. */
function factsFor(file: string, facts: DocFacts): DocFacts {
  const folder = posix.dirname(file)
  if (!folder.startsWith('src/')) return facts
  return { ...facts, exists: (path) => facts.exists(path) || facts.exists(`${folder}/${path}`) }
}

function at(line: number, ...faults: readonly (string | undefined)[]): string[] {
  return faults.flatMap((fault) => (fault === undefined ? [] : [`${line} ${fault}`]))
}

function linkFault({ file, text }: Page, target: string, { exists, read }: DocFacts): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined
  const [path = '', anchor] = target.split('#')
  const found = path === '' ? file : posix.normalize(posix.join(posix.dirname(file), decodeURI(path)))
  if (found !== file && !exists(found)) return `links to ${target}, which doesn't exist`
  if (anchor === undefined || !found.endsWith('.md')) return undefined
  return anchorsOf(found === file ? text : read(found)).has(anchor)
    ? undefined
    : `links to ${target}, but ${found} has no heading of that name`
}

function codeFaults({ text, line }: Code, facts: DocFacts): string[] {
  return logicalRows(text).flatMap(({ row, index }) =>
    at(
      line + index,
      ...npmFaults(row, facts),
      ...commandFaults(row, facts),
      ...nameFaults(row, facts),
      ...routeFaults(row, facts),
      ...valueFaults(row, facts),
      ...pathFaults(row, facts),
    ),
  )
}

/**
 * Joins lines that a backslash at the end continues. `index` is the index of the first of the joined lines.
 */
export function logicalRows(text: string): { row: string; index: number }[] {
  const rows: { row: string; index: number }[] = []
  let isContinued = false
  for (const [index, line] of text.split('\n').entries()) {
    const last = rows.at(-1)
    const row = line.replace(/\\$/, ' ')
    if (isContinued && last !== undefined) last.row += row.trimStart()
    else rows.push({ row, index })
    isContinued = line.endsWith('\\')
  }
  return rows
}

function npmFaults(row: string, { scripts, benchmarks }: DocFacts): string[] {
  const unknown = [...row.matchAll(/npm run (?:-s )?([a-z][\w:-]*)/g)].flatMap(([, name = '']) =>
    scripts.has(name) ? [] : [`names \`npm run ${name}\`, which package.json doesn't have`],
  )
  const unmeasured = [...row.matchAll(/npm run bench -- ([a-z]\w*)/g)].flatMap(([, name = '']) =>
    benchmarks.has(name) ? [] : [`names the benchmark ${name}, which bench doesn't have`],
  )
  return [...unknown, ...unmeasured]
}

/**
 * Matches a call of `sluice`. The name must be at the beginning of a command: at the start of the line, or
 * after `npx`, `kubectl exec … --`, a pipe or an assignment.
 */
const call = /(?:^|[|;&(]\s*|npx | -- |[A-Z_]+=\S+ )sluice ([^|;&<>)]+)/g

function commandFaults(row: string, { program }: DocFacts): string[] {
  return [...row.trim().matchAll(call)].flatMap(([, rest = '']) =>
    callFaults(rest.split('#')[0] ?? '', program),
  )
}

function callFaults(rest: string, program: CommandTree): string[] {
  const words = rest
    .trim()
    .replace(/^help /, '')
    .split(/\s+/)
  let command = program
  for (const word of words) {
    const next = command.commands.find(({ name }) => name === word)
    if (next === undefined) break
    command = next
  }
  const first = words[command === program ? 0 : 1] ?? ''
  if (command.commands.length > 0 && /^[a-z]/.test(first) && first !== command.name)
    return [`names \`sluice ${rest.trim()}\`, but there is no such command`]
  return words
    .map((word) => /^--[a-z][a-z-]*/.exec(word)?.[0])
    .filter((flag) => flag !== undefined)
    .filter((flag) => flag !== '--help' && !command.flags.includes(flag))
    .map((flag) => `names ${flag}, which \`sluice ${command.name}\` doesn't take`)
}

function nameFaults(row: string, { variables, settings }: DocFacts): string[] {
  const unset = [...row.matchAll(/\bSLUICE_[A-Z][A-Z_]*[A-Z]\b(?!_)/g)].flatMap(([name]) =>
    variables.has(name) ? [] : [`names the variable ${name}, which nothing reads`],
  )
  const sections = new Set([...settings].map((name) => name.split('.')[0]))
  const [, key = '', section = ''] = /^((\w+)\.[a-z][A-Za-z]*)(?:$|[=: ])/.exec(row.trim()) ?? []
  const isSetting = sections.has(section) && !fileEnding.test(key)
  return isSetting && !settings.has(key) ? [...unset, `names the setting ${key}, which doesn't exist`] : unset
}

const fileEnding = /\.(yaml|yml|json|ts|md|go|avsc|js|log|sqlite)$/

/** Matches the path of a file or folder in one of the project's own folders. */
const path =
  /(?<![\w./:@-])(?:src|test|scripts|docs|deploy|bench|demo|drill|schemas|clients|bin)\/[\w./-]*\w(?![\w*{/])/g

function pathFaults(row: string, { exists }: DocFacts): string[] {
  const inSrc = /^[a-z-]+\/[\w/-]+\.ts$/.exec(row.trim())?.[0]
  const names = [...row.matchAll(path)].map(([name]) => name)
  return [...names, ...(inSrc === undefined || names.length > 0 ? [] : [inSrc])].flatMap((name) =>
    exists(name) || exists(`src/${name}`) ? [] : [`names ${name}, which doesn't exist`],
  )
}

/**
 * Returns a fault for each metric that doesn't exist. A name that ends with `_`, or that a glob follows,
 * stands for all metrics that begin with it.
 */
function seriesFaults(row: string, { series }: DocFacts): string[] {
  return [...row.matchAll(/\bsluice(?:_|:(?=\w*[_:]))[a-z0-9_:]*[a-z0-9_](?:…|\.[+*]|\*)?/g)].flatMap(
    ([name]) => {
      const prefix = /^(.*[_:])(?:…|\.[+*]|\*)?$/.exec(name)?.[1]
      const isKnown =
        series.has(name) || (prefix !== undefined && [...series].some((known) => known.startsWith(prefix)))
      return isKnown ? [] : [`names the metric ${name}, which nobody tells`]
    },
  )
}
