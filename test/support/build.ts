import { spawnSync } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
/** Not the checkout's own `dist`, which the test of the package makes anew. */
const folder = join(root, 'node_modules/.cache/sluice-build')

/** What a build is made of. */
const inputs = ['src/**/*.ts', 'scripts/build.ts', 'tsconfig*.json', 'package-lock.json']

/**
 * Builds Sluice if something has changed since it was built last, and returns the file to run. Tests run the build, as users do: it
 * starts with half of the CPU that the sources take.
 */
export function builtProgram(): string {
  if (isStale()) {
    const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.ts'), folder], {
      stdio: 'inherit',
    })
    if (status !== 0) throw new Error('the build failed')
  }
  return join(folder, 'dist/main.js')
}

function isStale(): boolean {
  const madeMs = statSync(join(folder, 'dist/build.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return globSync(inputs, { cwd: root }).some((file) => statSync(join(root, file)).mtimeMs > madeMs)
}
