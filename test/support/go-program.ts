import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../../src/development/maven-download.ts'

const run = promisify(execFile)

/** A program that Go builds. */
export type GoProgram = {
  /** Of the file that is kept: `toxiproxy`. */
  name: string
  /** The module's package that is the program. */
  package: string
  /** With the `v`. */
  version: string
  /** Of a module that replaces others by folders of its repository, which \`go install\` refuses: itself, and the version that those have. */
  module?: string
  replacedBy?: string
  linkerFlags?: string
}

const buildTimeoutMs = 9 * 60_000
/** That of Kubernetes' API server, on two busy cores. */
const largeBuildTimeoutMs = 60 * 60_000

/** Builds the program with Go, unless it is there, beside Kafka's jars, and gives its file. It appears whole or not at all. */
export async function goProgram(wanted: GoProgram): Promise<string> {
  const { name, version } = wanted
  const cache = cacheFolder()
  const program = join(cache, `${name}-${version.replace(/^v/, '')}`)
  if (await exists(program)) return program
  process.stderr.write(`${name}: building ${wanted.package}@${version} into ${program} (once)\n`)
  await mkdir(cache, { recursive: true })
  const part = await mkdtemp(join(cache, 'part-'))
  try {
    const built =
      wanted.module === undefined
        ? await install(wanted.package, version, part)
        : await buildInModule(wanted, wanted.module, part)
    await rename(built, program)
  } catch (cause) {
    throw new Error(`${name} can't be built; a recent Go is needed: apt-get install golang-go`, { cause })
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  return program
}

/** The folder of a module's sources, as Go downloads it. */
export async function goModule(module: string, version: string): Promise<string> {
  return (await download(module, version)).Dir
}

async function install(source: string, version: string, folder: string): Promise<string> {
  const env = { ...process.env, GOBIN: folder, GOFLAGS: '' }
  await run('go', ['install', `${source}@${version}`], { cwd: folder, env, timeout: buildTimeoutMs })
  return join(folder, basename(source))
}

/** Go takes replacements of the main module alone: this makes one that has those of `module`, as they were published. */
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
  const flags = `-s -w ${wanted.linkerFlags ?? ''}`
  // One compiler at a time: two of this size need 8 GB.
  const program = join(folder, 'program')
  await run('nice', ['go', 'build', '-p', '1', '-ldflags', flags, '-o', program, wanted.package], {
    cwd: folder,
    env: { ...process.env, GOFLAGS: '-mod=mod' },
    timeout: largeBuildTimeoutMs,
    maxBuffer: 64 << 20,
  })
  return program
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
