import { closeSync, openSync } from 'node:fs'
import { codeOf } from './error-code.ts'

/** Codes for a process (`EMFILE`), or a system (`ENFILE`), that may open no more files. */
const codes: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE'])

export function isFileShortage(code: string): boolean {
  return codes.has(code)
}

/**
 * Returns the code if no more files can be opened at present, and `undefined` if files can be opened. A
 * library may report such a shortage by a code of its own: c-ares, for example, reports a refused connection.
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
