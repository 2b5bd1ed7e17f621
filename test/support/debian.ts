import { execFileSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

export function findOnPath(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

/** Installs the packages of the commands that are missing, or throws with what to do. By command: the package of Debian. */
export function ensureCommands(packages: Readonly<Record<string, string>>): void {
  const missing = Object.entries(packages).filter(([command]) => findOnPath(command) === undefined)
  if (missing.length === 0) return
  installWithApt(
    missing.map(([, name]) => name),
    missing.map(([command]) => command).join(', '),
  )
}

/** Throws with what to do where that can't be done here; `what` is what is missing, for people. */
export function installWithApt(names: readonly string[], what: string): void {
  if (findOnPath('apt-get') === undefined || process.getuid?.() !== 0) {
    throw new Error(`missing: ${what}. Install it; on Debian, as root: apt-get install ${names.join(' ')}`)
  }
  process.stderr.write(`tests: installing ${names.join(' ')} with apt-get (once)\n`)
  for (const command of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', ...names],
  ]) {
    execFileSync('apt-get', command, {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: installTimeoutMs,
    })
  }
}

const installTimeoutMs = 10 * 60_000

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
