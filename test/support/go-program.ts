import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { cacheFolder } from '../../src/development/maven-download.ts'

const run = promisify(execFile)

/** A program that is built with Go. */
export type GoProgram = {
  /** The beginning of the name of the program's file, such as `toxiproxy`. */
  name: string
  /** The Go package that holds the program. */
  package: string
  /** The version, with the `v`. */
  version: string
  /**
   * The Go module of the program. Only needed if this module replaces other modules by folders of its
   * repository, because `go install` refuses such a module. `replacedBy` is the version of those other
   * modules. By default, it is `version`.
   */
  module?: string
  replacedBy?: string
  linkerFlags?: string
}

const buildTimeoutMs = 9 * 60_000
/**
 * The time limit for a build in a module, in milliseconds. The longest such build is Kubernetes' API server
 * on two busy cores.
 */
const largeBuildTimeoutMs = 60 * 60_000
/** The time between two lines that say how far a large build is, in milliseconds. */
const progressMs = 30_000
/** What a compiler of Kubernetes' largest packages may need, in bytes. */
const compilerBytes = 5 * 2 ** 30

/**
 * Returns the file of a program. If the file doesn't exist yet, builds it with Go. Keeps it in the same
 * folder as Kafka's jars. The file appears whole or not at all.
 */
export function goProgram(wanted: GoProgram): Promise<string> {
  const { name, version } = wanted
  return built(`${name}-${version.replace(/^v/, '')}`, (part) =>
    wanted.module === undefined
      ? install(wanted.package, version, part)
      : buildInModule(wanted, wanted.module, part),
  )
}

/** Returns the file of a program whose sources are in `folder`. Builds it again when they have changed. */
export async function ownGoProgram(folder: string): Promise<string> {
  const hash = createHash('sha256')
  for (const file of ['main.go', 'go.mod', 'go.sum']) hash.update(await readFile(join(folder, file)))
  return built(`${basename(folder)}-${hash.digest('hex').slice(0, 12)}`, async (part) => {
    const program = join(part, 'program')
    await run('go', ['build', '-o', program, '.'], {
      cwd: folder,
      env: { ...process.env, GOFLAGS: '' },
      timeout: buildTimeoutMs,
    })
    return program
  })
}

/**
 * Returns the program `name` of the cache. If it isn't there, calls `build` with an empty folder, in which
 * `build` makes the program.
 */
async function built(name: string, build: (part: string) => Promise<string>): Promise<string> {
  const cache = cacheFolder()
  const program = join(cache, name)
  if (await exists(program)) return program
  process.stderr.write(`${name}: building ${program} with Go (once)\n`)
  await mkdir(cache, { recursive: true })
  const part = await mkdtemp(join(cache, 'part-'))
  try {
    await rename(await build(part), program)
  } catch (cause) {
    throw new Error(`${name} can't be built; a recent Go is needed: apt-get install golang-go`, { cause })
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  return program
}

/** Returns the folder with a module's sources, as Go downloads it. */
export async function goModule(module: string, version: string): Promise<string> {
  return (await download(module, version)).Dir
}

async function install(source: string, version: string, folder: string): Promise<string> {
  const env = { ...process.env, GOBIN: folder, GOFLAGS: '' }
  await run('go', ['install', `${source}@${version}`], { cwd: folder, env, timeout: buildTimeoutMs })
  // The last part of the path of a module may be its major version. Go doesn't name the program so.
  return join(folder, basename(source.replace(/\/v\d+$/, '')))
}

/**
 * Builds a program of a module that replaces other modules. Go applies only the replacements of the main
 * module. So the function makes a main module, which replaces the same modules by their published versions.
 */
async function buildInModule(wanted: GoProgram, module: string, folder: string): Promise<string> {
  const { GoMod: file } = await download(module, wanted.version)
  const { stdout } = await run('go', ['mod', 'edit', '-json', file])
  const { Go: go, Replace: replaced }: ModuleFile = JSON.parse(stdout)
  const local = (replaced ?? []).filter(({ New: by }) => by.Path.startsWith('.'))
  const lines = [
    'module built',
    `go ${go}`,
    `require ${module} ${wanted.version}`,
    ...local.map(({ Old: of }) => `replace ${of.Path} => ${of.Path} ${wanted.replacedBy ?? wanted.version}`),
  ]
  await writeFile(join(folder, 'go.mod'), `${lines.join('\n')}\n`)
  const options = {
    cwd: folder,
    env: { ...process.env, GOFLAGS: '-mod=mod' },
    timeout: largeBuildTimeoutMs,
    maxBuffer: 64 << 20,
  }
  const stale = await run('go', ['list', '-deps', '-f', '{{if .Stale}}stale{{end}}', wanted.package], options)
  const progress = startProgress(wanted.name, stale.stdout.split('\n').filter((line) => line !== '').length)
  const flags = `-s -w ${wanted.linkerFlags ?? ''}`
  const program = join(folder, 'program')
  const args = ['-v', '-p', String(compilersAtOnce()), '-ldflags', flags, '-o', program, wanted.package]
  try {
    const building = run('nice', ['go', 'build', ...args], options)
    // Go writes a line for each package that it compiles.
    if (building.child.stderr !== null)
      createInterface({ input: building.child.stderr }).on('line', progress.count)
    await building
  } finally {
    progress.stop()
  }
  return program
}

/** Returns how many compilers run at once, at least one. */
function compilersAtOnce(): number {
  return Math.max(1, Math.min(availableParallelism(), Math.floor(process.availableMemory() / compilerBytes)))
}

/**
 * Says every now and then how many of the packages of a program are compiled, so that whoever waits knows that
 * it goes on. `everyMs`: the time between two lines. `say`: writes a line.
 */
export function startProgress(
  name: string,
  total: number,
  {
    everyMs = progressMs,
    say = (line: string): unknown => process.stderr.write(`${line}\n`),
  }: { everyMs?: number; say?: (line: string) => unknown } = {},
): { count: () => void; stop: () => void } {
  const startedMs = performance.now()
  let compiled = 0
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedMs) / 1_000)
    const elapsed = `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    const what = compiled < total ? `${compiled} of ${total} packages are compiled` : 'Go links the program'
    say(`${name}: ${what} after ${elapsed}`)
  }, everyMs)
  return { count: () => compiled++, stop: () => clearInterval(timer) }
}

type ModuleFile = { Go: string; Replace: { Old: { Path: string }; New: { Path: string } }[] | null }

async function download(module: string, version: string): Promise<{ Dir: string; GoMod: string }> {
  const { stdout } = await run('go', ['mod', 'download', '-json', `${module}@${version}`], {
    env: { ...process.env, GOFLAGS: '' },
    timeout: buildTimeoutMs,
  })
  return JSON.parse(stdout)
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
