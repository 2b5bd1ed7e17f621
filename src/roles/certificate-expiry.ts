import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../config/schema.ts'
import type { CommonMetrics } from '../telemetry/common-metrics.ts'

/**
 * Shows when the client certificate ends that brokers know us by. One that can't be read has no series: the
 * connection says why.
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
    // Connections tell what is wrong with it, and what to do.
  }
}
