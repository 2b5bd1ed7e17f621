import { setTimeout as passTime } from 'node:timers/promises'
import type { LogLine, SluiceProcess } from '../test/support/sluice-process.ts'

/** The gateway, which goes away and comes back at the same address. */
export class GatewayKeeper {
  readonly origin: string
  readonly #start: () => Promise<SluiceProcess>
  /** Of each of its processes. */
  readonly logs: (readonly LogLine[])[] = []
  #process: SluiceProcess | undefined

  constructor(origin: string, start: () => Promise<SluiceProcess>) {
    this.origin = origin
    this.#start = start
  }

  /** Whether it runs, or is away as it was told. */
  get isWell(): boolean {
    return this.#process === undefined || this.#process.isRunning
  }

  async start(): Promise<void> {
    this.#process = await this.#start()
    this.logs.push(this.#process.log)
  }

  /** `kill -9`; it is back when this resolves. */
  async kill(forMs: number): Promise<void> {
    await this.#away((process) => process.kill(), forMs)
  }

  /** SIGTERM; it is back when this resolves. Throws when that didn't end it well. */
  async restart(forMs: number): Promise<void> {
    await this.#away((process) => terminate(process), forMs)
  }

  /** SIGSTOP for a time. */
  async pause(forMs: number): Promise<void> {
    const pid = this.#process?.pid
    if (pid === undefined) return
    process.kill(pid, 'SIGSTOP')
    await passTime(forMs)
    if (this.#process?.isRunning) process.kill(pid, 'SIGCONT')
  }

  /** Ends it by SIGTERM. */
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
