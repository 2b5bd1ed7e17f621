import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from '../../src/development/maven-download.ts'

/** The paths of what `install.ts` installs for the client programs. */

export const here = import.meta.dirname

export const nodeFolder = join(here, 'node')

/** The folder of a server with ClickHouse's engine and ClickHouse's HTTP interface. */
export const chdbFolder = join(here, 'chdb')

/** Returns the file that says for which lock file `node_modules` was installed. */
export function markOf(folder: string): string {
  return join(folder, 'node_modules', '.sluice-lock')
}

export function lockOf(folder: string): string {
  return digestOf(join(folder, 'package-lock.json'))
}

export const requirements = join(here, 'python', 'requirements.txt')

/**
 * Returns the folder of the Python packages. Each version of `requirements.txt` has its own folder. A folder
 * doesn't change once it is complete.
 */
export function pythonFolder(): string {
  return join(cacheFolder(), `python-clients-${digestOf(requirements)}`)
}

/**
 * Returns the path of a program of the Python packages, such as `python` or `schemathesis`. Throws if it
 * isn't installed.
 */
export function pythonProgram(name: string): string {
  return installed(join(pythonFolder(), 'bin', name))
}

export const goModules = ['analytics-go', 'sluice'] as const
export type GoModule = (typeof goModules)[number]

export function goProgram(module: GoModule): string {
  return join(cacheFolder(), 'go-clients', module)
}

/** Returns `path`. Throws if no such file exists. */
export function installed(path: string | undefined): string {
  if (path !== undefined && existsSync(path)) return path
  throw new Error(`${path ?? 'Chromium'} is not there: run npm run test:clients, which installs it`)
}

function digestOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12)
}
