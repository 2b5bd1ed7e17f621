/** A line of a table: the label to the left, the cells to the right. */
export function rowOf(label: string, cells: readonly string[]): string {
  return `${label.padEnd(28)}${cells.map((cell) => cell.padStart(14)).join('')}`
}

/** A share, 0 to 1, as `12 %`. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
