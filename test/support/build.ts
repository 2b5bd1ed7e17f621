import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
/** Builds by the hash of what they are made of. Not the checkout's own `dist`, which the test of the package makes anew. */
const builds = join(root, 'node_modules/.cache/sluice-builds')
const inputs = ['src/**/*.ts', 'scripts/build.ts', 'tsconfig*.json', 'package.json', 'package-lock.json']
/** No test runs for so long with a build. */
const keptMs = 24 * 3_600_000

/**
 * Builds Sluice if what it is made of has changed, and returns the file to run. Tests run the build, as users do: it starts with two
 * thirds of the CPU that the sources take.
 */
export function builtProgram(): string {
  const folder = join(builds, hashOfInputs())
  if (!existsSync(folder)) {
    removeOld()
    build(folder)
  }
  return join(folder, 'dist/main.js')
}

/** Another run may build the same at the same time: the first one that is done counts. */
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
