import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

export function findOnPath(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

/**
 * Installs the Debian packages of the commands that are missing. Throws an error that says what to do if it
 * can't install them. `packages` holds the name of the Debian package by command.
 */
export function ensureCommands(packages: Readonly<Record<string, string>>): void {
  const missing = Object.entries(packages).filter(([command]) => findOnPath(command) === undefined)
  if (missing.length === 0) return
  installWithApt(
    missing.map(([, name]) => name),
    missing.map(([command]) => command).join(', '),
  )
}

/**
 * While this file is a script that exits with 101, Debian's packages don't start the servers that they
 * contain.
 */
const startPolicy = '/usr/sbin/policy-rc.d'

/**
 * Installs Debian packages with apt-get. Starts none of the servers that they contain. If apt-get is missing,
 * or if this process isn't root, throws an error that says what to do. `what` describes the missing commands
 * for the reader of this error.
 */
export function installWithApt(names: readonly string[], what: string): void {
  if (findOnPath('apt-get') === undefined || process.getuid?.() !== 0) {
    throw new Error(`missing: ${what}. Install it; on Debian, as root: apt-get install ${names.join(' ')}`)
  }
  process.stderr.write(`tests: installing ${names.join(' ')} with apt-get (once)\n`)
  const isOurs = !existsSync(startPolicy)
  if (isOurs) writeFileSync(startPolicy, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    runApt('update', '-qq')
    runApt('install', '-y', '-qq', '--no-install-recommends', ...names)
  } finally {
    if (isOurs) rmSync(startPolicy)
  }
}

function runApt(...args: readonly string[]): void {
  execFileSync('apt-get', args, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: installTimeoutMs,
  })
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
