import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import { stringify } from 'yaml'
import { giveInput } from '../../scripts/give-input.ts'
import { noteLine, noteOutput } from './emitted-lines.ts'
import { until } from './until.ts'

/** A catalog as data. It is written to a file as YAML. */
export type CatalogData = {
  sources: object[]
  destinations: object[]
  /** The numbers of entries, without which a catalog that has lost many of them is refused. */
  expect?: { sources?: number; destinations?: number }
}

/**
 * Writes a catalog file into a new folder. A test can rewrite the file, and removes the folder at its end.
 */
export function writeCatalog(catalog: CatalogData): {
  path: string
  rewrite(next: CatalogData): void
  remove(): void
} {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-'))
  const path = join(folder, 'catalog.yaml')
  const rewrite = (next: CatalogData): void => {
    // In one step: a process that reads it meanwhile would find faults in a part of it.
    writeFileSync(`${path}.next`, stringify(next))
    renameSync(`${path}.next`, path)
  }
  rewrite(catalog)
  return { path, rewrite, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export type LogLine = { level: string; msg: string; [field: string]: unknown }

/** A real `sluice` process. */
export type SluiceProcess = {
  pid: number
  /** The port of `/metrics`, `/livez` and `/readyz`. */
  httpPort: number
  /** The port of the tracking API. NaN for a worker. */
  readonly gatewayPort: number
  /** The port of the delivery log's index. NaN if the process has no index. */
  readonly queryPort: number
  /** The port of the admin API. NaN if the process has no admin API. */
  readonly adminPort: number
  /**
   * The lines that have arrived. A process writes its lines some time after it has logged them, but before it answers on
   * its port of metrics and probes. So the log has all lines from before `startSluice`, `metric`, `metrics` or `wholeLog`
   * was answered.
   */
  log: readonly LogLine[]
  /** Waits until `log` has all lines that the process has logged, and returns it. */
  wholeLog(): Promise<readonly LogLine[]>
  /** Does `act`, waits until the process has logged a line with this message since, and returns this line. */
  untilLogged(msg: string, act: () => void): Promise<LogLine>
  /** The output to standard error so far. */
  readonly stderr: string
  /** Returns all metrics in Prometheus' text format. */
  metrics(): Promise<string>
  /** Returns the sum of a metric's series whose labels contain `labels`. */
  metric(name: string, labels?: Record<string, string>): Promise<number>
  /**
   * Sends SIGTERM. Resolves as `exited` does, and with the time until the process ended, in milliseconds.
   */
  terminate(): Promise<{ code: number | null; tookMs: number }>
  /** Kills the process with SIGKILL (`kill -9`). */
  kill(): Promise<void>
  /**
   * Resolves with the exit code when the process has ended, and `log` and `stderr` have all that it said. Resolves
   * with null if a signal ended it.
   */
  exited: Promise<number | null>
  readonly isRunning: boolean
}

/**
 * Returns the environment of a `sluice` process of a test or a drill. `variables` (`SLUICE_…`) override the
 * settings that all these processes share.
 */
export function environmentOf(variables: Record<string, string>): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    // Node keeps compiled code here, and doesn't compile it again at each start.
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

/** The end of a process, and its output. `code` is null if a signal ended the process. */
export type Ended = { code: number | null; stdout: string; stderr: string; tookMs: number }

/**
 * How long a command may run, in milliseconds. A command that runs longer counts as hung and is killed. On a busy
 * machine, a start alone has taken more than 30 s.
 */
const hangsAfterMs = 120_000

/**
 * Runs a command of the program (its main file) until it ends, with any exit code. If `isRead` is false,
 * nobody reads its standard output. After `killAfterMs`, the command is killed with `kill -9`.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  {
    env,
    cwd,
    input = '',
    isRead = true,
    killAfterMs = hangsAfterMs,
  }: { env: NodeJS.ProcessEnv; cwd?: string; input?: string; isRead?: boolean; killAfterMs?: number },
): Promise<Ended> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, [program, ...args], { env, cwd })
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  giveInput(child, input)
  let stdout = ''
  let stderr = ''
  if (isRead) child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  else child.stdout.destroy()
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // When the process exits, the end of its output may still be in the pipes.
  const code = await codeAt('close', child)
  clearTimeout(timer)
  noteOutput(stderr)
  return { code, stdout, stderr, tookMs: performance.now() - startedMs }
}

/**
 * A process that was just spawned. `said` returns its standard error, and its last log lines without those of
 * attempts.
 */
export type Spawned = { pid: number | undefined; said: () => string }

export type ProgramStart = {
  /** The role and its arguments, such as `worker` or `gateway`. */
  role: string
  env: NodeJS.ProcessEnv
  readyMs: number
  /** If true, waits until the port is open, and not until the process is ready. */
  isUnready?: boolean
  /** The limit of open files (`ulimit -n`). Default: the limit of this process. */
  maxOpenFiles?: number | undefined
  onSpawned?: (spawned: Spawned) => void
}

/**
 * The child processes that run. This process kills them when it exits. They go on only if this process is
 * killed itself.
 */
const running = new Set<ChildProcess>()
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')))

/** The number of log lines that are shown if a process didn't start, or if its test has failed. */
const shownLines = 60

/** Starts a role of the program (its main file). Waits until the process is ready. */
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
  const hasExited = codeAt('exit', child).finally(() => running.delete(child))
  // When the process exits, the end of its output may still be in the pipes.
  const exited = codeAt('close', child)
  const log: LogLine[] = []
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  createInterface({ input: child.stdout }).on('line', (line) => {
    const read = readLogLine(line)
    log.push(read)
    noteLine(read.msg)
  })

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
      // An index beside a worker logs this line without a port.
      () =>
        log.find(
          ({ msg, port: told }) => /^(worker|gateway|log|admin) started$/.test(msg) && told !== undefined,
        )?.['port'],
      { timeoutMs: readyMs },
    )
    const address = `http://127.0.0.1:${Number(port)}`
    if (!isUnready)
      await until('it is ready', async () => (await fetch(`${address}/readyz`)).ok, { timeoutMs: readyMs })
    await turn()
    return { httpPort: port, url: address }
  }
  async function ask(path: string): Promise<string> {
    const text = await (await fetch(`${url}${path}`)).text()
    // The lines were written before the answer, and are read no later than in the same turn.
    await turn()
    return text
  }
  async function wholeLog(): Promise<readonly LogLine[]> {
    await ask('/livez')
    return log
  }
  const { httpPort, url } = await Promise.race([begin(), ended]).catch((error: unknown) => {
    child.kill('SIGKILL')
    throw error
  })
  // From here on, the end of the process is no error.
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
    wholeLog,
    async untilLogged(msg, act) {
      const { length: before } = await wholeLog()
      act()
      return until(`the ${role} has logged: ${msg}`, () =>
        log.find((line, at) => at >= before && line.msg === msg),
      )
    },
    get stderr() {
      return stderr
    },
    async metric(name, labels = {}) {
      return sumMetric(await ask('/metrics'), name, labels)
    },
    metrics: () => ask('/metrics'),
    async terminate() {
      const startedMs = performance.now()
      child.kill('SIGTERM')
      return { code: await exited, tookMs: performance.now() - startedMs }
    },
    async kill() {
      child.kill('SIGKILL')
      // The processes that it has started end later, and hold the pipes until then.
      await hasExited
      // What it has written before is read in the same turn.
      await turn()
    },
    exited,
    get isRunning() {
      return child.exitCode === null && child.signalCode === null
    },
  }
}

/**
 * Returns the sum of a metric's series in Prometheus' text format. Counts the series that have these labels.
 */
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
