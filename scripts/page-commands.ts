import { isShell } from './block-syntax.ts'
import { logicalRows } from './docs-faults.ts'
import { blocksOf, type Page } from './markdown-page.ts'

/** A command that a page shows to its readers. */
export type PageCommand = {
  readonly file: string
  /** The line of the page, from 1. */
  readonly line: number
  /** The command on one line, with its comment. */
  readonly text: string
  /** What the block says before it that a shell remembers: variables and functions. */
  readonly before: readonly string[]
}

/** Finds the commands in the blocks of a page, in their order. A block with an output has them after `$ `. */
export function commandsOf({ file, text }: Page): PageCommand[] {
  return blocksOf(text)
    .filter(isShell)
    .flatMap((block) => {
      const hasOutput = block.text.startsWith('$ ')
      const rows = logicalRows(block.text)
        .filter(({ row }) => (hasOutput ? row.startsWith('$ ') : /^[^#\s]/.test(row.trim())))
        .map(({ row, index }) => ({ text: row.replace(/^\$ /, '').trim(), line: block.line + index }))
      return rows.map(({ text: command, line }, at) => ({
        file,
        line,
        text: command,
        before: rows.slice(0, at).flatMap(({ text: earlier }) => (isRemembered(earlier) ? [earlier] : [])),
      }))
    })
}

function isRemembered(command: string): boolean {
  return /^export |^\w+\(\) \{/.test(command)
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
  return [...text.matchAll(/^Examples:\n((?: {2}.*\n)+)/gm)].flatMap(({ 1: lines = '', index }) => {
    const first = text.slice(0, index).split('\n').length + 1
    return lines.split('\n').flatMap((line, at) => {
      const command = line
        .replace(/`,?$/, '')
        .replaceAll(/\\(.)/g, '$1')
        .trim()
        .replace(/ {3,}.*$/, '')
      return command.startsWith('sluice ') ? [{ file, line: first + at, text: command, before: [] }] : []
    })
  })
}
