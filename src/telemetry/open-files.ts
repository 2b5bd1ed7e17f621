import { readdirSync, readFileSync } from 'node:fs'
import { isFileShortage, codeOf } from '../delivery/connect/file-shortage.ts'

/**
 * Returns the limit of open files of this process. Returns Infinity if the system doesn't report the limit.
 * Node raises the soft limit to the hard limit when it starts.
 */
export function maxOpenFiles(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/**
 * Returns the number of open files of this process as a share of `maxOpenFiles`, 0 to 1. Returns 1 if no more
 * files can be opened, and `undefined` if the system doesn't report open files.
 */
export function openFilesRatio(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length / maxOpenFiles()
  } catch (error) {
    return isFileShortage(codeOf(error)) ? 1 : undefined
  }
}
