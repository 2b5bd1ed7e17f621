import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createLogObserver, type LogObserver } from '../../delivery-log/log-observer.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { startLossyProducer } from '../../kafka/produce/lossy-producer.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import { topicNames } from '../start/settings.ts'
import { StartError } from '../start/start-error.ts'
import { createValuesOf, type ValuesOf } from '../../delivery-log/indexed-values.ts'
import { userHashOf, valueHashOf } from '../start/user-hash-key.ts'

export type DeliveryLogOptions = {
  config: Config
  kafka: ReturnType<typeof createKafka>
  metrics: WorkerMetrics
  log: Logger
  onClockSkew: (nodeId: number, aheadMs: number) => void
}

/** The writer of the delivery log. It observes deliveries, so call `stop` after the deliveries have ended. */
export type DeliveryLog = { readonly observer: LogObserver; stop(): Promise<void> }

/**
 * The time for which a record of the delivery log waits for further records, in milliseconds. Then all
 * waiting records are written together.
 */
const flushEveryMs = 250
/** How long writing the remaining records may take when the process stops, in milliseconds. */
const stopWithinMs = 1_000

/**
 * Opens the delivery log of this process. Returns `undefined` if the delivery log is switched off. The log
 * connects to Kafka when it has something to write.
 */
export function openDeliveryLog({
  config,
  kafka,
  metrics,
  log,
  onClockSkew,
}: DeliveryLogOptions): DeliveryLog | undefined {
  const { enabled, successes, bufferBytes } = config.attempts
  if (!enabled) return undefined
  const written = metrics.logRecords.series({})
  const topic = topicNames(config).attempts
  for (const reason of ['full', 'refused', 'unknown']) metrics.logRecordsDropped.inc({ reason }, 0)
  const producer = startLossyProducer({
    kafka,
    topic,
    maxBytes: bufferBytes,
    onClockSkew,
    onWritten: (records) => written.add(records),
    onDropped: (records, reason) => metrics.logRecordsDropped.inc({ reason }, records),
    onTrouble(reason) {
      if (reason === undefined) log.info({ topic }, 'the delivery log is written again')
      else
        log.warn(
          { topic, reason },
          'the delivery log is not written, or not all of it; deliveries go on without it',
        )
    },
  })
  const observer = createLogObserver({
    outlet: producer,
    successesPerSecond: successes,
    hashUser: userHashOf(config),
    valuesOf: valuesOf(config),
    onDropped: (count) => metrics.logRecordsDropped.inc({ reason: 'full' }, count),
    now: Date.now,
  })
  const timer = setInterval(() => observer.flush(), flushEveryMs)
  return {
    observer,
    async stop() {
      clearInterval(timer)
      observer.finish()
      await producer.stop(stopWithinMs)
    },
  }
}

/**
 * Returns the function that finds the values of `attempts.index`. `undefined`: none is indexed. Throws if
 * there is no key. Other roles may have the setting without the key, because only this one needs both.
 */
function valuesOf(config: Config): ValuesOf | undefined {
  const { index } = config.attempts
  if (index.length === 0) return undefined
  const hash = valueHashOf(config)
  if (hash !== undefined) return createValuesOf(index, hash)
  throw new StartError(
    'attempts.index (SLUICE_ATTEMPTS_INDEX): values are in the delivery log by a keyed hash: set attempts.userKey (SLUICE_ATTEMPTS_USER_KEY), or attempts.userKeyFile, too.',
  )
}
