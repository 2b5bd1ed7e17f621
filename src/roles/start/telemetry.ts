import type { Config } from '../../config/schema.ts'
import { type Probes, serveTelemetry } from '../../telemetry/probe-server.ts'
import { type Listening, listening } from './listening.ts'
import type { Parts } from './parts.ts'

export type TelemetryOptions = {
  config: Config
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
export async function openTelemetry({ config, parts }: TelemetryOptions, probes: Probes): Promise<number> {
  const address = probesAddress(config)
  const { host, port } = address
  const server = await listening(serveTelemetry({ host, port, probes }), address)
  return parts.add(server).port
}

/** Returns the address of metrics and probes, with the name of their server for messages. */
export function probesAddress({ http: { host, port } }: Config): Listening {
  return { host, port, what: 'The server of metrics and probes', settings: 'SLUICE_HTTP' }
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
