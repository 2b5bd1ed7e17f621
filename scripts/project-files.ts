import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The parts of `package.json` that the scripts read. */
export type Manifest = {
  readonly name: string
  readonly version: string
  readonly devDependencies?: Readonly<Record<string, string>>
  /** `true` for packages whose install scripts may run, `false` for packages whose scripts may not. */
  readonly allowScripts?: Readonly<Record<string, boolean>>
}

export type LockedPackage = {
  readonly version?: string
  /** The licence by the package's manifest: an SPDX expression. */
  readonly license?: string
  readonly integrity?: string
  /** `true` if only development needs the package. It isn't shipped then. */
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
  readonly devDependencies?: unknown
}

/** The parts of `package-lock.json` (version 3) that the scripts read. */
export type Lock = {
  /** The packages by path, such as `node_modules/a/node_modules/b`. The path of the project itself is ''. */
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
