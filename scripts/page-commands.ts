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
    .map(({ line }) => `${file}:${line} has a block without a language: write \`sh\`, \`text\`, \`http\` or \`json\` after \`\`\``)
}
