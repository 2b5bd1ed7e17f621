/** A fault of a catalog. Its texts never quote a value that may be secret. */
export type Fault = {
  /** The name of the file, as it was given. */
  readonly file: string
  /**
   * The line, counted from 1. `undefined` if the fault has no place in the text, for example because the file
   * is missing.
   */
  readonly line: number | undefined
  /** The column, counted from 1. */
  readonly column: number | undefined
  /**
   * The path of the value, such as `destinations[1].hooks[0].url`. It is empty if the fault concerns the
   * whole catalog.
   */
  readonly path: string
  /**
   * The id of the source or destination that has the fault. `undefined` if the fault is in none, or in one
   * without a well-formed id.
   */
  readonly id?: string | undefined
  readonly problem: string
  /** A description of what to write or do instead. */
  readonly advice: string
  /** The name of the variable that isn't set, if this is the fault. */
  readonly variable?: string | undefined
  /** True if the value of this variable has to be a URL or its beginning. */
  readonly isUrl?: boolean | undefined
  /** True if the value of this variable has to be a certificate or a key in PEM. */
  readonly isPem?: boolean | undefined
}

/** Returns a fault that has no place in the text. */
export function faultOf(file: string, problem: string, advice: string, path = ''): Fault {
  return { file, line: undefined, column: undefined, path, problem, advice }
}

/** The keys and list positions that lead to a value. */
export type Path = readonly (string | number)[]

/**
 * Formats a fault, for example as `catalog.yaml:7:12: crm: destinations[1].hooks[0].url: has a fragment;
 * remove it`.
 */
export function formatFault({ file, line, column, path, id, problem, advice }: Fault): string {
  const place = line === undefined ? file : `${file}:${line}:${column ?? 1}`
  const where = [place, ...(id === undefined ? [] : [id]), ...(path === '' ? [] : [path])].join(': ')
  return `${where}: ${problem}; ${advice}`
}

/**
 * Formats a path, for example as `destinations[1].hooks[0].headers.X-Team`. A step that isn't a plain key may
 * come from a line `key:value` in which the space after the colon is missing. Such a step may contain a
 * secret, so only its beginning is shown: `headers["Authorization"…]`.
 */
export function formatPath(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (/^[A-Za-z_$][\w$-]{0,99}$/.test(step)) text += text === '' ? step : `.${step}`
    else text += `["${/^[\w$-]{0,100}/.exec(step)?.[0] ?? ''}"…]`
  }
  return text
}

/**
 * Limit on the faults that are listed. A large catalog may have a fault in each destination, and the list is
 * logged.
 */
export const maxFaults = 1_000

/** Limit on the faults that are written out. A file in another format could have a fault in each line. */
const maxWritten = 100

/** Formats faults, one on each line. */
export function formatFaults(faults: readonly Fault[]): string {
  const written = faults.slice(0, maxWritten).map(formatFault)
  const left = faults.length - written.length
  return [...written, ...(left > 0 ? [`... and ${left} more`] : [])].join('\n')
}
