import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../../src/development/maven-download.ts'

/** A program that Go builds. */
export type GoProgram = {
  /** Of the file that is kept: `toxiproxy`. */
  name: string
  /** The module's package that is the program. */
  package: string
  /** With the `v`. */
  version: string
}

const buildTimeoutMs = 9 * 60_000

/** Builds the program with Go, unless it is there, beside Kafka's jars, and gives its file. It appears whole or not at all. */
export async function goProgram(wanted: GoProgram): Promise<string> {
  const { name, version } = wanted
  const cache = cacheFolder()
  const program = join(cache, `${name}-${version.replace(/^v/, '')}`)
  if (await exists(program)) return program
  const source = `${wanted.package}@${version}`
  process.stderr.write(`${name}: building ${source} into ${program} (once)\n`)
  await mkdir(cache, { recursive: true })
  const part = await mkdtemp(join(cache, 'part-'))
  try {
    const env = { ...process.env, GOBIN: part, GOFLAGS: '' }
    await promisify(execFile)('go', ['install', source], { cwd: part, env, timeout: buildTimeoutMs })
    await rename(join(part, wanted.package.slice(wanted.package.lastIndexOf('/') + 1)), program)
  } catch (cause) {
    throw new Error(`${name} can't be built; a recent Go is needed: apt-get install golang-go`, { cause })
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  return program
}

/** The folder of a module's sources, as Go downloads it. */
export async function goModule(module: string, version: string): Promise<string> {
  const { stdout } = await promisify(execFile)('go', ['mod', 'download', '-json', `${module}@${version}`], {
    env: { ...process.env, GOFLAGS: '' },
    timeout: buildTimeoutMs,
  })
  const { Dir: folder }: { Dir: string } = JSON.parse(stdout)
  return folder
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
