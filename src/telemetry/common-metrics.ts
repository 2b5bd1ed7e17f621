import { Counter, Gauge, type Registry } from 'prom-client'
import { AskedGauge, AskedKinds } from './asked-gauge.ts'
import { openFilesRatio } from './open-files.ts'

/** The metrics that every role has. Roles that run in one process share them. */
export type CommonMetrics = ReturnType<typeof createCommonMetrics>

export function createCommonMetrics(registry: Registry) {
  const registers = [registry]
  return {
    buildInfo: new Gauge({
      name: 'sluice_build_info',
      help: 'Always 1. The labels are the version that runs, the commit from which it was built, and the role (worker, gateway, admin, log or up).',
      labelNames: ['version', 'commit', 'role'],
      aggregator: 'max',
      registers,
    }),
    ready: new Gauge({
      name: 'sluice_ready',
      help: '1 while the process is ready, 0 while it is not. While it is 0, /readyz answers 503 and gives the reasons. The label is the role (worker, gateway, admin, log or up). If a worker has several processes, it is 1 if all of them are ready. There is no series before the process has started.',
      labelNames: ['role'],
      aggregator: 'min',
      registers,
    }),
    openFiles: new Gauge({
      name: 'sluice_open_files_ratio',
      help: 'The number of open files, divided by the number that the process may open (ulimit -n). It is 1 while no more files can be opened. If a worker has several processes, it is the highest share of a process.',
      aggregator: 'max',
      registers,
      collect() {
        const ratio = openFilesRatio()
        if (ratio !== undefined) this.set(ratio)
      },
    }),
    clockSkew: new Gauge({
      name: 'sluice_clock_skew_seconds',
      help: 'The largest difference between the clock of the process and the clock of a broker, of the last 10 minutes. Sluice measures it when it writes to the broker, and shows the smallest difference that fits the measurement. It is 0 if the difference may be due to the duration of the write. The log says whose clock is ahead.',
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
      help: 'Spans that were recorded, by fate: exported, failed (the collector did not accept them; the log says why) or dropped (more than OTEL_BSP_MAX_QUEUE_SIZE spans waited). There is no series if tracing is off.',
      labelNames: ['fate'],
      registers,
    }),
    catalogInfo: new Gauge({
      name: 'sluice_catalog_info',
      help: 'Always 1. The label is the version of the catalog that the process uses: the first 12 hex digits of the SHA-256 of its text. If processes use two versions for more than a few minutes, one of them does not see the newest edit, or refuses it.',
      labelNames: ['version'],
      aggregator: 'max',
      registers,
    }),
    catalogRefused: new AskedGauge({
      name: 'sluice_catalog_refused',
      help: '1 while the catalog file has faults, or lacks many entries of the catalog in force, so that the process uses an earlier version. The log names every fault.',
      aggregator: 'max',
      registers,
    }),
    catalogCopyAge: new AskedGauge({
      name: 'sluice_catalog_copy_age_seconds',
      help: 'The age of the copy of the catalog that the process uses, because the topic of the catalog could not be used when it started. 0 while the process follows the topic, or if the catalog is in a file.',
      aggregator: 'max',
      registers,
    }),
    catalogTrouble: new AskedKinds({
      name: 'sluice_catalog_topic_trouble',
      help: 'What is wrong with the topic of the catalog, 1 for each kind: copy (it could not be used at the start), other_topic (it was made anew, or has lost records), unread (it can not be read for 30 s), unusable (objects of it can not be used), overwritten (somebody without the key has overwritten records of it, and Kafka will delete what they were) or cleanup_policy (Kafka may delete objects of it, so changes are refused). There is no series if the catalog is in a file.',
      labelNames: ['kind'],
      kinds: ['copy', 'other_topic', 'unread', 'unusable', 'overwritten', 'cleanup_policy'],
      aggregator: 'max',
      registers,
    }),
    destinations: new Gauge({
      name: 'sluice_catalog_destinations',
      help: 'Destinations of the catalog, by state: on, paused, auto_paused or off. A destination is auto_paused if Sluice has paused it because all of its URLs have failed for notices.autoPause, or have answered 410 (Gone). Only workers have this value.',
      labelNames: ['state'],
      aggregator: 'max',
      registers,
    }),
    groupLag: new Gauge({
      name: 'sluice_group_lag_records',
      help: 'Records that the consumer group has not committed yet, by topic (without the prefix). The number comes from the brokers, so it exists even while no worker runs. Each gateway and one process of each worker read it every 15 s, so take the max and not the sum.',
      labelNames: ['topic'],
      aggregator: 'max',
      registers,
    }),
    throttled: new Counter({
      name: 'sluice_kafka_throttled_seconds_total',
      help: 'Seconds for which brokers have announced that they read nothing from a connection of this process, because a quota of its client id or user is used up. By broker (host:port) and request: produce (producer_byte_rate), fetch (consumer_byte_rate), topics (controller_mutation_rate) or other; each may also be due to request_percentage. Sluice waits as long and loses nothing. If this grows all the time, raise the quota.',
      labelNames: ['broker', 'request'],
      registers,
    }),
    certificateExpiry: new Gauge({
      name: 'sluice_certificate_expiry_timestamp_seconds',
      help: 'The time at which a client certificate expires, in Unix seconds. The label is the setting that names the file of the certificate. There is no series if the setting names no file. Write a new certificate to the file before this time. Sluice reads the file again.',
      labelNames: ['setting'],
      aggregator: 'min',
      registers,
    }),
  }
}
