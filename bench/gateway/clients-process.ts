import { startChild } from '../support/child.ts'
import { BenchmarkFailure } from '../support/failure.ts'

/** One batch after the other on each connection, as fast as they are answered. */
export type Batches = {
  kind: 'batches'
  origin: string
  requests: number
  connections: number
  /** In each batch. */
  messages: number
}

/** Single calls at a fixed rate; what is before `warmS` doesn't count. */
export type Singles = {
  kind: 'singles'
  origin: string
  perSecond: number
  seconds: number
  warmS: number
  connections: number
}

export type Command = Batches | Singles

/** What the clients saw. `lateP99Ms`: how long after its time a single call was sent. */
export type Sent = {
  requests: number
  /** Answers that were not 200. */
  failed: number
  latencyMs: { p50: number; p99: number; max: number }
  lateP99Ms: number
}

export type Clients = {
  readonly pid: number
  /** Calls `onBegun` when all is made ready, just before the first request. */
  run(command: Command, onBegun: () => void): Promise<Sent>
  stop(): Promise<void>
}

/** Starts the clients as a process of their own, which ends with this one. */
export function startClients(): Clients {
  const child = startChild('../gateway/clients.ts')
  return {
    pid: child.pid,
    async run(command, onBegun) {
      await child.ask(command)
      onBegun()
      const sent = await child.next()
      if (isFailure(sent)) throw new BenchmarkFailure(`the clients failed: ${sent.error}`)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it sends at its end
      return sent as Sent
    },
    stop: () => child.stop(),
  }
}

function isFailure(message: unknown): message is { error: string } {
  return typeof message === 'object' && message !== null && 'error' in message
}
