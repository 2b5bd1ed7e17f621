import type { Config } from '../config/schema.ts'
import { type Probes, serveTelemetry } from '../telemetry/http.ts'
import { listening } from './listening.ts'
import type { Parts } from './parts.ts'

export type TelemetryOptions = {
  config: Config
  parts: Parts
}

/** What a role answers at its port for metrics and probes. */
export type RoleTelemetry = {
  /** In Prometheus' text format, up to date. */
  metrics(): Promise<string>
  /** What keeps it from doing its work, in words; nothing when it is ready. */
  notReady(): readonly string[]
}

export type OwnTelemetry = {
  port: number
  /** From now on the port answers with this. */
  tell(role: RoleTelemetry): void
}

/** The port for metrics and probes: open as long as anything runs, it is the first part of a role. */
export async function openTelemetry({ config, parts }: TelemetryOptions, probes: Probes): Promise<number> {
  const { host, port } = config.http
  const address = { host, port, what: 'The server of metrics and probes', settings: 'SLUICE_HTTP' }
  const server = await listening(serveTelemetry({ host, port, probes }), address)
  return parts.add(server).port
}

/**
 * The same for a role in one process, which says what it answers once it has started. Until then it is live,
 * and not ready.
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

/** What keeps a role from being ready whose parts are not there yet. */
export const starting = 'starting'
