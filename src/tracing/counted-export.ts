import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace'

/** What became of spans that were recorded. `dropped`: more waited than may. */
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
 * OpenTelemetry's batches, one export at a time, and an account of every span: it waits in the queue, or it
 * is told what became of it. Never more than `queueSize` wait; what comes then is dropped, and nobody waits
 * for an export.
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
    // Only spans that are sampled come here: no sampler of ours records one that isn't.
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
