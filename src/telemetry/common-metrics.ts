import { Counter, Gauge, type Registry } from 'prom-client'
import { AskedGauge } from './asked-gauge.ts'
import { openFilesRatio } from './open-files.ts'

/** The metrics that every role has. Roles that run in one process share them. */
export type CommonMetrics = ReturnType<typeof createCommonMetrics>

export function createCommonMetrics(registry: Registry) {
  const registers = [registry]
  return {
    buildInfo: new Gauge({
      name: 'sluice_build_info',
      help: 'Always 1. The labels say what runs: the version, the commit that the version was built from, and the role (worker, gateway, admin, log or up).',
      labelNames: ['version', 'commit', 'role'],
      aggregator: 'max',
      registers,
    }),
    ready: new Gauge({
      name: 'sluice_ready',
      help: '1 while the process is ready, 0 while it is not. While it is 0, /readyz answers 503 and gives the reasons. The label is the role (worker, gateway, admin, log or up). If a worker has several processes: 1 if all are ready. No series before the process has started.',
      labelNames: ['role'],
      aggregator: 'min',
      registers,
    }),
    openFiles: new Gauge({
      name: 'sluice_open_files_ratio',
      help: 'Open files as a share of what the process may open (ulimit -n). 1 while no more can be opened. If a worker has several processes: the highest share.',
      aggregator: 'max',
      registers,
      collect() {
        const ratio = openFilesRatio()
        if (ratio !== undefined) this.set(ratio)
      },
    }),
    clockSkew: new Gauge({
      name: 'sluice_clock_skew_seconds',
      help: 'How much the clock of the process at least differs from the clock of a broker that it wrote to within the last 10 minutes: the largest difference. The log says which of both is ahead. 0 if the difference is within the time of a write.',
      aggregator: 'max',
      registers,
    }),
    faults: new Counter({
      name: 'sluice_faults_total',
      help: 'Faults of Sluice itself: requests, records or steps that failed because of a bug. The log has each fault with its stack. Please report faults.',
      registers,
    }),
    spans: new Counter({
      name: 'sluice_trace_spans_total',
      help: 'Spans that were recorded, by fate: exported, failed (the collector did not accept them; the log says why) or dropped (more than OTEL_BSP_MAX_QUEUE_SIZE spans waited). No series if tracing is off.',
      labelNames: ['fate'],
      registers,
    }),
    catalogInfo: new Gauge({
      name: 'sluice_catalog_info',
      help: 'Always 1. The label is the version of the catalog in force: the first 12 hex digits of the SHA-256 of its text. If two versions are in force for more than a few minutes, one process does not see the newest edit, or refuses it.',
      labelNames: ['version'],
      aggregator: 'max',
      registers,
    }),
    catalogRefused: new AskedGauge({
      name: 'sluice_catalog_refused',
      help: '1 while the catalog file has faults and an earlier version is in force. The log names every fault.',
      aggregator: 'max',
      registers,
    }),
    destinations: new Gauge({
      name: 'sluice_catalog_destinations',
      help: 'Destinations of the catalog in force, by state: on, paused, auto_paused (paused by Sluice, because all URLs have failed for notices.autoPause; only workers have this value) or off.',
      labelNames: ['state'],
      aggregator: 'max',
      registers,
    }),
    groupLag: new Gauge({
      name: 'sluice_group_lag_records',
      help: 'Records that the consumer group has not committed yet, by topic (without the prefix). The number comes from the brokers, so it is there even while no worker runs. Each gateway and one process of each worker read it every 15 s: take the max, not the sum.',
      labelNames: ['topic'],
      aggregator: 'max',
      registers,
    }),
    certificateExpiry: new Gauge({
      name: 'sluice_certificate_expiry_timestamp_seconds',
      help: 'When the client certificate that a setting names expires, in Unix seconds. No series if the setting names no file. Write a new certificate to the file before that time. Sluice reads the file again.',
      labelNames: ['setting'],
      aggregator: 'min',
      registers,
    }),
  }
}
