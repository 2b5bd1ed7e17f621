import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import type { CommonMetrics } from '../../telemetry/common-metrics.ts'

/**
 * Sets the metric that shows when the client certificate for Kafka expires. If the file of the certificate
 * can't be read, the metric has no series, and the code that connects to Kafka logs the reason.
 */
export function showCertificateExpiry(
  { certificateExpiry }: Pick<CommonMetrics, 'certificateExpiry'>,
  { kafka }: Config,
): void {
  certificateExpiry.reset()
  if (kafka.certFile === undefined) return
  try {
    const { validToDate } = new X509Certificate(readFileSync(kafka.certFile))
    certificateExpiry.set({ setting: 'kafka.certFile' }, validToDate.getTime() / 1_000)
  } catch {
    // The code that connects to Kafka logs what is wrong with the file and what to do.
  }
}
