import { type RecordProducer, startProducer } from '../../kafka/produce/producer.ts'
import type { PipelineObserver } from '../../pipeline/pipeline-ports.ts'
import { createObserver } from '../../telemetry/worker-observer.ts'
import { askKafka } from '../start/ask-kafka.ts'
import { clockReportOf } from '../start/clock-report.ts'
import { type DeliveryLog, openDeliveryLog } from './open-delivery-log.ts'
import type { MemberBase } from './member-base.ts'
import { createOutbound, type Outbound } from '../start/outbound.ts'
import type { LaidOut } from '../start/topic-layout.ts'

/**
 * The parts by which a member writes to Kafka and sends to hooks, and the observers of the member's
 * deliveries.
 */
export type MemberOutlets = {
  readonly producer: RecordProducer
  readonly outbound: Outbound
  readonly observer: PipelineObserver
  /** The writer of the delivery log. If `undefined`, no delivery log is written. */
  readonly deliveryLog: DeliveryLog | undefined
}

/** Opens the parts by which a member writes to Kafka and sends to hooks. */
export async function openOutlets(base: MemberBase, laidOut: LaidOut): Promise<MemberOutlets> {
  const { config, metrics, log, kafka, parts, shutdownTime, stalls, failingUnits, limits } = base
  const { take: onClockSkew } = clockReportOf({ metrics, log })
  const producer = await askKafka(
    config,
    startProducer({
      kafka,
      ...laidOut,
      onFailed: () => metrics.produceFailures.inc(),
      onFailing: failingUnits.changed,
      onStalled: (isStalled, reason) => stalls.setUnwritable(isStalled, reason),
      onClockSkew,
    }),
  )
  parts.defer(() => shutdownTime.within(producer.stop()))
  const outbound = createOutbound({
    config,
    metrics,
    log,
    limits: limits.open,
    onUnreachable: (reason) => stalls.setUnreachable(reason),
  })
  parts.defer(() => outbound.close())
  const observer = createObserver({
    metrics,
    log,
    logAttempts: config.log.attempts,
    // In an installation, such a line for each failure would double what is logged of a dead endpoint.
    tellsNextTry: config.topics.development,
    timeoutMs: config.delivery.timeoutMs,
    retryLimitMs: config.retry.limitMs,
  })
  parts.defer(() => observer.flush())
  const deliveryLog = openDeliveryLog({ config, kafka, metrics, log, onClockSkew })
  if (deliveryLog !== undefined) parts.defer(() => shutdownTime.within(deliveryLog.stop()))
  return { producer, outbound, observer, deliveryLog }
}
