import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace'

/** The fate of a recorded span. `dropped`: the span was not exported, because the queue was full. */
export type SpanFate = 'exported' | 'failed' | 'dropped'

export type CountedExportOptions = {
  readonly exporter: SpanExporter
  readonly queueSize: number
  readonly batchSize: number
  readonly scheduleDelayMs: number
  readonly exportTimeoutMs: number
  readonly onSpans: (fate: SpanFate, count: number) => void
  readonly onFailed: (reason: string) => void
}

/**
 * Creates a processor that exports spans in OpenTelemetry's batches, one export at a time. Each span waits in
 * the queue until its fate is reported. At most `queueSize` spans wait. While the queue is full, further
 * spans are dropped, so no other code waits for an export.
 */
export function countedExport(options: CountedExportOptions): SpanProcessor {
  const { exporter, queueSize, onSpans, onFailed } = options
  const account = { waiting: 0 }
  const counted: SpanExporter = {
    export(spans, done) {
      account.waiting -= spans.length
      exporter.export(spans, (result) => {
        const { isDone, reason } = outcomeOf(result)
        onSpans(isDone ? 'exported' : 'failed', spans.length)
        if (!isDone) onFailed(reason)
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
  }
  const batches = new BatchSpanProcessor({
    exporter: counted,
    maxQueueSize: queueSize,
    maxExportBatchSize: Math.min(options.batchSize, queueSize),
    scheduledDelayMillis: options.scheduleDelayMs,
    exportTimeoutMillis: options.exportTimeoutMs,
  })
  return {
    onStart() {},
    // Only sampled spans come here, because none of Sluice's samplers records a span that isn't sampled.
    onEnd(span: ReadableSpan) {
      if (account.waiting >= queueSize) {
        onSpans('dropped', 1)
        return
      }
      account.waiting++
      batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  }
}

function outcomeOf({ code, error }: ExportResult): { isDone: boolean; reason: string } {
  return { isDone: code === ExportResultCode.SUCCESS, reason: error?.message ?? 'no reason was given' }
}
