import { execFile } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
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
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-package-')))
  const packed: Packed = JSON.parse(await npm(root, ['pack', '--json', '--pack-destination', folder]))
  const [{ filename, files } = { filename: '', files: [] }] = packed
  await npm(folder, ['install', '--no-audit', '--no-fund', `./${filename}`])
  return {
    folder,
    files: files.map(({ path }) => path),
    command: join(folder, 'node_modules/.bin/sluice'),
    async prepareKafka() {
      if ((await javaAvailability()).ok) return
      const { devDependencies = {} } = readManifest(root)
      await npm(folder, ['install', `testcontainers@${devDependencies['testcontainers']}`])
    },
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 3 }),
  }
}

/** The output of `npm pack --json`. */
type Packed = readonly { filename: string; files: readonly { path: string }[] }[]

async function npm(cwd: string, args: readonly string[]): Promise<string> {
  // The tests may have been started by npm, which passes its settings on as variables. This npm must not use
  // those settings.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
  const options = { cwd, env, maxBuffer: 16 << 20 }
  const { stdout } = await promisify(execFile)('npm', [...args, '--loglevel=error'], options)
  return stdout
}
