import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
/**
 * The folder of the builds. The name of a build is the hash of the files that it is made from. The checkout's
 * `dist` isn't used, because the tests of the package rebuild it.
 */
const builds = join(root, 'node_modules/.cache/sluice-builds')
const inputs = [
  'src/**/*.{ts,tsx,css,html}',
  'scripts/build*.ts',
  'tsconfig*.json',
  'package.json',
  'package-lock.json',
]
/** How long a build is kept, in milliseconds. No test runs this long. */
const keptMs = 24 * 3_600_000

/**
 * Builds Sluice if one of the files that it is made from has changed. Returns the file to run. Tests run the
 * build because users do. Also, the start of a build takes only two thirds of the CPU time that the start
 * from the sources takes.
 */
export function builtProgram(): string {
  const folder = join(builds, hashOfInputs())
  if (!existsSync(folder)) {
    removeOld()
    build(folder)
  }
  return join(folder, 'dist/main.js')
}

/**
 * Builds into a temporary folder, and renames that folder at the end. If two test runs build the same at the
 * same time, the build that is finished first is used.
 */
function build(folder: string): void {
  const made = `${folder}.${process.pid}`
  const { status, error } = spawnSync(process.execPath, [join(root, 'scripts/build.ts'), made], {
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('the build failed', { cause: error })
  try {
    renameSync(made, folder)
  } catch (cause) {
    rmSync(made, { recursive: true, force: true })
    if (!existsSync(folder)) throw cause
  }
}

function hashOfInputs(): string {
  const hash = createHash('sha256')
  for (const file of globSync(inputs, { cwd: root }).toSorted()) {
    hash.update(`${file}\0`)
    hash.update(readFileSync(join(root, file)))
  }
  return hash.digest('hex').slice(0, 16)
}

function removeOld(): void {
  for (const name of globSync('*', { cwd: builds })) {
    const folder = join(builds, name)
    if (Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0) > keptMs)
      rmSync(folder, { recursive: true, force: true })
  }
}
