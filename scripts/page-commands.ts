import { isShell } from './block-syntax.ts'
import { logicalRows } from './docs-faults.ts'
import { blocksOf, type Page } from './markdown-page.ts'

/** A command that a page or the help shows to its readers. */
export type PageCommand = {
  readonly file: string
  /** The line of the page, from 1. */
  readonly line: number
  /** The command with its comment, on one line. A loop has several lines. */
  readonly text: string
  /** What the block says before it that a shell remembers: variables and functions. */
  readonly before: readonly string[]
  /** The page, or the examples of one command. A reader begins each of them anew. */
  readonly group: string
}

type Row = { readonly text: string; readonly line: number }

/** Finds the commands in the blocks of a page, in their order. A block with an output has them after `$ `. */
export function commandsOf({ file, text }: Page): PageCommand[] {
  return blocksOf(text)
    .filter(isShell)
    .flatMap((block) => {
      const hasOutput = block.text.startsWith('$ ')
      const rows = whole(
        logicalRows(block.text)
          .filter(({ row }) => (hasOutput ? row.startsWith('$ ') : /^[^#\s]/.test(row.trim())))
          .map(({ row, index }) => ({ text: row.replace(/^\$ /, '').trim(), line: block.line + index })),
      )
      return rows.map(({ text: command, line }, at) => ({
        file,
        line,
        text: command,
        before: rows.slice(0, at).flatMap(({ text: earlier }) => (isRemembered(earlier) ? [earlier] : [])),
        group: file,
      }))
    })
}

function isRemembered(command: string): boolean {
  return /^export |^\w+\(\) \{/.test(command)
}

/** Joins the lines of each loop, and lines that a pipe continues. */
function whole(rows: readonly Row[]): Row[] {
  const joined: Row[] = []
  for (const row of rows) {
    const last = joined.at(-1)
    if (last !== undefined && isOpen(last.text))
      joined.splice(-1, 1, { ...last, text: `${last.text}\n${row.text}` })
    else joined.push(row)
  }
  return joined
}

function isOpen(command: string): boolean {
  const isLoop = /^(while|until|for) /.test(command) && !/^done\b/m.test(command)
  return isLoop || command.endsWith('|')
}

/**
 * Returns a fault for each block of a page that is neither in a language nor a command. Nobody would notice that it
 * has commands which no test runs.
 */
export function namelessBlocks({ file, text }: Page): string[] {
  return blocksOf(text)
    .filter((block) => block.language === '' && !isShell(block))
    .map(
      ({ line }) =>
        `${file}:${line} has a block without a language: write \`sh\`, \`text\`, \`http\` or \`json\` after \`\`\``,
    )
}

/** Finds the examples in the help texts of a program. What follows three spaces says what the example does. */
export function examplesOf({ file, text }: Page): PageCommand[] {
  return [...text.matchAll(/^Examples:\n((?: {2,4}\S.*\n)+)/gm)].flatMap(({ 1: lines = '', index }) => {
    const first = text.slice(0, index).split('\n').length + 1
    const rows = lines.split('\n').map((row, at) => ({ row, line: first + at }))
    // The end of the text ends the examples.
    const end = rows.findIndex(({ row }) => /(?<!\\)`/.test(row))
    const examples = rows.slice(0, end === -1 ? rows.length : end + 1).map(({ row, line }) => ({
      line,
      text: row
        .replace(/(?<!\\)`.*$/, '')
        .replaceAll(/\\(.)/g, '$1')
        .trim()
        .replace(/ {3,}.*$/, ''),
    }))
    return whole(examples.filter(({ text: example }) => example !== '')).map(({ text: command, line }) => ({
      file,
      line,
      text: command,
      before: [],
      group: `${file}:${first}`,
    }))
  })
}
