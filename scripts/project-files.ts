import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the scripts here read of `package.json`. */
export type Manifest = {
  readonly name: string
  readonly version: string
  readonly devDependencies?: Readonly<Record<string, string>>
  /** Whether the install scripts of a package may run. */
  readonly allowScripts?: Readonly<Record<string, boolean>>
}

/** An entry of the lock file. */
export type LockedPackage = {
  readonly version?: string
  /** As the package says it: an SPDX expression. */
  readonly license?: string
  readonly integrity?: string
  /** Nothing that is shipped needs it. */
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
  readonly devDependencies?: unknown
}

/** What they read of `package-lock.json`, version 3. */
export type Lock = {
  /** By path: `node_modules/a/node_modules/b`. The project itself is ''. */
  readonly packages: Readonly<Record<string, LockedPackage>>
}

export function readManifest(folder: string): Manifest {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- npm has checked it
  return readJson(folder, 'package.json') as Manifest
}

export function readLock(folder: string): Lock {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- npm has written it
  return readJson(folder, 'package-lock.json') as Lock
}

function readJson(folder: string, file: string): unknown {
  return JSON.parse(readFileSync(join(folder, file), 'utf8'))
}
