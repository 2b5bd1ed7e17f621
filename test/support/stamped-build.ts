import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { inject } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

/** A copy of the build that says that it was made from a given commit. */
export type StampedBuild = {
  /** The file to give to `startSluice` as its program. */
  readonly program: string
  remove(): void
}

/** Copies the build of the test run, and changes only what it says about its commit (12 hex digits). */
export function stampBuild(commit: string): StampedBuild {
  const dist = dirname(inject('program'))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-build-'))
  cpSync(dist, join(folder, 'dist'), { recursive: true })
  cpSync(join(dist, '../package.json'), join(folder, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'dist/build.json'), JSON.stringify({ commit, date: '2026-01-01T00:00:00Z' }))
  return {
    program: join(folder, 'dist/main.js'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
