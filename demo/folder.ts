import { mkdir, readdir, rm } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'

const root = resolve(import.meta.dirname, '../.sluice/demo')

/** A folder of this run's own, named by its process. Those of runs that have ended are removed. */
export async function makeRunFolder(): Promise<string> {
  await mkdir(root, { recursive: true })
  for (const name of await readdir(root)) {
    if (!isRunning(Number(name))) await rm(join(root, name), { recursive: true, force: true })
  }
  const folder = join(root, String(process.pid))
  await mkdir(folder)
  return folder
}

/** The path as it is shown: from the working directory, where it is below that. */
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
