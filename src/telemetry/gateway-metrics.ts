import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { type CommonMetrics, createCommonMetrics } from './common-metrics.ts'
import { TallyHistogram } from './metric-tally.ts'

/** The metrics of the gateway. Labels come from closed lists. */
export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>

const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5]

/**
 * Creates the metrics. If a worker runs in the same process, `beside` are the worker's metrics. The metrics
 * of the gateway are added to the registry of `beside`, so that both are read together.
 */
export function createGatewayMetrics(beside: CommonMetrics & { registry: Registry } = ownMetrics()) {
  const { registry } = beside
  const { buildInfo, ready, faults, spans, catalogInfo, catalogRefused, destinations } = beside
  const { catalogCopyAge, catalogTrouble } = beside
  const { groupLag, throttled, certificateExpiry, openFiles, clockSkew } = beside
  const registers = [registry]
  return {
    registry,
    buildInfo,
    ready,
    openFiles,
    clockSkew,
    faults,
    spans,
    catalogInfo,
    catalogRefused,
    catalogCopyAge,
    catalogTrouble,
    destinations,
    groupLag,
    throttled,
    certificateExpiry,
    requests: new Counter({
      name: 'sluice_gateway_requests_total',
      help: 'Requests that were answered, by call and status.',
      labelNames: ['call', 'status'],
      registers,
    }),
    refused: new Counter({
      name: 'sluice_gateway_refused_requests_total',
      help: 'Requests that were refused, by the code in the answer. too_dense: a body in gzip would have caused too much work. refused_too_often: requests of the same address were refused before, so this one was not read.',
      labelNames: ['reason'],
      registers,
    }),
    requestSeconds: new TallyHistogram({
      name: 'sluice_gateway_request_duration_seconds',
      help: 'Time from the end of a request to its answer.',
      labelNames: ['call'],
      buckets: requestBuckets,
      registers,
    }),
    messages: new Counter({
      name: 'sluice_gateway_messages_total',
      help: 'Messages that Kafka has acknowledged, by type.',
      labelNames: ['type'],
      registers,
    }),
    leftOut: new Counter({
      name: 'sluice_gateway_left_out_total',
      help: 'Messages that are not in Kafka although their request was answered 200, by reason. For unknown_source it counts requests, which were answered 401.',
      labelNames: ['reason'],
      registers,
    }),
    digitsLost: new Counter({
      name: 'sluice_gateway_lost_digits_total',
      help: 'Whole numbers beyond 2^53 that lost digits in accepted messages, because JSON numbers are doubles. Send such ids as strings.',
      registers,
    }),
    coalesced: new Counter({
      name: 'sluice_gateway_coalesced_total',
      help: 'Messages that arrived while an identical message was on its way to Kafka. They got the same answer as that message.',
      registers,
    }),
    openRequests: new Gauge({
      name: 'sluice_gateway_open_requests',
      help: 'Requests that are not answered yet.',
      registers,
    }),
    connections: new Gauge({
      name: 'sluice_gateway_connections',
      help: 'Open connections of clients.',
      registers,
    }),
    connectionsLimit: new Gauge({
      name: 'sluice_gateway_connections_limit',
      help: 'The limit of sluice_gateway_connections. It is gateway.maxConnections, or what the limit of open files (ulimit -n) allows if this is less.',
      registers,
    }),
    connectionsRefused: new Counter({
      name: 'sluice_gateway_connections_refused_total',
      help: 'Connections of clients that were closed at once, because there were already sluice_gateway_connections_limit connections. Their clients try again or lose messages. Run more gateways, or raise the limit.',
      registers,
    }),
    receivingBytes: new Gauge({
      name: 'sluice_gateway_receiving_bytes',
      help: 'Bytes of bodies that are not complete yet.',
      registers,
    }),
    bufferedBytes: new Gauge({
      name: 'sluice_gateway_buffered_bytes',
      help: 'Bytes of messages that Kafka has not acknowledged yet.',
      registers,
    }),
    bufferedMessages: new Gauge({
      name: 'sluice_gateway_buffered_messages',
      help: 'Messages that Kafka has not acknowledged yet.',
      registers,
    }),
    bufferedBytesLimit: new Gauge({
      name: 'sluice_gateway_buffered_bytes_limit',
      help: 'The limit of sluice_gateway_buffered_bytes, and also of sluice_gateway_receiving_bytes (gateway.bufferBytes). If one of them reaches it, the gateway answers 503.',
      registers,
    }),
    produceFailures: new Counter({
      name: 'sluice_gateway_produce_failures_total',
      help: 'Writes to a partition that Kafka did not accept. The gateway repeats a write as long as a client waits for the answer.',
      registers,
    }),
    unavailable: new Gauge({
      name: 'sluice_gateway_kafka_unavailable',
      help: '1 while no partition of the events topic accepts messages. Requests are then answered 503, and the gateway is not ready.',
      aggregator: 'max',
      registers,
    }),
    refusedPartitions: new Gauge({
      name: 'sluice_gateway_refused_partitions',
      help: 'Partitions for which Kafka accepts no records, by topic. Requests with a record for one of them are answered 503.',
      labelNames: ['topic'],
      aggregator: 'max',
      registers,
    }),
  }
}

function ownMetrics(): CommonMetrics & { registry: Registry } {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return { registry, ...createCommonMetrics(registry) }
}
