import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { type Probes, serveTelemetry } from '../../telemetry/probe-server.ts'
import { type Listening, listening } from './listening.ts'
import type { Parts } from './parts.ts'

export type TelemetryOptions = {
  config: Config
  log: Pick<Logger, 'info' | 'flush'>
  parts: Parts
}

/** The answers of a role on its port for metrics and probes. */
export type RoleTelemetry = {
  /** Returns the present metrics in Prometheus' text format. */
  metrics(): Promise<string>
  /**
   * Returns the reasons why the role can't do its work, in words. The list is empty when the role is ready.
   */
  notReady(): readonly string[]
}

export type OwnTelemetry = {
  port: number
  /** From now on, the port answers with the metrics and the readiness of this role. */
  tell(role: RoleTelemetry): void
}

/**
 * Opens the port for metrics and probes. The port is a role's first part. So it is closed last, after all
 * other parts have stopped.
 */
export async function openTelemetry(
  { config, log, parts }: TelemetryOptions,
  probes: Probes,
): Promise<number> {
  const addresses = probesAddresses(config.http)
  for (const [at, address] of addresses.entries()) {
    const { host, port } = address
    const isLast = at === addresses.length - 1
    const serving = serveTelemetry({ host, port, probes, log })
    const server = isLast ? await listening(serving, address) : await unlessTaken(serving)
    if (server === undefined) continue
    if (at > 0) log.info({ port, usual: usualPort }, elsewhere)
    return parts.add(server).port
  }
  throw new RangeError('there is no port to listen on')
}

/** The port of metrics and probes if nothing is set. */
const usualPort = 9_400
/** How many ports `auto` tries. */
const portsOfAuto = 10
const elsewhere =
  'metrics and probes have another port than usual, because another process has that: set http.port (SLUICE_HTTP_PORT) to choose one'

/** Returns the addresses for metrics and probes in the order in which they are tried. */
function probesAddresses({ host, port }: Config['http']): readonly Listening[] {
  const ports = port === 'auto' ? Array.from({ length: portsOfAuto }, (_, at) => usualPort + at) : [port]
  return ports.map((one) => ({
    host,
    port: one,
    what: 'The server of metrics and probes',
    settings: 'SLUICE_HTTP',
  }))
}

async function unlessTaken<T>(server: Promise<T>): Promise<T | undefined> {
  try {
    return await server
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return undefined
    throw error
  }
}

/** Returns the address of metrics and probes if it is set, with the name of their server for messages. */
export function setProbesAddress({ http }: Config): readonly Listening[] {
  return http.port === 'auto' ? [] : probesAddresses(http)
}

/**
 * Opens the port for a role that runs in one process. The role supplies the answers by `tell` once it has
 * started. Until then the role is live but not ready.
 */
export async function openOwnTelemetry(options: TelemetryOptions): Promise<OwnTelemetry> {
  let role: RoleTelemetry | undefined
  const port = await openTelemetry(options, {
    async metrics() {
      if (role === undefined) return { ok: false, reasons: [starting] }
      return { ok: true, text: await role.metrics() }
    },
    notLive: async () => [],
    notReady: async () => role?.notReady() ?? [starting],
  })
  return {
    port,
    tell(next) {
      role = next
    },
  }
}

/** The reason why a role whose parts haven't started is not ready. */
export const starting = 'starting'
