import process from 'node:process'
import { cut } from '../../delivery-log/lines.ts'

const gap = 2
/** No column is cut to less. */
const narrowest = 12

/**
 * Returns the rows of a table as lines whose columns are aligned. All rows have the same number of cells. If
 * the table is wider than the terminal, its widest columns are cut, and then its last ones.
 *
 * @param columns the columns of the terminal; `undefined`: the table isn't for a terminal, and nothing is
 * cut.
 */
export function aligned(
  rows: readonly (readonly string[])[],
  columns: number | undefined = process.stdout.isTTY ? process.stdout.columns : undefined,
): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), 0),
  )
  if (columns !== undefined) narrow(widths, columns)
  return rows.map((row) => {
    const line = row
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0))
      .join(' '.repeat(gap))
      .trimEnd()
    return columns === undefined ? line : cut(line, columns)
  })
}

function narrow(widths: number[], columns: number): void {
  const room = columns - gap * (widths.length - 1)
  for (let total = sumOf(widths); total > room; total--) {
    const widest = Math.max(...widths)
    if (widest <= narrowest) return
    widths[widths.indexOf(widest)] = widest - 1
  }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
