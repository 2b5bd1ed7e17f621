import type { Config } from '../../config/schema.ts'
import { throttledSeconds } from '../../kafka/cluster/client.ts'
import type { CommonMetrics } from '../../telemetry/common-metrics.ts'
import { showCertificateExpiry } from './certificate-expiry.ts'

/**
 * Brings the metrics about this process as a client of Kafka up to date. Every role that uses Kafka has them.
 */
export function showKafkaClient(
  metrics: Pick<CommonMetrics, 'certificateExpiry' | 'throttled'>,
  config: Config,
): void {
  showCertificateExpiry(metrics, config)
  metrics.throttled.reset()
  for (const { broker, request, seconds } of throttledSeconds())
    metrics.throttled.inc({ broker, request }, seconds)
}
