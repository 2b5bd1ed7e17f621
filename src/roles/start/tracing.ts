import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { readTracing } from '../../config/tracing-settings.ts'
import { within } from '../../async/within.ts'
import { buildInfo } from '../../telemetry/build-info.ts'
import type { CommonMetrics } from '../../telemetry/common-metrics.ts'
import { PacedLines } from '../../telemetry/paced-lines.ts'
import type { Tracing } from '../../tracing/start.ts'
import type { Parts } from './parts.ts'

export type OpenTracingOptions = {
  config: Config
  log: Logger
  parts: Parts
  metrics: CommonMetrics
  role: 'worker' | 'gateway' | 'up'
}

/** How long the export of the last spans may take when the process ends, in milliseconds. */
export const flushMs = 2_000
const tellEveryMs = 60_000
const tooMany =
  'more spans wait than OTEL_BSP_MAX_QUEUE_SIZE: record fewer (OTEL_TRACES_SAMPLER), or let more wait'

/**
 * Starts tracing if OpenTelemetry's environment variables ask for it. Otherwise resolves with `undefined`,
 * and loads no library. Invalid variables are logged. They don't keep the role from starting, because
 * deliveries don't depend on tracing.
 */
export async function openTracing(options: OpenTracingOptions): Promise<Tracing | undefined> {
  const { config, log, parts, metrics, role } = options
  const read = readTracing()
  if (read.kind === 'off') return undefined
  if (read.kind === 'faulty') {
    log.error({ faults: read.faults }, 'tracing is off: some variables of OpenTelemetry can not be used')
    return undefined
  }
  const { settings } = read
  const failures = new PacedLines<{ endpoint: string; reason: string }>({
    write: (line) => log.warn(line, 'spans could not be exported and are lost; deliveries are not affected'),
    everyMs: tellEveryMs,
  })
  for (const fate of ['exported', 'failed', 'dropped'] as const) metrics.spans.inc({ fate }, 0)
  const { startTracing } = await import('../../tracing/start.ts')
  const tracing = startTracing({
    settings,
    serviceName: role === 'up' ? 'sluice' : `sluice-${role}`,
    serviceVersion: buildInfo().version,
    groupId: config.kafka.groupId,
    isForwarded: config.delivery.traceparent,
    onSpans(fate, count) {
      metrics.spans.inc({ fate }, count)
      if (fate === 'dropped') failures.add(fate, { endpoint: settings.endpoint, reason: tooMany })
    },
    onFailed: (reason) => failures.add('failed', { endpoint: settings.endpoint, reason }),
  })
  parts.defer(async () => {
    const isDone = await within(flushMs, tracing.stop())
    failures.flush()
    if (!isDone)
      log.warn(
        { endpoint: settings.endpoint, waitedMs: flushMs },
        'the last spans are lost: their export takes too long',
      )
  })
  log.info({ endpoint: settings.endpoint, sampler: settings.sampler }, 'tracing is on')
  return tracing
}
