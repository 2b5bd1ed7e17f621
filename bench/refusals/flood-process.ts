import { startChild } from '../support/child.ts'
import { BenchmarkFailure } from '../support/failure.ts'

/**
 * The plan of a flood. One sender, which may not be a known source, sends batches at a fixed rate and doesn't
 * react to the answers.
 */
export type FloodPlan = {
  origin: string
  perSecond: number
  connections: number
  requests: FloodRequests
}

/**
 * The requests of a flood. Ordinary batches: `keyIn` says whether the write key is in the head (Basic
 * authentication) or only in the body. Or given requests, which take turns: each from an address of its own if
 * `isFromMany` is true.
 */
export type FloodRequests =
  | { readonly keyIn: 'head' | 'body'; readonly writeKey: string }
  | { readonly given: readonly GivenRequest[]; readonly isFromMany: boolean }

export type GivenRequest = {
  readonly path: string
  readonly writeKey: string | undefined
  readonly body: Buffer
}

export type Flooded = {
  /** The number of answers with each status. */
  statuses: Record<number, number>
  perS: number
  /** The p99 of the time between the due time of a request and its sending, in milliseconds. */
  lateP99Ms: number
  /** The length of a body as it is sent. */
  bodyBytes: number
}

export type Flood = {
  readonly pid: number
  begin(plan: FloodPlan): Promise<void>
  /** Ends the flood. Resolves when the last request has been answered. */
  end(): Promise<Flooded>
  stop(): Promise<void>
}

/** Starts a process that floods a gateway on command. The process ends with this process. */
export function startFlood(): Flood {
  const child = startChild('../refusals/flood.ts')
  return {
    pid: child.pid,
    async begin(plan) {
      await child.ask(plan)
    },
    async end() {
      const flooded = await child.ask({ kind: 'end' })
      if (isFailure(flooded)) throw new BenchmarkFailure(`the flood failed: ${flooded.error}`)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the child's last message of a flood
      return flooded as Flooded
    },
    stop: () => child.stop(),
  }
}

function isFailure(message: unknown): message is { error: string } {
  return typeof message === 'object' && message !== null && 'error' in message
}
