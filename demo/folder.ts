import { mkdir, readdir, rm } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'

const root = resolve(import.meta.dirname, '../.sluice/demo')

/**
 * Creates a folder for this run, named after the id of this process, and returns its path. Removes the
 * folders of runs that have ended.
 */
export async function makeRunFolder(): Promise<string> {
  await mkdir(root, { recursive: true })
  for (const name of await readdir(root)) {
    if (!isRunning(Number(name))) await rm(join(root, name), { recursive: true, force: true })
  }
  const folder = join(root, String(process.pid))
  await mkdir(folder)
  return folder
}

/** Returns a path for output: relative if it is below the working directory, otherwise unchanged. */
export function shownPath(path: string): string {
  const shown = relative('', path)
  return shown.startsWith('..') ? path : shown
}

function isRunning(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
