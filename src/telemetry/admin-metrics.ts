import { collectDefaultMetrics, Counter, Registry } from 'prom-client'
import { AskedGauge } from './asked-gauge.ts'
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
    sessions: new AskedGauge({
      name: 'sluice_admin_sessions',
      help: 'Sessions of browsers that are in force. If the catalog is in a topic, each process has those of all processes, so take the max and not the sum.',
      aggregator: 'max',
      registers: [registry],
    }),
    signIns: new Counter({
      name: 'sluice_admin_sign_ins_total',
      help: 'Sign-ins to the console, by what was given (token, code or link) and result: accepted, refused (it is wrong or has ended) or limited (too many wrong ones came from its address).',
      labelNames: ['by', 'result'],
      registers: [registry],
    }),
    liveViews: new AskedGauge({
      name: 'sluice_admin_live_views',
      help: 'Live views that are open.',
      registers: [registry],
    }),
    liveViewsEnded: new Counter({
      name: 'sluice_admin_live_views_ended_total',
      help: 'Live views that were ended by this process, by reason: slow (the browser did not read what it was sent), session (the session or token has ended, or may see something else) or stopping. Those that browsers closed are not counted.',
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
