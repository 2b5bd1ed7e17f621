import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Catalog, Destination } from '../catalog/catalog.ts'
import { type PublicKey, publicKeysOf } from '../catalog/features/signing-keys.ts'
import type { Config } from '../config/schema.ts'
import { Availability, type TopicAvailability } from '../gateway/outbox/availability.ts'
import { Outbox, type ProduceSender } from '../gateway/outbox/outbox.ts'
import { createGatewayServer, type GatewayServer } from '../gateway/http/gateway-server.ts'
import { createServerCalls } from '../gateway/calls/deletion-and-audience-calls.ts'
import { RefusalBudgets } from '../gateway/calls/refusal-budgets.ts'
import { Sources } from '../gateway/calls/sources.ts'
import type { GatewayTracing } from '../gateway/calls/request-tracing.ts'
import { createTracking } from '../gateway/calls/tracking.ts'
import { startRecordSender } from '../kafka/produce/record-sender.ts'
import { writtenBy } from '../topics/topic-list.ts'
import { within } from '../async/within.ts'
import { buildInfo } from '../telemetry/build-info.ts'
import { createGatewayMetrics, type GatewayMetrics } from '../telemetry/gateway-metrics.ts'
import { createGatewayObserver } from '../telemetry/gateway-observer.ts'
import { maxOpenFiles } from '../telemetry/open-files.ts'
import { clockReportOf } from './start/clock-report.ts'
import { askKafka, clientOf, openKafka } from './start/ask-kafka.ts'
import { showKafkaClient } from './start/kafka-gauges.ts'
import { maxClients } from './start/connection-limits.ts'
import { limitSharedBuffers } from './start/garbage-collector.ts'
import { openGroupLag } from './start/lag-gauges.ts'
import { type Listening, listening } from './start/listening.ts'
import { openCatalog } from './catalog/open-catalog.ts'
import type { Parts } from './start/parts.ts'
import { gatewayObstacles, showReady, sourceObstacles } from './start/readiness.ts'
import { kafkaSettings, topicLayout, topicNames } from './start/settings.ts'
import { openOwnTelemetry } from './start/telemetry.ts'
import { openTracing } from './start/tracing.ts'
import { type LaidOut, refuseWrongTopics } from './start/topic-layout.ts'

type Registry = GatewayMetrics['registry']

type GatewayOptions = {
  config: Config
  log: Logger
  /**
   * The list to which the started parts are added. When these parts stop, the gateway first reports that it
   * isn't ready, and waits for `gateway.shutdownDelay`. Then it answers the open requests and closes, within
   * the shutdown timeout.
   */
  parts: Parts
}

/**
 * The part of a gateway that takes HTTP requests and writes to Kafka. It doesn't include the port for metrics
 * and probes.
 */
export type GatewayPart = {
  /** The port of the tracking API. */
  port: number
  metrics: Registry
  /** Brings the gauges of `metrics` up to date. */
  collect(): void
  /**
   * Returns the reasons why the gateway can't do its work, in words. The list is empty when the gateway is
   * ready.
   */
  notReady(): readonly string[]
}

/** Starts the gateway in a process of its own, with its metrics and probes. */
export async function startGateway({ config, log, parts }: GatewayOptions): Promise<void> {
  limitSharedBuffers()
  const telemetry = await openOwnTelemetry({ config, log, parts })
  const metrics = createGatewayMetrics()
  const { version, commit } = buildInfo()
  metrics.buildInfo.set({ version, commit, role: 'gateway' }, 1)
  const tracing = await openTracing({ config, log, parts, metrics, role: 'gateway' })
  const file = parts.add(await openCatalog({ config, metrics, log, role: 'gateway', counts: 'sources' }))
  const kafka = await openKafka(config, log, 'gateway')
  const laidOut = await refuseWrongTopics(kafka, config, log, writtenTopics(config))
  parts.add(openGroupLag({ kafka, config, metrics, log }))
  const catalog = () => file.current()
  const traced = { tracing: tracing?.gateway }
  const part = await startGatewayPart({ config, log, parts, laidOut, catalog, metrics, ...traced })
  file.inForce()
  const notReady = () => [...part.notReady(), ...sourceObstacles(catalog().sources.size)]
  telemetry.tell({
    metrics() {
      showKafkaClient(metrics, config)
      part.collect()
      showReady(metrics, 'gateway', notReady())
      return part.metrics.metrics()
    },
    notReady,
  })
  log.info({ port: telemetry.port, gatewayPort: part.port }, 'gateway started')
}

type GatewayPartOptions = GatewayOptions & {
  catalog: () => Catalog
  laidOut: LaidOut
  metrics: GatewayMetrics
  /** The tracing of the gateway. If `undefined`, nothing is traced. */
  tracing: GatewayTracing | undefined
}

/**
 * Connects to Kafka, and starts all parts that take messages. If a worker runs in the same process, `metrics`
 * share the worker's registry.
 */
export async function startGatewayPart(options: GatewayPartOptions): Promise<GatewayPart> {
  const { config, parts, metrics } = options
  const { events } = topicNames(config)
  const { outbox, availability } = await openOutbox(options)
  const server = openServer(options, outbox)
  const state = { isStopping: false }
  const { host, port } = config.gateway
  const openPort = await listening(server.listen({ host, port }), gatewayAddress(config))
  parts.defer(async () => {
    state.isStopping = true
    await drain(options, server, outbox)
  })
  return {
    port: openPort,
    metrics: metrics.registry,
    collect() {
      metrics.openRequests.set(server.open)
      metrics.connections.set(server.connections)
      metrics.receivingBytes.set(server.receivingBytes)
      metrics.bufferedBytes.set(outbox.bytes)
      metrics.bufferedMessages.set(outbox.records)
      metrics.unavailable.set(availability.isAvailable(events) ? 0 : 1)
      for (const topic of writtenTopics(config))
        metrics.refusedPartitions.set({ topic }, availability.refused(topic))
    },
    notReady: () =>
      gatewayObstacles(
        state.isStopping,
        availability.isAvailable(events) ? undefined : availability.reason(events),
      ),
  }
}

async function openOutbox({
  config,
  log,
  parts,
  laidOut,
  metrics,
}: GatewayPartOptions): Promise<{ outbox: Outbox; availability: Availability }> {
  const kafka = clientOf(kafkaSettings(config), log, 'impatient')
  const onClockSkew = clockReportOf({ metrics, log }).take
  // A client's request that waits for a throttle still has to wait for the acknowledgement.
  const mostThrottleMs = config.gateway.ackTimeoutMs / 2
  const sender = await askKafka(config, startRecordSender(kafka, { mostThrottleMs, onClockSkew }))
  parts.defer(() => within(leaveMs, sender.stop()))
  const counted: ProduceSender = {
    send(produces, route, onSettled, onThrottled) {
      const unsent = new Set<object>()
      sender.send(
        produces,
        route,
        (produce, failure) => {
          if (failure !== undefined && !unsent.has(produce)) metrics.produceFailures.inc()
          onSettled(produce, failure)
        },
        (produce, throttleMs, isSent) => {
          if (!isSent) unsent.add(produce)
          onThrottled(produce, throttleMs, isSent)
        },
      )
    },
  }
  const { minInsync, partitions } = topicLayout(config)
  const topics = writtenTopics(config)
  const availability = parts.add(
    new Availability({
      topics,
      partitions,
      check: () => sender.obstacles(topics, minInsync),
      now: monotonicMs,
      onChange: (change) => tellAvailability(log, change),
    }),
  )
  const { lingerMs, ackTimeoutMs, bufferBytes } = config.gateway
  const limits = { lingerMs, ackTimeoutMs, bufferBytes }
  const outbox = parts.add(
    new Outbox({ sender: counted, availability, ...limits, ...laidOut, now: monotonicMs }),
  )
  metrics.bufferedBytesLimit.set(bufferBytes)
  return { outbox, availability }
}

function openServer(
  { config, log, catalog, metrics, tracing }: GatewayPartOptions,
  outbox: Outbox,
): GatewayServer {
  const observer = createGatewayObserver({ metrics, log, now: monotonicMs })
  const topics = topicNames(config)
  const { bufferBytes, requestTimeoutMs, addIp, correctTimestamps, trustedProxies } = config.gateway
  const maxConnections = maxClients(config, maxOpenFiles(), log)
  metrics.connectionsLimit.set(maxConnections)
  const sources = new Sources(catalog, monotonicMs)
  const { partitions } = topicLayout(config)
  const shared = { sources, outbox, partitions, limits: config.message, now: Date.now }
  return createGatewayServer({
    sources,
    tracking: createTracking({
      ...shared,
      observer,
      topic: topics.events,
      budgets: new RefusalBudgets(monotonicMs),
    }),
    serverCalls: createServerCalls({ ...shared, topics }),
    signingKeysOf: publicKeysBy(catalog),
    observer,
    tracing,
    receiveBytes: bufferBytes,
    requestTimeoutMs,
    maxConnections,
    addIp,
    correctTimestamps,
    trustedProxies,
  })
}

/** Reads the public keys of a destination once, because anybody may ask for them. */
function publicKeysBy(catalog: () => Catalog): (destinationId: string) => readonly PublicKey[] {
  const known = new WeakMap<Destination, readonly PublicKey[]>()
  return (destinationId) => {
    const destination = catalog().destinations.get(destinationId)
    if (destination?.signingKeys === undefined) return []
    let keys = known.get(destination)
    if (keys === undefined) known.set(destination, (keys = publicKeysOf(destination.signingKeys)))
    return keys
  }
}

async function drain(
  { config, log }: GatewayPartOptions,
  server: GatewayServer,
  outbox: Outbox,
): Promise<void> {
  const { shutdownDelayMs } = config.gateway
  server.retire()
  if (shutdownDelayMs > 0) {
    log.info({ delayMs: shutdownDelayMs }, 'stopping: no longer ready, still accepting connections')
    await delay(shutdownDelayMs)
  }
  log.info({ open: server.open }, 'draining: no longer accepting connections')
  await server.stop(Math.max(0, config.shutdown.timeoutMs - leaveMs))
  if (outbox.records > 0)
    log.warn(
      { messages: outbox.records },
      'stopping before Kafka has acknowledged all messages: their requests were not answered 200',
    )
}

function writtenTopics(config: Config): readonly string[] {
  const names = topicNames(config)
  return writtenBy('gateway').map((key) => names[key])
}

function tellAvailability(log: Logger, change: TopicAvailability): void {
  if (change.refused === 0)
    log.info({ topic: change.topic }, 'Kafka accepts records for all partitions of this topic again')
  else log.error(change, refusing)
}

const refusing =
  'Kafka does not accept records for these partitions: requests with a record for one of them are answered 503 until it does'

function monotonicMs(): number {
  return performance.now()
}

/**
 * The part of the shutdown timeout that is reserved for closing the connections to Kafka, in milliseconds.
 */
const leaveMs = 1_000

/** Returns the address on which the gateway listens, and the gateway's name in error messages. */
export function gatewayAddress({ gateway: { host, port } }: Config): Listening {
  return { host, port, what: 'The gateway', settings: 'SLUICE_GATEWAY' }
}
