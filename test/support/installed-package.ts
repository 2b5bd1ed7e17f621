import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { javaAvailability } from '../../src/development/java-kafka.ts'
import { readManifest } from '../../scripts/project-files.ts'

const root = resolve(import.meta.dirname, '../..')

/** Sluice, installed from the tarball into an empty folder. */
export type InstalledPackage = {
  folder: string
  /** The files of the tarball, relative to its root. */
  files: readonly string[]
  /** The path of the command `sluice` that npm has linked. */
  command: string
  /**
   * Installs the package that `sluice up` needs to start Kafka in Docker. Does nothing if this machine has
   * Java.
   */
  prepareKafka: () => Promise<void>
  remove: () => Promise<void>
}

/** Packs the checkout into a tarball, and installs the tarball. */
export async function installPackage(): Promise<InstalledPackage> {
  const folder = await mkdtemp(join(folderBelowNoPackages(), 'sluice-package-'))
  const packed: Packed = JSON.parse(await npm(root, ['pack', '--json', '--pack-destination', folder]))
  const [{ filename, files } = { filename: '', files: [] }] = packed
  // Without a prefix, npm would install into the nearest folder above that has a `package.json`.
  const install = (...args: string[]) => npm(folder, ['install', '--prefix', folder, ...args])
  await install('--no-audit', '--no-fund', `./${filename}`)
  return {
    folder,
    files: files.map(({ path }) => path),
    command: join(folder, 'node_modules/.bin/sluice'),
    async prepareKafka() {
      if ((await javaAvailability()).ok) return
      const { devDependencies = {} } = readManifest(root)
      await install(`testcontainers@${devDependencies['testcontainers']}`)
    },
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 3 }),
  }
}

/**
 * Finds a folder for temporary files that no `node_modules` is above of. Otherwise, Node would find packages
 * there that the installed package lacks.
 */
export function folderBelowNoPackages(): string {
  const candidates = [tmpdir(), '/var/tmp', homedir()].filter((path) => existsSync(path))
  const found = candidates.map((path) => realpathSync(path)).find((path) => !isBelowPackages(path))
  if (found === undefined) throw new Error(`there are node_modules above each of ${candidates.join(', ')}`)
  return found
}

function isBelowPackages(folder: string): boolean {
  if (existsSync(join(folder, 'node_modules'))) return true
  return folder !== dirname(folder) && isBelowPackages(dirname(folder))
}

/** The output of `npm pack --json`. */
type Packed = readonly { filename: string; files: readonly { path: string }[] }[]

/**
 * Returns the variables of this process without those of npm. If npm has started the tests, it passes the settings of
 * this checkout on as variables, and an npm elsewhere must not use them.
 */
export function withoutNpmSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
}

async function npm(cwd: string, args: readonly string[]): Promise<string> {
  const env = withoutNpmSettings()
  const options = { cwd, env, maxBuffer: 16 << 20 }
  const { stdout } = await promisify(execFile)('npm', [...args, '--loglevel=error'], options)
  return stdout
}
