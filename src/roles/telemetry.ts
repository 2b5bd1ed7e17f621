import type { Config } from '../config/schema.ts'
import { type Probes, serveTelemetry } from '../telemetry/http.ts'
import { listening } from './listening.ts'
import type { Parts } from './parts.ts'

export type TelemetryOptions = {
  config: Config
  parts: Parts
}

/** The answers of a role on its port for metrics and probes. */
export type RoleTelemetry = {
  /** Returns the present metrics in Prometheus' text format. */
  metrics(): Promise<string>
  /** Returns why the role can't do its work, in words; empty when it is ready. */
  notReady(): readonly string[]
}

export type OwnTelemetry = {
  port: number
  /** Makes the port answer with this role from now on. */
  tell(role: RoleTelemetry): void
}

/**
 * Opens the port for metrics and probes. It is a role's first part, so it stays open as long as anything
 * runs.
 */
export async function openTelemetry({ config, parts }: TelemetryOptions, probes: Probes): Promise<number> {
  const { host, port } = config.http
  const address = { host, port, what: 'The server of metrics and probes', settings: 'SLUICE_HTTP' }
  const server = await listening(serveTelemetry({ host, port, probes }), address)
  return parts.add(server).port
}

/**
 * Opens the port for a role in one process, which supplies its answers once it has started. Until then the
 * role is live but not ready.
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
