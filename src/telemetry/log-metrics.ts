import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { createCommonMetrics } from './common-metrics.ts'

/**
 * The metrics of the delivery log's index. `common` are the metrics that every role has. `common` is absent
 * if the index shares the registry of another role.
 */
export type LogMetrics = ReturnType<typeof createLogMetrics>

export function createLogMetrics(shared?: { registry: Registry }) {
  const registry = shared?.registry ?? new Registry()
  if (shared === undefined) collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    ...(shared === undefined && { common: createCommonMetrics(registry) }),
    indexed: new Counter({
      name: 'sluice_log_indexed_total',
      help: 'Records of the delivery log that were indexed.',
      registers,
    }),
    unreadable: new Counter({
      name: 'sluice_log_unreadable_total',
      help: 'Records of the topic attempts that the index has skipped, because they are damaged or written by a later version.',
      registers,
    }),
    behind: new Gauge({
      name: 'sluice_log_index_behind_seconds',
      help: 'How far the index is behind the topic attempts, which is the age of the last record that the index has read. It is 0 if the index has all records. It is -1 while this is not known, for example because the index can not be written. If Kafka stops answering, it is the time since the last answer.',
      aggregator: 'max',
      registers,
    }),
    connectionsClosed: new Counter({
      name: 'sluice_log_connections_closed_total',
      help: "Connections to the server of the delivery log's index that were closed because of a limit, by reason: connections (there were too many, and this one was idle), pipelining (it had too many unanswered requests) or unread (the client did not read its answer in time, or others needed the memory).",
      labelNames: ['reason'],
      registers,
    }),
    heldBytes: new Gauge({
      name: 'sluice_log_index_held_bytes',
      help: 'Bytes read from the topic attempts that are not in the index yet.',
      registers,
    }),
  }
}
