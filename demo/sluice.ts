import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { lastLines, startTethered, type Tethered } from '../src/development/tether.ts'
import { Metrics } from './metrics.ts'

const main = resolve(import.meta.dirname, '../src/main.ts')
const startTimeoutMs = 60_000
const metricsTimeoutMs = 5_000
const pollMs = 100
/** Time that a process may take to stop. It is longer than Sluice's own shutdown timeout. */
const stopTimeoutMs = 20_000

/** The `SLUICE_…` variables for a process of Sluice. The process gets no other environment variables. */
export type Settings = Readonly<Record<string, string>>

export type Role = 'worker' | 'gateway' | 'log serve' | 'admin'

/** Runs a command that ends by itself, such as `topics apply`. Resolves to the lines that it has printed. */
export async function runSluice(
  args: readonly string[],
  settings: Settings,
  signal: AbortSignal,
): Promise<string[]> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], {
      env: settings,
      timeout: startTimeoutMs,
      signal,
    })
    return stdout.trim().split('\n')
  } catch (error) {
    signal.throwIfAborted()
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
    throw new Error(`sluice ${args.join(' ')} failed:\n${said}`, { cause: error })
  }
}

/**
 * Starts a process of Sluice whose log is in `folder`. The process ends when this process ends, even if this
 * process is killed. Ctrl-C in the terminal doesn't reach the started process, so `stop` can end it in order.
 */
export async function spawnRole(role: Role, settings: Settings, folder: string): Promise<SluiceProcess> {
  const logFile = join(folder, `${role.replace(' ', '-')}.log`)
  const variables = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const child = await startTethered('env', ['-i', ...variables, process.execPath, main, ...role.split(' ')], {
    logFile,
  })
  return new SluiceProcess(role, child, logFile)
}

/** A process that runs `sluice worker`, `sluice gateway`, `sluice log serve` or `sluice admin`. */
export class SluiceProcess {
  readonly role: Role
  readonly logFile: string
  readonly #child: Tethered
  #url = ''
  #gatewayUrl = ''
  #adminUrl = ''

  constructor(role: Role, child: Tethered, logFile: string) {
    this.role = role
    this.#child = child
    this.logFile = logFile
  }

  get pid(): number {
    return this.#child.pid
  }

  /** The URL for metrics and probes. It is empty until the process is ready. */
  get url(): string {
    return this.#url
  }

  /** Resolves with the exit code when the process has ended. */
  get exited(): Promise<number> {
    return this.#child.exited
  }

  /** The URL of a gateway's tracking API. It is empty until the gateway is ready, and for other roles. */
  get gatewayUrl(): string {
    return this.#gatewayUrl
  }

  /** The URL of the admin API. It is empty until `sluice admin` is ready, and for other roles. */
  get adminUrl(): string {
    return this.#adminUrl
  }

  /** Waits until the process reports that it is ready. Rejects if it isn't ready within `startTimeoutMs`. */
  async ready(signal: AbortSignal): Promise<void> {
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)])
    for (;;) {
      const log = await readFile(this.logFile, 'utf8')
      const [what] = this.role.split(' ')
      const started = log.split('\n').find((line) => line.includes(`"msg":"${what} started"`)) ?? ''
      this.#url = urlOf(/"port":(\d+)/.exec(started)?.[1])
      this.#gatewayUrl = urlOf(/"gatewayPort":(\d+)/.exec(started)?.[1])
      this.#adminUrl = urlOf(/"adminPort":(\d+)/.exec(started)?.[1])
      if (this.#url !== '' && (await fetch(`${this.#url}/readyz`, { signal: inTime })).ok) return
      await sleep(pollMs, undefined, { signal: inTime })
    }
  }

  async metrics(signal: AbortSignal): Promise<Metrics> {
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(metricsTimeoutMs)])
    try {
      const answer = await fetch(`${this.#url}/metrics`, { signal: inTime })
      return new Metrics(await answer.text())
    } catch (cause) {
      signal.throwIfAborted()
      throw new Error(`the ${this.role} does not answer. End of its log:\n${await this.lastWords()}`, {
        cause,
      })
    }
  }

  /** Returns the last lines of the process's log. */
  lastWords(): Promise<string> {
    return lastLines(this.logFile)
  }

  /**
   * Sends SIGTERM, and waits until the process has finished its requests in flight and ended. A process that
   * takes longer than `stopTimeoutMs` is killed. Rejects if the exit code isn't 0.
   */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeoutMs)
    const code = await this.#child.exited
    clearTimeout(timer)
    if (code !== 0) throw new Error(`it ended with code ${code}, see ${this.logFile}`)
  }
}

function urlOf(port: string | undefined): string {
  return port === undefined ? '' : `http://127.0.0.1:${port}`
}
