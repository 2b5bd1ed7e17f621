import { setTimeout as passTime } from 'node:timers/promises'
import type { LogLine, SluiceProcess } from '../test/support/sluice-process.ts'

/** Ends the gateway's process, and starts it again at the same address. */
export class GatewayKeeper {
  readonly origin: string
  readonly #start: () => Promise<SluiceProcess>
  /** The log of each process of the gateway, in order of their starts. */
  readonly logs: (readonly LogLine[])[] = []
  #process: SluiceProcess | undefined

  constructor(origin: string, start: () => Promise<SluiceProcess>) {
    this.origin = origin
    this.#start = start
  }

  /** True if the gateway runs, or if this class has ended it. False if the gateway ended by itself. */
  get isWell(): boolean {
    return this.#process === undefined || this.#process.isRunning
  }

  async start(): Promise<void> {
    this.#process = await this.#start()
    this.logs.push(this.#process.log)
  }

  /**
   * Ends the gateway with SIGKILL. Resolves when the gateway is ready again, which is at least `forMs` later.
   */
  async kill(forMs: number): Promise<void> {
    await this.#away((process) => process.kill(), forMs)
  }

  /**
   * Ends the gateway with SIGTERM. Resolves when the gateway is ready again, which is at least `forMs` later.
   * Rejects if the exit code isn't 0.
   */
  async restart(forMs: number): Promise<void> {
    await this.#away((process) => terminate(process), forMs)
  }

  /** Suspends the gateway with SIGSTOP for `forMs`. */
  async pause(forMs: number): Promise<void> {
    const pid = this.#process?.pid
    if (pid === undefined) return
    process.kill(pid, 'SIGSTOP')
    await passTime(forMs)
    if (this.#process?.isRunning) process.kill(pid, 'SIGCONT')
  }

  /** Ends the gateway with SIGTERM. Rejects if the exit code isn't 0. */
  async stop(): Promise<void> {
    const last = this.#process
    this.#process = undefined
    if (last !== undefined) await terminate(last)
  }

  async destroy(): Promise<void> {
    if (this.#process?.isRunning) await this.#process.kill()
  }

  async #away(end: (process: SluiceProcess) => Promise<void>, forMs: number): Promise<void> {
    const last = this.#process
    this.#process = undefined
    if (last !== undefined) await end(last)
    await passTime(forMs)
    await this.start()
  }
}

async function terminate(gateway: SluiceProcess): Promise<void> {
  const { code, tookMs } = await gateway.terminate()
  if (code !== 0) throw new Error(`the gateway ended with ${code} after ${tookMs} ms`)
}
