/** The last column that a line of a comment may use. */
export const lastColumn = 110

const directive = /^\s*\/\/ (?:oxlint|eslint|@ts)/
const commentLine = /^\s*(?:\/\/|\/?\*)/

/**
 * Wraps the comments of a file. Only paragraphs and list items with a line that is too long change. Comments
 * behind code and directives to the linter stay as they are. No word changes.
 */
export function wrapComments(text: string): string {
  const lines = text.split('\n')
  const wrapped: string[] = []
  for (let at = 0; at < lines.length;) {
    const end = endOfComment(lines, at)
    const part = lines.slice(at, Math.max(end, at + 1))
    wrapped.push(...(end > at && part.some(isTooLong) ? wrap(part) : part))
    at += part.length
  }
  return wrapped.join('\n')
}

function isTooLong(line: string): boolean {
  return line.length > lastColumn && commentLine.test(line)
}

/**
 * Returns the index of the first line after the comment that begins at line `from`. Returns `from` if no
 * comment begins there.
 */
function endOfComment(lines: readonly string[], from: number): number {
  const first = lines[from] ?? ''
  if (/^\s*\/\*\* .* \*\/$/.test(first)) return from + 1
  let end = from
  if (/^\s*\/\*\*$/.test(first)) {
    end++
    while (/^\s*\*(?: |$)/.test(lines[end] ?? '')) end++
    return /^\s*\*\/$/.test(lines[end] ?? '') ? end + 1 : from
  }
  const indent = /^\s*/.exec(first)?.[0] ?? ''
  const isNext = (line = ''): boolean => line.startsWith(`${indent}// `) && !directive.test(line)
  while (isNext(lines[end])) end++
  return end
}

function wrap(comment: readonly string[]): readonly string[] {
  const [first = ''] = comment
  const indent = /^\s*/.exec(first)?.[0] ?? ''
  if (first.trimStart().startsWith('//')) {
    return wrapText(
      comment.map((line) => line.slice(indent.length + 3)),
      `${indent}// `,
    )
  }
  const text =
    comment.length === 1
      ? [first.trim().slice('/** '.length, -' */'.length)]
      : comment.slice(1, -1).map((line) => line.replace(/^\s*\* ?/, ''))
  return [`${indent}/**`, ...wrapText(text, `${indent} * `), `${indent} */`]
}

function wrapText(text: readonly string[], prefix: string): readonly string[] {
  return blocksOf(text).flatMap((block) => {
    const given = block.map((line) => (prefix + line).trimEnd())
    return given.some((line) => line.length > lastColumn) ? fill(block, prefix) : given
  })
}

const item = /^(?:- |\d+\. )/

/** Splits a comment into paragraphs, list items and empty lines. */
function blocksOf(text: readonly string[]): readonly (readonly string[])[] {
  const blocks: string[][] = []
  for (const line of text) {
    const block = blocks.at(-1)
    const [head = ''] = block ?? []
    const isListed = item.test(head) || head.startsWith('  ')
    const goesOn = line !== '' && head !== '' && !item.test(line) && line.startsWith('  ') === isListed
    if (block !== undefined && goesOn) block.push(line)
    else blocks.push([line])
  }
  return blocks
}

function fill(block: readonly string[], prefix: string): readonly string[] {
  const mark = item.exec(block[0] ?? '')?.[0] ?? ''
  const text = block.map((line) => line.trim()).join(' ')
  // Code between backticks is never split.
  const words = text.slice(mark.length).match(/(?:[^\s`]*`[^`]*`)+[^\s`]*|\S+/g) ?? []
  const lines: string[] = []
  let line = prefix + mark
  let isEmpty = true
  for (const word of words) {
    if (!isEmpty && line.length + 1 + word.length > lastColumn) {
      lines.push(line)
      line = prefix + ' '.repeat(mark.length)
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...lines, line]
}
