import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { stringify } from 'yaml'
import { until } from './until.ts'

/** A catalog as data; written as YAML. */
export type CatalogData = { sources: object[]; destinations: object[] }

/** A folder with a catalog file that can be rewritten. */
export function writeCatalog(catalog: CatalogData): {
  path: string
  rewrite(next: CatalogData): void
  remove(): void
} {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-'))
  const path = join(folder, 'catalog.yaml')
  const rewrite = (next: CatalogData): void => writeFileSync(path, stringify(next))
  rewrite(catalog)
  return { path, rewrite, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export type LogLine = { level: string; msg: string; [field: string]: unknown }

/** A real `sluice` process. */
export type SluiceProcess = {
  pid: number
  /** Of `/metrics`, `/livez`, `/readyz`. */
  httpPort: number
  /** Of the tracking API; NaN for a worker. */
  readonly gatewayPort: number
  /** Of the index of the delivery log; NaN where there is none. */
  readonly queryPort: number
  /** Of the admin API; NaN for others. */
  readonly adminPort: number
  log: readonly LogLine[]
  /** All that it wrote to its standard error so far. */
  readonly stderr: string
  /** The value of a metric summed over its series, of those whose labels contain `labels`. */
  metric(name: string, labels?: Record<string, string>): Promise<number>
  /** Sends SIGTERM, and gives the exit code and how long it took. */
  terminate(): Promise<{ code: number | null; tookMs: number }>
  /** `kill -9`. */
  kill(): Promise<void>
  /** Its exit code when it ends; null when a signal has ended it. */
  exited: Promise<number | null>
  readonly isRunning: boolean
}

/** What every `sluice` process of a test or a drill has in common; `variables` (`SLUICE_…`) are the rest, and win. */
export function environmentOf(variables: Record<string, string>): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    // What was compiled once is not compiled at each start.
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
    SLUICE_HTTP_HOST: '127.0.0.1',
    SLUICE_HTTP_PORT: '0',
    SLUICE_GATEWAY_HOST: '127.0.0.1',
    SLUICE_GATEWAY_PORT: '0',
    SLUICE_GATEWAY_SHUTDOWN_DELAY: '0s',
    SLUICE_ADMIN_PORT: '0',
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_TOPICS_PARTITIONS: '6',
    SLUICE_WORKER_PROCESSES: '1',
    SLUICE_DELIVERY_ALLOW_ADDRESSES: '127.0.0.0/8,::1/128',
    ...variables,
  }
}

/** How a process has ended, and all that it said; a `code` of null: a signal has ended it. */
export type Ended = { code: number | null; stdout: string; stderr: string; tookMs: number }

/** One that hasn't ended by then hangs. */
const hangsAfterMs = 45_000

/** Runs a command of the program (its main file) to its end, whatever that is. Without `isRead` nobody reads what it prints. `killAfterMs`: `kill -9` then. */
export async function runProgram(
  program: string,
  args: readonly string[],
  {
    env,
    input = '',
    isRead = true,
    killAfterMs = hangsAfterMs,
  }: { env: NodeJS.ProcessEnv; input?: string; isRead?: boolean; killAfterMs?: number },
): Promise<Ended> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, [program, ...args], { env })
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  child.stdin.end(input)
  let stdout = ''
  let stderr = ''
  if (isRead) child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  else child.stdout.destroy()
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // At its exit, the end of what it printed may still be in the pipes.
  const code = await codeAt('close', child)
  clearTimeout(timer)
  return { code, stdout, stderr, tookMs: performance.now() - startedMs }
}

/** A process that has just been spawned. `said`: its standard error, and its last lines, of attempts apart. */
export type Spawned = { pid: number | undefined; said: () => string }

export type ProgramStart = {
  /** `worker` or `gateway`. */
  role: string
  env: NodeJS.ProcessEnv
  readyMs: number
  /** Waits only until its port is open. */
  isUnready?: boolean
  /** The limit of open files (`ulimit -n`). By default that of this process. */
  maxOpenFiles?: number | undefined
  onSpawned?: (spawned: Spawned) => void
}

/** None outlives the process that has started it, unless that is killed. */
const running = new Set<ChildProcess>()
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')))

/** Of a process that didn't start, or whose test has failed. */
const shownLines = 60

/** Starts a role of the program (its main file) and waits until it is ready. */
export async function startProgram(
  program: string,
  { role, env, readyMs, isUnready = false, maxOpenFiles, onSpawned }: ProgramStart,
): Promise<SluiceProcess> {
  const command = [process.execPath, program, ...role.split(' ')]
  const limited = ['sh', '-c', `ulimit -n ${maxOpenFiles}; exec "$@"`, 'sh']
  const [file = '', ...args] = maxOpenFiles === undefined ? command : [...limited, ...command]
  const child = spawn(file, args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  const exited = codeAt('exit', child).finally(() => running.delete(child))
  const log: LogLine[] = []
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  createInterface({ input: child.stdout }).on('line', (line) => log.push(readLogLine(line)))

  const describe = (): string => {
    const told = log.filter((line) => !('durationMs' in line)).slice(-shownLines)
    return `${stderr}\n${told.map((line) => JSON.stringify(line)).join('\n')}\n`
  }
  onSpawned?.({ pid: child.pid, said: describe })
  const ended = exited.then((code): never => {
    throw new Error(`sluice ${role} exited with ${code}:\n${describe()}`)
  })
  async function begin(): Promise<{ httpPort: unknown; url: string }> {
    const port = await until(
      `the ${role} has started`,
      // That of an index beside a worker has no port.
      () =>
        log.find(
          ({ msg, port: told }) => /^(worker|gateway|log|admin) started$/.test(msg) && told !== undefined,
        )?.['port'],
      { timeoutMs: readyMs },
    )
    const address = `http://127.0.0.1:${Number(port)}`
    if (!isUnready)
      await until('it is ready', async () => (await fetch(`${address}/readyz`)).ok, { timeoutMs: readyMs })
    return { httpPort: port, url: address }
  }
  const { httpPort, url } = await Promise.race([begin(), ended]).catch((error: unknown) => {
    child.kill('SIGKILL')
    throw error
  })
  // From now on it may end.
  ended.catch(() => undefined)

  return {
    pid: child.pid ?? -1,
    httpPort: Number(httpPort),
    get queryPort() {
      return Number(log.find(({ msg }) => msg === 'log started')?.['queryPort'])
    },
    get adminPort() {
      return Number(log.find(({ msg }) => msg === 'admin started')?.['adminPort'])
    },
    get gatewayPort() {
      return Number(log.find(({ msg }) => msg === 'gateway started')?.['gatewayPort'])
    },
    log,
    get stderr() {
      return stderr
    },
    async metric(name, labels = {}) {
      return sumMetric(await (await fetch(`${url}/metrics`)).text(), name, labels)
    },
    async terminate() {
      const startedMs = performance.now()
      child.kill('SIGTERM')
      return { code: await exited, tookMs: performance.now() - startedMs }
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
    exited,
    get isRunning() {
      return child.exitCode === null && child.signalCode === null
    },
  }
}

/** Adds up the series of a metric in Prometheus' text format. */
function sumMetric(text: string, name: string, labels: Record<string, string>): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .filter((line) => wanted.every((pair) => line.includes(pair)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

function codeAt(event: 'exit' | 'close', child: ChildProcess): Promise<number | null> {
  return new Promise((resolveCode) => child.once(event, (code: number | null) => resolveCode(code)))
}

function readLogLine(line: string): LogLine {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the log's own format
    return JSON.parse(line) as LogLine
  } catch {
    return { level: 'none', msg: line }
  }
}
