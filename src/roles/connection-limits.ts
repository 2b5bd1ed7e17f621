import { readFileSync } from 'node:fs'
import { maxStoreFiles } from '../audience/store.ts'
import type { Config } from '../config/schema.ts'
import type { BulkheadOptions } from '../delivery/bulkhead.ts'
import type { OpenConnectionsOptions } from '../delivery/open-connections.ts'

type WarningLog = { warn(fields: object, text: string): void }

/** How many connections to hooks a process may have. */
export type ConnectionLimits = {
  /** The limits of the bulkhead for requests to failing hooks. */
  readonly bulkhead: BulkheadOptions
  /** The limits of all connections, and of idle ones. */
  readonly open: Pick<OpenConnectionsOptions, 'maxIdle' | 'maxOpen'>
}

/**
 * Returns the limits of connections to hooks: the configured limits, or what the limit of open files
 * (`ulimit -n`) allows if this is less. A part of the files is for all other parts of the process. Of the
 * others, requests to failing hooks get at most half. Logs a warning for each limit that is less than
 * configured. `hasGateway` is true if the process is also a gateway, whose clients have connections too.
 */
export function connectionLimits(
  { delivery, topics, gateway }: Config,
  { openFiles, hasGateway }: { openFiles: number; hasGateway: boolean },
  log: WarningLog,
): ConnectionLimits {
  const clients = hasGateway ? gateway.maxConnections : 0
  const needed = filesWithoutUnits + topics.partitions * maxStoreFiles + clients
  const others = Math.min(openFiles / 4, needed)
  const maxOpen = Math.floor(openFiles - others)
  const most = Math.floor(Math.max(1, Math.min(openFiles / 2, maxOpen - delivery.maxInFlight)))
  const maxInFlightSick = Math.min(delivery.maxInFlightSick, most)
  const maxIdle = Math.min(delivery.maxIdleConnections, maxOpen)
  if (maxInFlightSick < delivery.maxInFlightSick) {
    log.warn(
      { openFiles, maxInFlightSick },
      'fewer requests to failing URLs than delivery.maxInFlightSick: the system allows too few open files (ulimit -n)',
    )
  }
  if (maxIdle < delivery.maxIdleConnections) {
    log.warn(
      { openFiles, maxIdleConnections: maxIdle },
      'fewer idle connections than delivery.maxIdleConnections: the system allows too few open files (ulimit -n)',
    )
  }
  return { bulkhead: bulkheadWith(delivery, maxInFlightSick), open: { maxIdle, maxOpen } }
}

/**
 * Returns the limit of connections of a gateway's clients: the configured limit, or what the limit of open
 * files allows if this is less. Logs a warning if it is less.
 */
export function maxClients({ gateway }: Config, openFiles: number, log: WarningLog): number {
  const others = Math.min(openFiles / 4, filesWithoutUnits)
  const most = Math.min(gateway.maxConnections, Math.floor(openFiles - others))
  if (most < gateway.maxConnections) {
    log.warn(
      { openFiles, maxConnections: most },
      'fewer connections of clients than gateway.maxConnections: the system allows too few open files (ulimit -n)',
    )
  }
  return most
}

/** Open files for connections to brokers, logs and probes. */
const filesWithoutUnits = 512

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
export function maxOpenFiles(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
