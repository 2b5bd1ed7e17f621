import { maxStoreFiles } from '../../audience/store/store.ts'
import type { Config } from '../../config/schema.ts'
import type { BulkheadOptions } from '../../delivery/lanes/bulkhead.ts'
import type { OpenConnectionsOptions } from '../../delivery/send/open-connections.ts'

type WarningLog = { warn(fields: object, text: string): void }

/** How many connections to hooks a process may have. */
export type ConnectionLimits = {
  /** The limit of requests in flight to hooks that don't fail. */
  readonly maxInFlight: number
  /** The limits of the bulkhead for requests to failing hooks. */
  readonly bulkhead: BulkheadOptions
  /** The limits of all connections, and of idle ones. */
  readonly open: Pick<OpenConnectionsOptions, 'maxIdle' | 'maxOpen'>
}

/**
 * Returns the limits of connections to hooks. They are lower than configured if the limit of open files
 * (`ulimit -n`) is too low. Some open files stay reserved for the rest of the process, which could not reach
 * Kafka without them. Logs a warning if a limit is less than configured. `hasGateway` is true if the process
 * is also a gateway, whose clients have connections too.
 */
export function connectionLimits(
  { delivery, topics, gateway }: Config,
  { openFiles, hasGateway }: { openFiles: number; hasGateway: boolean },
  log: WarningLog,
): ConnectionLimits {
  const clients = hasGateway ? gateway.maxConnections : 0
  const needed = filesWithoutUnits + topics.partitions * maxStoreFiles + clients
  const maxOpen = filesBeside(openFiles, needed)
  const maxInFlight = Math.min(delivery.maxInFlight, Math.ceil(maxOpen / 2))
  const maxInFlightSick = Math.min(delivery.maxInFlightSick, Math.max(1, maxOpen - maxInFlight))
  const maxIdleConnections = Math.min(delivery.maxIdleConnections, maxOpen)
  const isLess =
    maxInFlight < delivery.maxInFlight ||
    maxInFlightSick < delivery.maxInFlightSick ||
    maxIdleConnections < delivery.maxIdleConnections
  if (isLess) {
    log.warn(
      { openFiles, maxInFlight, maxInFlightSick, maxIdleConnections },
      'fewer connections to URLs than configured (delivery.maxInFlight, delivery.maxInFlightSick, delivery.maxIdleConnections): the system allows too few open files (ulimit -n)',
    )
  }
  const open = { maxIdle: maxIdleConnections, maxOpen }
  return { maxInFlight, bulkhead: bulkheadWith(delivery, maxInFlightSick), open }
}

/**
 * Returns how many connections the clients of a gateway may have: the configured number, or fewer if the
 * limit of open files is too low. Logs a warning if the number is lower than configured.
 */
export function maxClients({ gateway }: Config, openFiles: number, log: WarningLog): number {
  const most = Math.min(gateway.maxConnections, filesBeside(openFiles, filesWithoutUnits))
  if (most < gateway.maxConnections) {
    log.warn(
      { openFiles, maxConnections: most },
      'fewer connections of clients than gateway.maxConnections: the system allows too few open files (ulimit -n)',
    )
  }
  return most
}

/**
 * Returns how many open files remain for connections. The rest of the process may need `needed` open files.
 */
function filesBeside(openFiles: number, needed: number): number {
  const others = Math.max(fewestOfOthers, Math.min(openFiles / 4, needed))
  return Math.max(1, Math.floor(openFiles - others))
}

/** The fewest open files that the rest of the process needs, even if it has only a few units. */
const fewestOfOthers = 80
/** Open files for connections to brokers, for logs and for probes. */
const filesWithoutUnits = 512

export function bulkheadWith(delivery: Config['delivery'], maxInFlight: number): BulkheadOptions {
  return {
    maxInFlight,
    maxTries: 2 * maxInFlight,
    maxBytes: delivery.bufferBytes,
    waitMs: delivery.laneWaitMs,
  }
}
