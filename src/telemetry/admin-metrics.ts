import { collectDefaultMetrics, Counter, Registry } from 'prom-client'
import { type CommonMetrics, createCommonMetrics } from './common-metrics.ts'

/** The metrics of `sluice admin`. Labels come from closed lists. */
export type AdminMetrics = ReturnType<typeof createAdminMetrics>

/**
 * Creates the metrics. If a worker runs in the same process, `beside` are the worker's metrics. The metrics
 * of the admin API are added to the registry of `beside`.
 */
export function createAdminMetrics(beside: CommonMetrics & { registry: Registry } = ownMetrics()) {
  const { registry } = beside
  return {
    ...beside,
    registry,
    requests: new Counter({
      name: 'sluice_admin_requests_total',
      help: 'Requests to the admin API that were answered, by call and status. Many requests with status 401 mean that somebody guesses tokens, or uses an old token.',
      labelNames: ['call', 'status'],
      registers: [registry],
    }),
    connectionsClosed: new Counter({
      name: 'sluice_admin_connections_closed_total',
      help: 'Connections to the admin API that were closed because of a limit, by reason: connections (there were too many, and this one was idle), pipelining (it had too many unanswered requests) or unread (the client did not read its answer in time, or others needed the memory).',
      labelNames: ['reason'],
      registers: [registry],
    }),
  }
}

function ownMetrics(): CommonMetrics & { registry: Registry } {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return { registry, ...createCommonMetrics(registry) }
}
