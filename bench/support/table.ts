/** Returns a line of a table, with the label to the left and the entries to the right. */
export function rowOf(label: string, entries: readonly string[]): string {
  return `${label.padEnd(28)}${entries.map((entry) => entry.padStart(14)).join('')}`
}

/** Formats a share from 0 to 1 as `12 %`. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
