/** A way in which a text looks like something else than a user id. */
export type Oddity = keyof typeof descriptions

/** What the ids of each kind have in common. */
const descriptions = {
  invisible: 'contain characters that can not be seen, such as NUL',
  nothing: 'stand for no value, such as NULL',
  header: 'look like the name of a column',
  rounded: 'look like numbers that a spreadsheet has rounded',
  footer: 'look like lines of a report, such as a total',
  markup: 'look like HTML or JSON',
  quoted: 'are in quotation marks',
  semicolon: 'contain a semicolon, as rows do that were not split',
  tab: 'contain a tab, as rows do that were not split',
  pipe: 'contain a vertical bar, as rows do that were not split',
  comma: 'contain a comma, as rows do that were not split',
  padded: 'begin or end with a space',
} as const

/** The first pattern that matches an id counts. */
const patterns: readonly (readonly [Oddity, RegExp])[] = [
  // oxlint-disable-next-line no-control-regex -- these characters are looked for
  ['invisible', /[\u0000-\u0008\u000a-\u001f\u007f\u200b\u200e\u200f\u2060\ufeff]/],
  // `NULL`, and `\N` of databases; `#N/A` and `#REF!` of spreadsheets
  ['nothing', /^(?:null|undefined|none|nil|nan|n\/a|\\n|#(?:n\/a|ref!|name\?|value!|null!|num!|div\/0!))$/i],
  // `user_id`, `Customer ID`, `email`
  [
    'header',
    /^(?:(?:user|customer|client|member|contact|account|profile|person|external|anonymous)s?[ _-]?)?(?:ids?|uid|uuid|guid|username|e-?mail)$/i,
  ],
  // `1.23457E+12`
  ['rounded', /^-?\d(?:[.,]\d+)?E\+\d+$/i],
  // A GUID may be in braces.
  ['markup', /^(?:<|\[|\{(?![\da-f-]{36}\}$))/i],
  // `(1234 rows)`, `1,234 rows selected.`, `Total: 1234 rows`
  ['footer', /(?:^|[\s(:=])\d[\d,.']* (?:rows?|records?|results?|lines?|entries)\b/i],
  // `Total: 1234`, `Time: 5 ms`
  ['footer', /^(?:grand )?(?:totals?|count|sum|rows?|records?|time|elapsed|generated(?: at| on)?)\s*[:=]/i],
  // `-- end --`, `==end==`, `# 12 users`, `// done`, `EOF`
  ['footer', /^(?:[-=*#_]{2,}\s*end\b.*|(?:--|==+|\*\*|#|\/\/)\s.*|eof|end of (?:file|data|report))$/i],
  // `--------`, `+-----+`
  ['footer', /^[^\p{L}\p{N}\p{Extended_Pictographic}]*[^\p{L}\p{N}\p{Extended_Pictographic}\s]$/u],
  // `ERROR: no such table`, `psql: error: …`, `Query OK`
  ['footer', /^(?:(?:[\w.-]+: )?(?:error|fatal|warning|exception|traceback)\b\s*[\d:(]|query ok\b)/i],
  ['quoted', /^(?:=".*|(['"`]).*\1)$/],
  ['semicolon', /;/],
  ['tab', /\t/],
  ['pipe', /\|/],
  ['comma', /,/],
  ['padded', /^\s|\s$/],
]

export function oddityOf(userId: string): Oddity | undefined {
  return patterns.find(([, pattern]) => pattern.test(userId))?.[0]
}

/** Counts the odd ids among the ids of a file. */
export class OddIds {
  readonly #kinds = new Map<Oddity, { count: number; readonly firstLine: number }>()

  /** Adds an id. `line` is its line in the file, counted from 1. */
  take(userId: string, line: number): void {
    const oddity = oddityOf(userId)
    if (oddity === undefined) return
    const kind = this.#kinds.get(oddity)
    if (kind === undefined) this.#kinds.set(oddity, { count: 1, firstLine: line })
    else kind.count++
  }

  /**
   * Describes the odd ids, a text for each kind. Leaves out the kinds for which `isUsual` returns true.
   */
  describe(isUsual: (oddity: Oddity) => boolean): readonly string[] {
    return [...this.#kinds]
      .filter(([oddity]) => !isUsual(oddity))
      .map(
        ([oddity, { count, firstLine }]) =>
          `${count.toLocaleString('en-US')} ${descriptions[oddity]} (${count === 1 ? 'line' : 'first in line'} ${firstLine})`,
      )
  }
}
