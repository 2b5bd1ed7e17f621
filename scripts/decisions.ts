import { basename } from 'node:path'
import type { Page } from './markdown-page.ts'
import { wordCount } from './prose.ts'

/** The largest number of words in a decision. Further details belong in `docs/design`. */
export const maxDecisionWords = 250

/** A row of the index: `| 12 | [Title](012-title.md) | amended by 42, 43 | … |`. */
type Row = { readonly number: string; readonly title: string; readonly file: string; readonly status: string }

/**
 * Returns the faults of the decisions and of their index, one line each. Faults are too many words, a number,
 * title or status that differs from the index, a row without a file or in the wrong order, and a status that
 * names a decision which doesn't exist.
 */
export function decisionFaults(decisions: readonly Page[], index: Page): string[] {
  const rows = rowsOf(index.text)
  const files = new Set(decisions.map(({ file }) => basename(file)))
  const numbers = new Set(decisions.map(({ text }) => headOf(text)?.number))
  const gone = rows.filter(({ file }) => !files.has(file))
  const order = rows.map(({ number }) => Number(number))
  return [
    ...decisions.flatMap((decision) =>
      faultsOf(decision, rows, numbers).map((f) => `${decision.file}: ${f}`),
    ),
    ...gone.map(({ file }) => `${index.file}: lists ${file}, which doesn't exist`),
    ...(order.some((number, at) => number <= (order[at - 1] ?? 0))
      ? [`${index.file}: sort the rows by number, each once`]
      : []),
  ]
}

function faultsOf(
  { file, text }: Page,
  rows: readonly Row[],
  numbers: ReadonlySet<string | undefined>,
): string[] {
  const words = wordCount(text)
  const head = headOf(text)
  const tooLong =
    words > maxDecisionWords
      ? [`has ${words} words; move what is over ${maxDecisionWords} to docs/design`]
      : []
  if (head === undefined) return [...tooLong, 'begins without `# NUMBER. TITLE`']
  const unknown = head.by.filter((number) => !numbers.has(number))
  return [
    ...tooLong,
    ...unknown.map((number) => `its status names decision ${number}, which doesn't exist`),
    ...(Number(/^\d+/.exec(basename(file))?.[0]) === Number(head.number)
      ? []
      : ['its name has another number']),
    ...rowFaults(
      head,
      rows.find((row) => row.file === basename(file)),
    ),
  ]
}

type Head = {
  readonly number: string
  readonly title: string
  readonly status: string
  readonly by: readonly string[]
}

function rowFaults({ number, title, status }: Head, row: Row | undefined): string[] {
  if (row === undefined) return ['is not in docs/decisions/README.md: add a row']
  return [
    ...differs('number', row.number, number),
    ...differs('title', row.title, title),
    ...differs('status', row.status, status),
  ]
}

function differs(what: string, told: string, is: string): string[] {
  return told === is ? [] : [`docs/decisions/README.md tells ${what} "${told}"; here it is "${is}"`]
}

/** Reads the number, title and status of a decision. Without a line `Status:`, its status is `accepted`. */
function headOf(text: string): Head | undefined {
  const [, number, title] = /^# (\d+)\. (.+)\n/.exec(text) ?? []
  if (number === undefined || title === undefined) return undefined
  const said = /^Status: ([\s\S]+?)\n\n/m.exec(text)?.[1] ?? ''
  const by = [...said.matchAll(/\[(\d+)\]/g)].map(([, other = '']) => other)
  const kind = /^(superseded by|amended by)\b/.exec(said)?.[1]
  return { number, title, by, status: kind === undefined ? 'accepted' : `${kind} ${by.join(', ')}` }
}

function rowsOf(text: string): Row[] {
  return [...text.matchAll(/^\| (\d+)\s*\| \[(.+?)\]\(([^)]+)\)\s*\| (.+?)\s*\|/gm)].map(
    ([, number = '', title = '', file = '', status = '']) => ({ number, title, file, status }),
  )
}
