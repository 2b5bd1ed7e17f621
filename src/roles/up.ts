import type { Logger } from 'pino'
import { createToken, readTokens, type Token } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { ConfigSources } from '../config/read.ts'
import type { Config } from '../config/schema.ts'
import { type RunningKafka, startKafka } from '../development/kafka.ts'
import { adminAddress, startAdminPart } from './admin.ts'
import { openTokens } from './admin-tokens.ts'
import { clientOf, openKafka } from './start/ask-kafka.ts'
import { refuseFaultyCatalog } from './start/open-catalog.ts'
import { gatewayAddress, startGatewayPart } from './gateway.ts'
import { refuseTakenPort } from './start/listening.ts'
import { type LogIndex, openLogIndex } from './operations/log-index.ts'
import { answerQueries } from './log-serve.ts'
import type { Parts } from './start/parts.ts'
import { showReady } from './start/readiness.ts'
import { kafkaSettings } from './start/settings.ts'
import { StartError } from './start/start-error.ts'
import { openOwnTelemetry, type OwnTelemetry } from './start/telemetry.ts'
import { createAdminMetrics } from '../telemetry/admin-metrics.ts'
import { createGatewayMetrics } from '../telemetry/gateway-metrics.ts'
import { createLogMetrics } from '../telemetry/log-metrics.ts'
import { applyTopicTable } from './operations/topic-table.ts'
import { startMember } from './worker.ts'

export type UpOptions = {
  config: Config
  /** The origins of the settings. */
  sources: ConfigSources
  log: Logger
  parts: Parts
  onFatal: (error: Error) => void
  /** Prints a line for the person at the terminal. */
  say: (line: string) => void
}

const dataDir = '.sluice/kafka'
const loopback = ['127.0.0.0/8', '::1/128']

type Ports = {
  /** The port of `/metrics`, `/livez` and `/readyz`. */
  httpPort: number
  /** The port of the tracking API. */
  gatewayPort: number
  /**
   * The port of the admin API. `undefined` if there are no tokens: the API isn't started then, because nobody
   * could use it.
   */
  adminPort: number | undefined
}

/**
 * Starts all roles in one process. Without configured brokers, it starts a Kafka for development with one
 * replica. The data of this Kafka stays in `.sluice/kafka` between starts. Hooks may then have URLs on this
 * machine.
 */
export async function startUp({ say, sources, ...given }: UpOptions): Promise<void> {
  const options = {
    ...given,
    config: given.config.kafka.brokers.length > 0 ? given.config : onlyHere(given.config, sources),
  }
  const { config, log, parts } = options
  const telemetry = await openOwnTelemetry(options)
  // The catalog and the ports are checked first. If the catalog is faulty or a port is taken, no Kafka needs
  // to be started.
  await refuseFaultyCatalog(config)
  await refuseTakenPort(gatewayAddress(config))
  if (config.kafka.brokers.length === 0 || config.admin.tokensFile !== undefined)
    await refuseTakenPort(adminAddress(config))
  if (config.kafka.brokers.length > 0) {
    await openKafka(config, log, 'up')
    await applyTopicTable(config, log)
    const tokens =
      config.admin.tokensFile === undefined ? undefined : parts.add(await openTokens(config, log))
    await startRoles({ ...options, tokens: tokens && (() => tokens.current()) }, telemetry)
    return
  }
  const kafka = parts.add(await startDevelopmentKafka(say))
  const development: Config = {
    ...config,
    kafka: { ...config.kafka, brokers: kafka.brokers },
    topics: { ...config.topics, development: true },
    // No load balancer stands in front of the gateway.
    gateway: { ...config.gateway, shutdownDelayMs: 0 },
    delivery: { ...config.delivery, allowAddresses: [...config.delivery.allowAddresses, ...loopback] },
  }
  for (const line of await applyTopicTable(development, log)) say(`topics: ${line}`)
  const { token, line } = createToken('developer', 'admin')
  const read = readTokens(line)
  const tokens = read.ok ? read.tokens : []
  const ports = await startRoles({ ...options, config: development, tokens: () => tokens }, telemetry)
  for (const notice of developmentNotice(kafka.brokers, ports, token)) say(notice)
}

/**
 * Makes all servers listen on 127.0.0.1, because only this machine may reach a Sluice for development, whose
 * token is printed on the terminal. A host that somebody has set for the gateway or the metrics stays.
 */
function onlyHere(config: Config, sources: ConfigSources): Config {
  const host = (name: string, given: string): string =>
    sources.get(name) === 'default' ? '127.0.0.1' : given
  return {
    ...config,
    http: { ...config.http, host: host('http.host', config.http.host) },
    gateway: { ...config.gateway, host: host('gateway.host', config.gateway.host) },
    admin: { ...config.admin, host: '127.0.0.1' },
  }
}

async function startDevelopmentKafka(say: UpOptions['say']): Promise<RunningKafka> {
  try {
    return await startKafka({ brokers: [], dataDir, port: 9092, report: say })
  } catch (cause) {
    // The message says what to install, or it contains the last output of the broker.
    throw new StartError(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/**
 * Starts a worker, a gateway and the admin API, with one port for all probes. They stop in reverse order, so
 * the worker can still deliver the messages that arrive last. `tokens` says who may use the API. Without
 * `tokens`, the API isn't started.
 */
async function startRoles(
  options: Omit<UpOptions, 'say' | 'sources'> & { tokens: (() => readonly Token[]) | undefined },
  telemetry: OwnTelemetry,
): Promise<Ports> {
  const { log, tokens } = options
  const member = await startMember({ ...options, role: 'up' })
  const { metrics: registry, laidOut } = member
  const tracing = member.tracing?.gateway
  const catalog = (): Catalog => member.catalog()
  const metrics = createGatewayMetrics(member.common)
  const gateway = await startGatewayPart({ ...options, laidOut, metrics, catalog, tracing })
  const index = await startIndex(options, registry)
  const adminMetrics = createAdminMetrics(member.common)
  const ofAdmin = {
    ...options,
    metrics: adminMetrics,
    role: 'up',
    catalog,
    logQuery: index?.query,
    topic: member.catalogTopic,
  } as const
  const admin = tokens && (await startAdminPart({ ...ofAdmin, tokens }))
  // The index isn't included, because all other parts work without it.
  const notReady = () => [...member.notReady(), ...gateway.notReady(), ...(admin?.notReady() ?? [])]
  telemetry.tell({
    metrics() {
      member.collect()
      gateway.collect()
      index?.collect()
      showReady(member.common, 'up', notReady())
      return registry.metrics()
    },
    notReady,
  })
  const { port: httpPort } = telemetry
  const { port: gatewayPort } = gateway
  log.info({ port: httpPort, tiers: member.tiers }, 'worker started')
  log.info({ port: httpPort, gatewayPort }, 'gateway started')
  if (admin !== undefined) log.info({ port: httpPort, adminPort: admin.port }, 'admin started')
  return { httpPort, gatewayPort, adminPort: admin?.port }
}

/** Starts the index of the delivery log, if the worker writes that log. */
async function startIndex(
  options: Omit<UpOptions, 'say' | 'sources'>,
  registry: ReturnType<typeof createLogMetrics>['registry'],
): Promise<LogIndex | undefined> {
  const { config, log } = options
  if (!config.attempts.enabled) return undefined
  const kafka = clientOf(kafkaSettings(config), log)
  const metrics = createLogMetrics({ registry })
  const index = await openLogIndex({ ...options, kafka, metrics })
  const queryPort = await answerQueries({ ...options, metrics, query: index.query })
  log.info({ queryPort }, 'log started')
  return index
}

function developmentNotice(
  brokers: readonly string[],
  { httpPort, gatewayPort, adminPort }: Ports,
  token: string,
): string[] {
  return [
    '',
    'This is for development: one broker, one replica, and URLs on this machine (127.0.0.0/8, ::1) are allowed.',
    `  Kafka    ${brokers.join(',')}   data in ${dataDir}`,
    `  gateway  http://127.0.0.1:${gatewayPort}   Segment's tracking API; /docs tells more`,
    `  admin    http://127.0.0.1:${adminPort ?? ''}/openapi.json   with Authorization: Bearer ${token}`,
    `  metrics  http://127.0.0.1:${httpPort}/metrics`,
    `  try      curl http://127.0.0.1:${gatewayPort}/v1/track -u WRITE_KEY: -d '{"userId":"u1","event":"Hello"}'`,
    `  or       KAFKA_BROKERS=${brokers.join(',')} npx sluice send --source SOURCE '{"type":"track","userId":"u1","event":"Hello"}'`,
    'Ctrl-C stops it.',
    '',
  ]
}
