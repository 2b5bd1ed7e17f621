import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folder in which `sluice up` keeps all that it makes, below the folder in which it was started. */
export const workshopFolder = '.sluice'

/** What `sluice up` tells the other commands in its folder. */
export type Running = {
  readonly pid: number
  /** The URL of its probes. It answers as long as the process runs. */
  readonly probes: string
  /** The settings that are in force there, by environment variable. No secret is one of them. */
  readonly settings: Readonly<Record<string, string>>
}

/** The name of the file, as messages show it. */
export const runningFile = join(workshopFolder, 'running.json')

/**
 * Returns what the `sluice up` of the present folder has told. Returns `undefined` if none runs here. A file
 * of a process that was killed may remain. It is ignored, unless the system has given its number to another
 * process.
 */
export function readRunning(): Running | undefined {
  const running = readFileIfAny()
  return running !== undefined && isAlive(running.pid) ? running : undefined
}

/** Tells the other commands in this folder what runs here. Only this user can read it. */
export function writeRunning(running: Running): void {
  mkdirSync(workshopFolder, { recursive: true })
  const draft = `${runningFile}.${running.pid}`
  writeFileSync(draft, `${JSON.stringify(running, undefined, 2)}\n`, { mode: 0o600 })
  renameSync(draft, runningFile)
}

/** Removes what this process has told. What another process has told since then stays. */
export function removeRunning(pid: number): void {
  if (readFileIfAny()?.pid === pid) rmSync(runningFile, { force: true })
}

/**
 * Returns true if the `sluice up` that has told this answers. A process that only has the same number
 * doesn't.
 */
export async function answers({ probes }: Running): Promise<boolean> {
  try {
    return (await fetch(probes, { signal: AbortSignal.timeout(2_000) })).ok
  } catch {
    return false
  }
}

function readFileIfAny(): Running | undefined {
  try {
    const read: unknown = JSON.parse(readFileSync(runningFile, 'utf8'))
    return isRunning(read) ? read : undefined
  } catch {
    return undefined
  }
}

function isRunning(value: unknown): value is Running {
  if (typeof value !== 'object' || value === null) return false
  const { pid, probes, settings } = value as Partial<Record<keyof Running, unknown>>
  return (
    Number.isInteger(pid) &&
    typeof probes === 'string' &&
    typeof settings === 'object' &&
    settings !== null &&
    Object.values(settings).every((text) => typeof text === 'string')
  )
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
