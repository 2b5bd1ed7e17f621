import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { BulkheadOptions } from '../delivery/bulkhead.ts'

/**
 * Returns the limits of the bulkhead for requests to failing hooks. They are the configured limits, but at
 * most half of the process's limit of open files.
 */
export function bulkheadOf({ delivery }: Config, log: Logger): BulkheadOptions {
  const openFiles = maxOpenFiles()
  const most = Math.max(1, Math.floor(openFiles / 2))
  if (most < delivery.maxInFlightSick) {
    log.warn(
      { openFiles, maxInFlightSick: most },
      'fewer requests to failing URLs than delivery.maxInFlightSick: the system allows too few open files (ulimit -n)',
    )
  }
  return bulkheadWith(delivery, Math.min(delivery.maxInFlightSick, most))
}

/**
 * Returns the limit of idle connections to hooks: the configured limit, but at most the open files that
 * requests in flight and the process's other parts leave. `maxInFlightSick` is the limit of requests in
 * flight to failing hooks.
 */
export function maxIdleConnections({ delivery }: Config, maxInFlightSick: number, log: Logger): number {
  const openFiles = maxOpenFiles()
  const left = Math.max(fewestIdle, openFiles - delivery.maxInFlight - maxInFlightSick - otherFiles)
  if (left >= delivery.maxIdleConnections) return delivery.maxIdleConnections
  log.warn(
    { openFiles, maxIdleConnections: left },
    'fewer idle connections than delivery.maxIdleConnections: the system allows too few open files (ulimit -n)',
  )
  return left
}

/** Open files for all but connections to hooks: connections to brokers, stores and logs. */
const otherFiles = 512
const fewestIdle = 16

/** Returns the limits of a bulkhead with room for `maxInFlight` requests. */
export function bulkheadWith(delivery: Config['delivery'], maxInFlight: number): BulkheadOptions {
  return {
    maxInFlight,
    maxTries: 2 * maxInFlight,
    maxBytes: delivery.bufferBytes,
    waitMs: delivery.laneWaitMs,
  }
}

/**
 * Returns the limit of open files of this process. Returns Infinity if the system doesn't report the limit.
 * Node raises the soft limit to the hard limit when it starts.
 */
function maxOpenFiles(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
