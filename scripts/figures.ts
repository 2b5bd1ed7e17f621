import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type LongestClass, longestClass, openerShare, wordCount } from './prose.ts'
import { measureSizes, type SizeRule } from './sizes.ts'

/**
 * Prints figures about the size and readability of the project: `node scripts/figures.ts [FOLDER]`. FOLDER is
 * another checkout to compare with. The other checkout needs its own `node_modules`.
 */
const root = resolve(process.argv[2] ?? join(import.meta.dirname, '..'))
const sources = globSync('src/**/*.ts', { cwd: root }).toSorted()
if (sources.length === 0) throw new Error(`${root} has no src`)
const texts = new Map(sources.map((file) => [file, readFileSync(join(root, file), 'utf8')]))

const smaller = { 'max-lines': 300, 'max-lines-per-function': 40, 'max-params': 3 }
const sizes = await measureSizes(root, smaller, ['src'])
const lines = [...texts].map(([file, text]) => ({ file, lines: text.split('\n').length - 1 }))
const largest = lines.toSorted((a, b) => b.lines - a.lines)[0]
const longest = [...texts]
  .flatMap(([file, text]) => longestClass(file, text) ?? [])
  .toSorted((a: LongestClass, b: LongestClass) => b.lines - a.lines)[0]
const decisions = words('docs/decisions/[0-9]*.md')
const docblocks = openerShare([...texts.values()])

row('files of src', sources.length)
row('lines of src', sum(lines.map((file) => file.lines)))
row('files over 300 lines', count('max-lines'))
row('functions over 40 lines', count('max-lines-per-function'))
row('functions over 3 parameters', count('max-params'))
row('longest class', `${longest?.lines} lines (${longest?.name}, ${longest?.file})`)
row('largest file', `${largest?.lines} lines (${largest?.file})`)
row('decisions', decisions.length)
row('median decision', `${median(decisions)} words`)
row('longest decision', `${Math.max(...decisions)} words`)
row('words of README.md', words('README.md')[0] ?? 0)
row('words of docs, without decisions', sum([...words('docs/*.md'), ...words('docs/design/*.md')]))
row('words of CHANGELOG.md', words('CHANGELOG.md')[0] ?? 0)
row('docblocks', docblocks.count)
row('docblocks that name their subject or open with a verb', `${(docblocks.share * 100).toFixed(1)} %`)
row('comment lines that end beyond column 110', sum([...texts.values()].map(longComments)))

function row(name: string, value: string | number): void {
  console.log(`${name.padEnd(54)} ${value}`)
}

function count(rule: SizeRule): number {
  return sizes.filter((size) => size.rule === rule).length
}

function words(pattern: string): number[] {
  return globSync(pattern, { cwd: root }).map((file) => wordCount(readFileSync(join(root, file), 'utf8')))
}

function longComments(text: string): number {
  return text.split('\n').filter((line) => line.length > 110 && /^\s*(\/\/|\/?\*)/.test(line)).length
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
