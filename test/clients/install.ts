import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { cacheFolder } from '../../src/development/maven-download.ts'
import { findChromium } from '../support/chromium.ts'
import { findOnPath, installWithApt } from '../support/debian.ts'
import {
  chdbFolder,
  goModules,
  goProgram,
  here,
  lockOf,
  markOf,
  nodeFolder,
  pythonFolder,
  requirements,
} from './installed.ts'

/**
 * Installs once what the client programs of this folder need. This is the first half of `npm run
 * test:clients`.
 */

const installTimeoutMs = 10 * 60_000

try {
  installNodePackages()
  installPythonPackages()
  buildGoPrograms()
  installChromium()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

function installNodePackages(): void {
  for (const folder of [nodeFolder, chdbFolder]) {
    const lock = lockOf(folder)
    const mark = markOf(folder)
    if (existsSync(mark) && readFileSync(mark, 'utf8') === lock) continue
    say(`npm packages of test/clients/${basename(folder)}`)
    // chdb depends on packages for platforms that were never published. So `npm ci` refuses every lock file
    // of chdb.
    const how = folder === chdbFolder ? ['install', '--no-save'] : ['ci']
    run('npm', [...how, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], folder)
    writeFileSync(mark, lock)
  }
}

/**
 * Installs the Python packages into a virtual environment. A virtual environment can't be moved when it is
 * complete. So a mark file says that it is complete.
 */
function installPythonPackages(): void {
  const folder = pythonFolder()
  const mark = join(folder, 'complete')
  if (existsSync(mark)) return
  say(`Python packages into ${folder}`)
  rmSync(folder, { recursive: true, force: true })
  try {
    makeEnvironment(folder)
  } catch {
    installWithApt(['python3-venv'], 'Python 3 with its module venv')
    makeEnvironment(folder)
  }
  run(join(folder, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', '--no-input', '-r', requirements])
  writeFileSync(mark, '')
}

function makeEnvironment(folder: string): void {
  run('python3', ['-m', 'venv', folder])
}

/**
 * Builds the Go programs. Builds them each time, because one of them contains Sluice's client as it is now.
 * Go doesn't compile again what has not changed.
 */
function buildGoPrograms(): void {
  if (findOnPath('go') === undefined) {
    throw new Error('go is missing: install Go 1.22 or later, and put it on the PATH')
  }
  for (const module of goModules) {
    const program = goProgram(module)
    mkdirSync(join(program, '..'), { recursive: true })
    const part = mkdtempSync(join(cacheFolder(), 'part-'))
    try {
      run('go', ['build', '-o', join(part, module), '.'], join(here, 'go', module))
      renameSync(join(part, module), program)
    } finally {
      rmSync(part, { recursive: true, force: true })
    }
  }
}

function installChromium(): void {
  if (findChromium() === undefined) installWithApt(['chromium'], 'Chromium')
  if (findChromium() === undefined) throw new Error('Chromium is not on the PATH')
}

function run(command: string, args: readonly string[], cwd = here): void {
  try {
    execFileSync(command, args, {
      cwd,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      timeout: installTimeoutMs,
    })
  } catch (cause) {
    throw new Error(`${command} ${args.join(' ')} failed`, { cause })
  }
}

function say(what: string): void {
  process.stderr.write(`test:clients: installing ${what} (once)\n`)
}
