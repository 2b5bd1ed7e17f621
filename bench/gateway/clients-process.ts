import { startChild } from '../support/child.ts'
import { BenchmarkFailure } from '../support/failure.ts'

/** A command to send batches. Each connection sends the next batch as soon as the last one is answered. */
export type Batches = {
  kind: 'batches'
  origin: string
  requests: number
  connections: number
  messages: number
}

/**
 * A command to send single calls at a fixed rate. The latency of calls in the first `warmS` seconds doesn't
 * count.
 */
export type Singles = {
  kind: 'singles'
  origin: string
  perSecond: number
  seconds: number
  warmS: number
  connections: number
}

export type Command = Batches | Singles

/** The clients' results. `lateP99Ms`: p99 of the time by which single calls were sent late. */
export type Sent = {
  requests: number
  /** Number of answers with a status other than 200. */
  failed: number
  latencyMs: { p50: number; p99: number; max: number }
  lateP99Ms: number
}

export type Clients = {
  readonly pid: number
  /** Carries out `command`. Calls `onBegun` when the clients are ready, just before the first request. */
  run(command: Command, onBegun: () => void): Promise<Sent>
  stop(): Promise<void>
}

/** Starts the clients in a separate process, which ends with this one. */
export function startClients(): Clients {
  const child = startChild('../gateway/clients.ts')
  return {
    pid: child.pid,
    async run(command, onBegun) {
      await child.ask(command)
      onBegun()
      const sent = await child.next()
      if (isFailure(sent)) throw new BenchmarkFailure(`the clients failed: ${sent.error}`)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the clients' last message
      return sent as Sent
    },
    stop: () => child.stop(),
  }
}

function isFailure(message: unknown): message is { error: string } {
  return typeof message === 'object' && message !== null && 'error' in message
}
