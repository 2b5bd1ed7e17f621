import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { execFile } from 'node:child_process'
import { ensureDownload, type MavenDownload } from '../../src/development/maven-download.ts'
import { freePorts } from '../../src/development/free-ports.ts'
import { lastLines, startTethered, type Tethered } from '../../src/development/tether.ts'
import { until } from './until.ts'

/**
 * A schema registry with Confluent's API. It runs as a Java process of this machine. Its schemas survive
 * `kill`.
 */
export type RunningRegistry = {
  /** The URL of the registry's API, for clients. */
  url: string
  /** Kills the registry's process with SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>
  /** Starts the registry again, on the same port and with the same schemas. */
  start(): Promise<void>
  stop(): Promise<void>
}

const version = '3.0.9'
const artifact = `io.apicurio:apicurio-registry-app:${version}:tar.gz:all`
// This is an old version of the plugin. Later versions need the artifact's parent pom, which isn't published.
const getArtifact = 'org.apache.maven.plugins:maven-dependency-plugin:2.8:get'
const startTimeoutMs = 60_000

const apicurio: MavenDownload = {
  name: `apicurio-registry-${version}`,
  product: `Apicurio Registry ${version}`,
  megabytes: 109,
  async fetch(part, maven) {
    const archive = join(part, 'registry.tar.gz')
    await maven([getArtifact, `-Dartifact=${artifact}`, '-Dtransitive=false', `-Ddest=${archive}`])
    const folder = join(part, 'registry')
    await promisify(execFile)('sh', ['-c', 'mkdir "$2" && tar -xzf "$1" -C "$2"', 'sh', archive, folder])
    return folder
  },
}

/**
 * Starts Apicurio Registry. Downloads it the first time. The registry ends at `stop`. It also ends when this
 * process ends in any way.
 */
export async function startSchemaRegistry(): Promise<RunningRegistry> {
  const program = await ensureDownload(apicurio, (line) => process.stderr.write(`registry: ${line}\n`))
  const jar = (await readdir(program)).find((name) => name.endsWith('-runner.jar'))
  if (jar === undefined) throw new Error(`there is no runner jar in ${program}`)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-registry-'))
  const [port = 0] = await freePorts(1)
  const url = `http://127.0.0.1:${port}/apis/ccompat/v7`
  const logFile = join(folder, 'registry.log')
  let running: Tethered | undefined

  async function start(): Promise<void> {
    const args = [
      ...javaFlags,
      ...properties(port, join(folder, 'schemas')),
      '-jar',
      join(program, jar ?? ''),
    ]
    const started = await startTethered('java', args, { logFile, scratch: folder })
    running = started
    let hasEnded = false
    void started.exited.then(() => (hasEnded = true))
    try {
      await until('the registry answers', async () => hasEnded || (await fetch(`${url}/subjects`)).ok, {
        timeoutMs: startTimeoutMs,
        everyMs: 100,
      })
      if (hasEnded) throw new Error('its process ended')
    } catch (cause) {
      const log = await lastLines(logFile)
      await kill()
      throw new Error(`the schema registry did not start:\n${log}`, { cause })
    }
  }

  async function kill(): Promise<void> {
    running?.kill('SIGKILL')
    await running?.exited
    running = undefined
  }

  async function stop(): Promise<void> {
    await kill()
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }

  try {
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return { url, kill, start, stop }
}

const javaFlags = ['-Xms64m', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData']

function properties(port: number, database: string): string[] {
  return [
    '-Dquarkus.http.host=127.0.0.1',
    `-Dquarkus.http.port=${port}`,
    `-Dapicurio.datasource.url=jdbc:h2:file:${database};WRITE_DELAY=0`,
  ]
}
