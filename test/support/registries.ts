import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import { freePorts } from '../../src/development/free-ports.ts'
import { cacheFolder } from '../../src/development/maven-download.ts'
import { goProgram } from './go-program.ts'
import { until } from './until.ts'

/** A registry that runs on this machine, and is empty at first. */
export type Registry = {
  /** `127.0.0.1:PORT`. It talks http. */
  readonly host: string
  stop: () => Promise<void>
}

/** Builds crane once, which serves a registry of images and charts, and reads from one. */
export function crane(): Promise<string> {
  return goProgram({
    name: 'crane',
    package: 'github.com/google/go-containerregistry/cmd/crane',
    version: 'v0.22.1',
  })
}

/** Starts a registry of images and charts (OCI). It keeps them in `folder`. */
export async function startImageRegistry(folder: string): Promise<Registry> {
  const host = await freeHost()
  const child = spawn(await crane(), ['registry', 'serve', '--address', host, '--disk', folder], {
    stdio: 'ignore',
  })
  return started(child, host, '/v2/')
}

/** Starts verdaccio, a registry of npm packages, which takes packages of each scope from everybody. */
export async function startPackageRegistry(folder: string): Promise<Registry> {
  const host = await freeHost()
  const file = join(folder, 'verdaccio.yaml')
  const rule = { access: '$all', publish: '$all' }
  const settings = {
    storage: join(folder, 'storage'),
    auth: { htpasswd: { file: join(folder, 'htpasswd') } },
    packages: { '@*/*': rule },
    max_body_size: '100mb',
    log: { type: 'stdout', format: 'json', level: 'error' },
  }
  await writeFile(file, stringify(settings))
  const program = join(await verdaccio(), 'node_modules/verdaccio/bin/verdaccio')
  const child = spawn(process.execPath, [program, '--config', file, '--listen', `http://${host}`], {
    stdio: 'ignore',
  })
  return started(child, host, '/-/ping')
}

async function freeHost(): Promise<string> {
  const [port] = await freePorts(1)
  return `127.0.0.1:${port}`
}

async function started(child: ChildProcess, host: string, path: string): Promise<Registry> {
  await until(`the registry ${host} answers`, async () => (await fetch(`http://${host}${path}`)).ok, {
    timeoutMs: 60_000,
  })
  return {
    host,
    async stop() {
      const ended = new Promise((done) => child.once('exit', done))
      if (child.exitCode === null && child.kill()) await ended
    },
  }
}

const verdaccioVersion = '6.8.0'

/** Installs verdaccio once, into the same folder as Kafka's jars. It isn't a package that the project needs. */
async function verdaccio(): Promise<string> {
  const folder = join(cacheFolder(), `verdaccio-${verdaccioVersion}`)
  if (existsSync(folder)) return folder
  await mkdir(cacheFolder(), { recursive: true })
  const part = await mkdtemp(join(cacheFolder(), 'part-'))
  try {
    const manifest = {
      private: true,
      dependencies: { verdaccio: verdaccioVersion },
      // A later version of this package names a package that was withdrawn.
      overrides: { 'node-fetch': '2.7.0' },
    }
    await writeFile(join(part, 'package.json'), JSON.stringify(manifest))
    const how = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    await promisify(execFile)('npm', how, { cwd: part, timeout: 5 * 60_000 })
    await rename(part, folder)
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  return folder
}
