import { closeSync, openSync } from 'node:fs'

/** The error codes that mean that the process (`EMFILE`) or the system (`ENFILE`) may open no more files. */
const codes: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE'])

export function isFileShortage(code: string): boolean {
  return codes.has(code)
}

/**
 * Returns `EMFILE` or `ENFILE` if no more files can be opened at present, and `undefined` otherwise. This
 * test is necessary because c-ares reports such a shortage as `ECONNREFUSED`.
 */
export function fileShortage(): string | undefined {
  try {
    closeSync(openSync('/dev/null', 'r'))
  } catch (error) {
    const code = codeOf(error)
    if (isFileShortage(code)) return code
  }
  return undefined
}

/** Returns the code of an error, such as `ECONNREFUSED`, or its name if it has no code. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
