import { Counter, Gauge, type Registry } from 'prom-client'

/** The metrics that every role has. Roles that run in one process share them. */
export type CommonMetrics = ReturnType<typeof createCommonMetrics>

export function createCommonMetrics(registry: Registry) {
  const registers = [registry]
  return {
    buildInfo: new Gauge({
      name: 'sluice_build_info',
      help: 'Always 1. The labels say what runs: the version, the commit that it was built from, and the role (worker, gateway, admin, log or up).',
      labelNames: ['version', 'commit', 'role'],
      aggregator: 'max',
      registers,
    }),
    ready: new Gauge({
      name: 'sluice_ready',
      help: '1 while the process is ready, 0 while it is not: /readyz then answers 503 and gives the reasons. The label is the role (worker, gateway, admin, log or up). Of several processes of a worker: 1 if all are ready. No series before the process has started.',
      labelNames: ['role'],
      aggregator: 'min',
      registers,
    }),
    faults: new Counter({
      name: 'sluice_faults_total',
      help: 'Faults of Sluice itself: requests, records or steps that failed because of a bug. The log has each fault with its stack: report it.',
      registers,
    }),
    spans: new Counter({
      name: 'sluice_trace_spans_total',
      help: 'Spans that were recorded, by fate: exported, failed (the collector did not take them; the log says why) or dropped (more waited than OTEL_BSP_MAX_QUEUE_SIZE). No series where tracing is off.',
      labelNames: ['fate'],
      registers,
    }),
    catalogInfo: new Gauge({
      name: 'sluice_catalog_info',
      help: 'Always 1. The label is the version of the catalog in force: the first 12 hex digits of the SHA-256 of its text. Two versions for more than a few minutes mean that one process does not see the edit, or refuses it.',
      labelNames: ['version'],
      aggregator: 'max',
      registers,
    }),
    catalogRefused: new Gauge({
      name: 'sluice_catalog_refused',
      help: '1 while the catalog file has faults and an earlier version is in force. The log names every fault.',
      aggregator: 'max',
      registers,
    }),
    destinations: new Gauge({
      name: 'sluice_catalog_destinations',
      help: 'Destinations of the catalog in force, by state: on, paused, auto_paused (by Sluice, since its URLs have failed for notices.autoPause; workers know) or off.',
      labelNames: ['state'],
      aggregator: 'max',
      registers,
    }),
    groupLag: new Gauge({
      name: 'sluice_group_lag_records',
      help: 'Records that the consumer group has not committed yet, by topic (without the prefix). The brokers tell it, so it is there while no worker runs. Each gateway and one process of each worker read it every 15 s: take the max, not the sum.',
      labelNames: ['topic'],
      aggregator: 'max',
      registers,
    }),
    certificateExpiry: new Gauge({
      name: 'sluice_certificate_expiry_timestamp_seconds',
      help: 'When the client certificate that a setting names expires, in Unix seconds. No series where none is set. Write a new certificate to the file before that: Sluice reads it again.',
      labelNames: ['setting'],
      aggregator: 'min',
      registers,
    }),
  }
}
