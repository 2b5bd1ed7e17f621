import type { Logger } from 'pino'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/schema.ts'
import { startKafka } from '../development/kafka.ts'
import { serveTelemetry } from '../telemetry/http.ts'
import { startGatewayPart } from './gateway.ts'
import type { Running } from './running.ts'
import { applyTopicTable } from './topics.ts'
import { startMember } from './worker.ts'

export type UpOptions = {
  config: Config
  log: Logger
  onFatal: (error: Error) => void
  /** For the person at the terminal. */
  say: (line: string) => void
}

const dataDir = '.sluice/kafka'
const loopback = ['127.0.0.0/8', '::1/128']

type Up = Running & {
  /** Of `/metrics`, `/livez` and `/readyz`. */
  httpPort: number
  /** Of the tracking API. */
  gatewayPort: number
}

/**
 * Everything in one process. Without configured brokers it starts a Kafka for development, whose data stays
 * in `.sluice/kafka` between starts, with one replica, and URLs on this machine are allowed.
 */
export async function startUp({ config, log, onFatal, say }: UpOptions): Promise<Running> {
  if (config.kafka.brokers.length > 0) {
    await applyTopicTable(config, log)
    return startParts({ config, log, onFatal })
  }
  const kafka = await startKafka({ brokers: [], dataDir, port: 9092, report: say })
  const development: Config = {
    ...config,
    kafka: { ...config.kafka, brokers: kafka.brokers },
    topics: { ...config.topics, development: true },
    // Nothing stands in front of it.
    gateway: { ...config.gateway, shutdownDelayMs: 0 },
    delivery: { ...config.delivery, allowAddresses: [...config.delivery.allowAddresses, ...loopback] },
  }
  try {
    for (const line of await applyTopicTable(development, log)) say(`topics: ${line}`)
    const up = await startParts({ config: development, log, onFatal })
    for (const line of developmentNotice(kafka.brokers, up)) say(line)
    return {
      async stop() {
        await up.stop()
        await kafka.stop()
      },
    }
  } catch (error) {
    await kafka.stop()
    throw error
  }
}

/** A gateway and a worker, which end in this order: what is taken last is still delivered. One port for both their probes. */
async function startParts({ config, log, onFatal }: Omit<UpOptions, 'say'>): Promise<Up> {
  const member = await startMember({ config, log, onFatal })
  const { metrics: registry } = member
  const catalog = (): Catalog => member.catalog()
  const gateway = await startGatewayPart({ config, log, registry, catalog }).catch(async (error: unknown) => {
    await member.stop()
    throw error
  })
  const telemetry = await serveTelemetry({
    host: config.http.host,
    port: config.http.port,
    probes: {
      async metrics() {
        member.collect()
        gateway.collect()
        return { ok: true, text: await registry.metrics() }
      },
      notLive: async () => [],
      notReady: async () => [...member.notReady(), ...gateway.notReady()],
    },
  })
  const { port: httpPort } = telemetry
  const { port: gatewayPort } = gateway
  log.info({ port: httpPort, tiers: member.tiers }, 'worker started')
  log.info({ port: httpPort, gatewayPort }, 'gateway started')
  return {
    httpPort,
    gatewayPort,
    async stop() {
      await gateway.stop()
      await member.stop()
      await telemetry.stop()
      log.info('stopped')
    },
  }
}

function developmentNotice(brokers: readonly string[], { httpPort, gatewayPort }: Up): string[] {
  return [
    '',
    'This is for development: one broker, one replica, and URLs on this machine (127.0.0.0/8, ::1) are allowed.',
    `  Kafka    ${brokers.join(',')}   data in ${dataDir}`,
    `  gateway  http://127.0.0.1:${gatewayPort}   Segment's tracking API; /docs tells more`,
    `  metrics  http://127.0.0.1:${httpPort}/metrics`,
    `  try      curl http://127.0.0.1:${gatewayPort}/v1/track -u WRITE_KEY: -d '{"userId":"u1","event":"Hello"}'`,
    `  or       KAFKA_BROKERS=${brokers.join(',')} npx sluice send --source SOURCE '{"type":"track","userId":"u1","event":"Hello"}'`,
    'Ctrl-C stops it.',
    '',
  ]
}
