import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { alignTable } from '../../src/config/markdown.ts'
import { findLogLines, type FoundLine, type UnknownLine } from './found-lines.ts'

/** What an operator has to know about a line. */
type Meaning = {
  readonly line: string
  readonly attention: 'no' | 'if it repeats' | 'yes'
  readonly means: string
  /** What to do. Absent if nothing has to be done. */
  readonly do?: string
}

/** The lines that a call writes whose message can't be read from its file. */
type Spoken = Pick<UnknownLine, 'file' | 'expression'> & { readonly lines: readonly string[] }

type Meanings = { readonly spoken: readonly Spoken[]; readonly entries: readonly Meaning[] }

const meaningsFile = 'scripts/log-lines/meanings.yaml'
const order = ['fatal', 'error', 'warn', 'info', 'debug', 'trace']

/**
 * Returns the text of `docs/log-lines.md`. Throws if a line of the code has no entry in `meanings.yaml`, or
 * if an entry is of no line.
 */
export function logLinesMarkdown(root: string): string {
  const meanings = readMeanings(root)
  const { lines, faults } = resolved(findLogLines(root), meanings)
  const all = [...faults, ...faultsOf(lines, meanings.entries)]
  if (all.length > 0) throw new Error(`${meaningsFile}:\n  ${all.join('\n  ')}`)
  const byLine = Map.groupBy(lines, ({ message }) => message)
  const sorted = meanings.entries.toSorted((a, b) => (plainOf(a.line) < plainOf(b.line) ? -1 : 1))
  const sections = (['yes', 'if it repeats', 'no'] as const).map((attention) => {
    const rows = sorted
      .filter((entry) => entry.attention === attention)
      .map((entry) => rowOf(entry, byLine.get(entry.line) ?? []))
    return `## ${headings[attention]}\n\n${tableOf(attention, rows)}`
  })
  return `${intro}\n${sections.join('\n\n')}\n`
}

const headings = {
  yes: 'Lines to act on',
  'if it repeats': 'Lines to look at if they repeat',
  no: 'Lines that only tell what happens',
} as const

const intro = `# Lines of the log

This page is for operators: what each line of Sluice's log means, and what to do about it. Generated from the code and from
\`${meaningsFile}\` by \`npm run generate\`.

A line is a JSON object. \`msg\` is the text below, \`level\` its level, and the other fields say what it is about:
\`destination\`, \`hook\`, \`topic\`, \`partition\` and so on. \`err\` is an error with its causes. In the texts below, \`…\`
stands for what differs. Search this page for the beginning of a line, or for a part of it.

\`log.level\` sets the lowest level that is written ([operations.md](operations.md) says how to change it while a
process runs). What \`sluice\` commands say to people isn't listed here.
`

/** Returns the lines of the table, as `meanings.yaml` has them. */
export function linesWithMeaning(root: string): readonly string[] {
  return readMeanings(root).entries.map(({ line }) => line)
}

function readMeanings(root: string): Meanings {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a file of our own, which faultsOf checks
  return parse(readFileSync(join(root, meaningsFile), 'utf8')) as Meanings
}

/** Adds the lines of calls whose messages the data file names. */
function resolved(
  { lines, unknown }: { lines: readonly FoundLine[]; unknown: readonly UnknownLine[] },
  { spoken }: Meanings,
): { lines: readonly FoundLine[]; faults: readonly string[] } {
  const known = new Map(spoken.map((one) => [placeOf(one), one.lines]))
  const called = new Set(unknown.map(placeOf))
  const added = unknown.flatMap((one) =>
    (known.get(placeOf(one)) ?? []).map((message) => ({ level: one.level, message, file: one.file })),
  )
  const faults = [
    ...[...called]
      .filter((one) => !known.has(one))
      .map((one) => `name the lines that this writes, in \`spoken\`: ${one}`),
    ...[...known.keys()]
      .filter((one) => !called.has(one))
      .map((one) => `no code writes this any more: ${one}`),
  ]
  return { lines: [...lines, ...added], faults }
}

function placeOf({ file, expression }: Pick<UnknownLine, 'file' | 'expression'>): string {
  return `${file}: ${expression}`
}

function faultsOf(lines: readonly FoundLine[], entries: readonly Meaning[]): string[] {
  const told = new Set(entries.map(({ line }) => line))
  const written = new Set(lines.map(({ message }) => message))
  const twice = entries.filter(({ line }, at) => entries.findIndex((one) => one.line === line) !== at)
  return [
    ...[...written]
      .filter((message) => !told.has(message))
      .map((message) => `say what this line means, and what to do: ${JSON.stringify(message)}`),
    ...[...told]
      .filter((line) => !written.has(line))
      .map((line) => `no code writes this: ${JSON.stringify(line)}`),
    ...twice.map(({ line }) => `this has two entries: ${JSON.stringify(line)}`),
    ...entries
      .filter((one) => !(one.attention in headings) || !one.means || (one.attention === 'yes' && !one.do))
      .map(
        ({ line }) => `this needs attention, means, and do if it is to be acted on: ${JSON.stringify(line)}`,
      ),
  ]
}

function rowOf({ line, means, do: act = '' }: Meaning, found: readonly FoundLine[]): readonly string[] {
  const levels = order.filter((level) => found.some((one) => one.level === level))
  const places = [...new Set(found.map(({ file }) => file.replace(/^src\/(.*)\/[^/]*$/, '$1')))]
  return [levels.join(', '), codeOf(line), means, act, places.map((place) => `\`${place}\``).join(', ')]
}

function tableOf(attention: Meaning['attention'], rows: readonly (readonly string[])[]): string {
  const names = ['level', 'line', 'what it means', 'what to do', 'written in']
  const columns = names.map((_, at) => at).filter((at) => attention !== 'no' || at !== 3)
  return alignTable([names, ...rows].map((row) => columns.map((at) => cellOf(row[at] ?? ''))))
}

function cellOf(text: string): string {
  return text.replaceAll('|', String.raw`\|`)
}

/** Lines may have code in them, which can't be nested, or begin like a command. */
function codeOf(line: string): string {
  return line.includes('`') || /^sluice |npm run/.test(line) ? line : `\`${line}\``
}

function plainOf(line: string): string {
  return line
    .replaceAll(/[^a-z0-9 ]/gi, '')
    .trimStart()
    .toLowerCase()
}
