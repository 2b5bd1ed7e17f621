import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { LogQuery } from '../delivery-log/log-query.ts'
import { serveQueries } from '../delivery-log/query-server.ts'
import { isLoopbackHost } from '../http/rebound-name.ts'
import { buildInfo } from '../telemetry/build-info.ts'
import { createLogMetrics, type LogMetrics } from '../telemetry/log-metrics.ts'
import { openKafka } from './start/ask-kafka.ts'
import { showKafkaClient } from './start/kafka-gauges.ts'
import { type Listening, listening } from './start/listening.ts'
import { openLogIndex } from './operations/log-index.ts'
import { indexToken } from './operations/open-log-query.ts'
import type { Parts } from './start/parts.ts'
import { showReady } from './start/readiness.ts'
import { StartError } from './start/start-error.ts'
import { openOwnTelemetry } from './start/telemetry.ts'

export type LogServeOptions = {
  config: Config
  log: Logger
  parts: Parts
  onFatal: (error: Error) => void
}

/** Starts the role that indexes the delivery log and answers questions about it. */
export async function startLogServe(options: LogServeOptions): Promise<void> {
  const { config, log, parts } = options
  const telemetry = await openOwnTelemetry(options)
  const kafka = await openKafka(config, log, 'log serve')
  const metrics = createLogMetrics()
  const { version, commit } = buildInfo()
  metrics.common?.buildInfo.set({ version, commit, role: 'log' }, 1)
  const index = await openLogIndex({ ...options, kafka, metrics })
  const queryPort = await answerQueries({ config, parts, metrics, query: index.query })
  telemetry.tell({
    metrics() {
      index.collect()
      if (metrics.common !== undefined) {
        showReady(metrics.common, 'log', index.notReady())
        showKafkaClient(metrics.common, config)
      }
      return metrics.registry.metrics()
    },
    notReady: () => index.notReady(),
  })
  log.info({ port: telemetry.port, queryPort }, 'log started')
}

/** Returns the address at which the index of the delivery log is asked. */
export function indexAddress({ index: { host, port } }: Config): Listening {
  return { host, port, what: 'The index of the delivery log', settings: 'SLUICE_INDEX' }
}

/** Starts the server at which commands and other roles ask an index. Returns its port. */
export async function answerQueries({
  config,
  parts,
  query,
  metrics,
}: {
  config: Config
  parts: Parts
  query: LogQuery
  metrics: Pick<LogMetrics, 'connectionsClosed'>
}): Promise<number> {
  const { host, port } = config.index
  const token = indexToken(config)
  if (token === undefined && !isLoopbackHost(host)) {
    throw new StartError(
      `index.host (SLUICE_INDEX_HOST) is ${host}, where others could ask the index: set index.token (SLUICE_INDEX_TOKEN), or index.tokenFile.`,
    )
  }
  const onClosed = (reason: string): void => metrics.connectionsClosed.inc({ reason })
  const server = await listening(serveQueries({ query, host, port, token, onClosed }), indexAddress(config))
  return parts.add(server).port
}
