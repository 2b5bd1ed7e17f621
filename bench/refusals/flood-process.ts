import { startChild } from '../support/child.ts'
import { BenchmarkFailure } from '../support/failure.ts'

/** One source, or someone who is none, that sends batches by the clock and heeds no answer. */
export type FloodPlan = {
  origin: string
  perSecond: number
  connections: number
  /** Where the write key stands: in the head (Basic authentication), or in the body alone. */
  keyIn: 'head' | 'body'
  writeKey: string
}

/** What became of it. */
export type Flooded = {
  /** Answers by status. */
  statuses: Record<number, number>
  perS: number
  /** How long after its time a request was sent. */
  lateP99Ms: number
  /** Of a body as it is sent. */
  bodyBytes: number
}

export type Flood = {
  readonly pid: number
  begin(plan: FloodPlan): Promise<void>
  /** Resolves when the last request has its answer. */
  end(): Promise<Flooded>
  stop(): Promise<void>
}

/** A process that floods when it is told to, and ends with this one. */
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
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it sends at its end
      return flooded as Flooded
    },
    stop: () => child.stop(),
  }
}

function isFailure(message: unknown): message is { error: string } {
  return typeof message === 'object' && message !== null && 'error' in message
}
