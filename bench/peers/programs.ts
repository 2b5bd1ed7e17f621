import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder, ensureDownload, findDownload } from '../../src/development/maven-download.ts'
import { BenchmarkFailure } from '../support/failure.ts'

/** A program that isn't Sluice, with its first arguments. The arguments of a task follow them. */
export type Program = { command: string; args: readonly string[] }

export type ProgramName = 'franz-go' | 'parallel-consumer'

/** The versions of the libraries in `go.mod` and `pom.xml`. */
export const versions: Readonly<Record<ProgramName, string>> = {
  'franz-go': versionIn('franz-go/go.mod', /^require \S+\/franz-go v(\S+)$/m),
  'parallel-consumer': versionIn('parallel-consumer/pom.xml', /-vertx<\/artifactId>\s*<version>([^<]+)</),
}

/**
 * Builds the programs, unless the cache has them for the present sources. Fails if this machine lacks a tool,
 * before anything is built or started. The error names the missing tools.
 */
export async function buildPrograms(report: (line: string) => void): Promise<Record<ProgramName, Program>> {
  await requireTools()
  const franzGo = await buildFranzGo(report)
  const classes = await buildParallelConsumer(report)
  return {
    'franz-go': { command: franzGo, args: [] },
    'parallel-consumer': {
      command: 'java',
      args: [
        '-Dorg.slf4j.simpleLogger.defaultLogLevel=error',
        '-cp',
        `${classes}:${join(classes, '*')}`,
        'Peer',
      ],
    },
  }
}

const run = promisify(execFile)
const buildTimeoutMs = 9 * 60_000

/** The compiled files. If one of them changes, the program gets another name in the cache. */
const goFiles = ['main.go', 'go.mod', 'go.sum']
const javaFiles = ['Peer.java', 'pom.xml']

/** The tools, each with the arguments that test whether it runs, and with its Debian package. */
const tools = {
  go: { asked: ['version'], package: 'golang-go (1.26 or later)' },
  java: { asked: ['-version'], package: 'openjdk-17-jdk-headless' },
  javac: { asked: ['-version'], package: 'openjdk-17-jdk-headless' },
  mvn: { asked: ['--version'], package: 'maven' },
}

type Tool = keyof typeof tools

async function requireTools(): Promise<void> {
  const needed: Tool[] = ['java']
  if (!existsSync(franzGoFile())) needed.push('go')
  if ((await findDownload({ name: parallelConsumerName() })) === undefined) needed.push('javac', 'mvn')
  const missing: Tool[] = []
  for (const tool of needed) if (!(await canRun(tool))) missing.push(tool)
  if (missing.length === 0) return
  const packages = new Set(missing.map((tool) => tools[tool].package))
  throw new BenchmarkFailure(
    `the peers need ${missing.join(', ')}, which this machine doesn't have: install ${[...packages].join(', ')}`,
  )
}

async function canRun(tool: Tool): Promise<boolean> {
  return run(tool, tools[tool].asked, { timeout: 30_000 }).then(
    () => true,
    () => false,
  )
}

function franzGoFile(): string {
  return join(cacheFolder(), `peer-franz-go-${digestOf('franz-go', goFiles)}`)
}

/** Returns the file of the program, and builds it if it is missing. The file appears whole or not at all. */
async function buildFranzGo(report: (line: string) => void): Promise<string> {
  const program = franzGoFile()
  if (existsSync(program)) return program
  report(`building franz-go's peer into ${program} (once)`)
  await mkdir(cacheFolder(), { recursive: true })
  const part = await mkdtemp(join(cacheFolder(), 'part-'))
  try {
    const built = join(part, 'program')
    await compile('go', ['build', '-trimpath', '-buildvcs=false', '-o', built, '.'], {
      cwd: sourceOf('franz-go'),
      env: { ...process.env, GOFLAGS: '' },
    })
    await rename(built, program)
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  return program
}

function parallelConsumerName(): string {
  return `peer-parallel-consumer-${digestOf('parallel-consumer', javaFiles)}`
}

/** Returns a folder with the library's jars and the compiled class of `Peer.java`. */
async function buildParallelConsumer(report: (line: string) => void): Promise<string> {
  return ensureDownload(
    {
      name: parallelConsumerName(),
      product: `Confluent's parallel consumer ${versions['parallel-consumer']}`,
      megabytes: 30,
      async fetch(part, maven) {
        const folder = join(part, 'program')
        const pom = join(part, 'pom.xml')
        copyFileSync(sourceOf('parallel-consumer', 'pom.xml'), pom)
        await maven(['-f', pom, copyDependencies, '-DincludeScope=runtime', `-DoutputDirectory=${folder}`])
        const source = sourceOf('parallel-consumer', 'Peer.java')
        await compile('javac', ['-proc:none', '-cp', join(folder, '*'), '-d', folder, source])
        return folder
      },
    },
    report,
  )
}

const copyDependencies = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'

type CompileOptions = { cwd?: string; env?: NodeJS.ProcessEnv }

async function compile(tool: Tool, args: readonly string[], options: CompileOptions = {}): Promise<void> {
  try {
    await run(tool, args, { ...options, timeout: buildTimeoutMs })
  } catch (error) {
    throw new BenchmarkFailure(
      `${tool} ${args.join(' ')}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

function digestOf(folder: ProgramName, files: readonly string[]): string {
  const hash = createHash('sha256')
  for (const file of files) hash.update(readFileSync(sourceOf(folder, file)))
  return hash.digest('hex').slice(0, 12)
}

function versionIn(file: string, pattern: RegExp): string {
  return pattern.exec(readFileSync(sourceOf(file), 'utf8'))?.[1] ?? 'of an unknown version'
}

function sourceOf(...names: readonly string[]): string {
  return join(import.meta.dirname, ...names)
}
