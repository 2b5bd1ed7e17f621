import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { type ReadableSpan, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import { afterEach, describe, expect, test } from 'vitest'
import { countedExport, type SpanFate } from '../../../src/tracing/counted-export.ts'
import { until } from '../../support/until.ts'

type Export = { spans: readonly ReadableSpan[]; done: (result: ExportResult) => void }

const open: TracerProvider[] = []

afterEach(() => {
  for (const provider of open.splice(0)) void provider.shutdown().catch(() => undefined)
})

/** Returns a tracer whose exports end when a test says so. */
function scene({ queueSize = 100, batchSize = 10 } = {}) {
  const exports: Export[] = []
  const fates: Record<SpanFate, number> = { exported: 0, failed: 0, dropped: 0 }
  const reasons: string[] = []
  const exporter: SpanExporter = {
    export: (spans, done) => void exports.push({ spans, done }),
    shutdown: async () => undefined,
  }
  const provider = new TracerProvider({
    spanProcessors: [
      countedExport({
        exporter,
        queueSize,
        batchSize,
        scheduleDelayMs: 1,
        exportTimeoutMs: 60_000,
        onSpans: (fate, count) => (fates[fate] += count),
        onFailed: (reason) => reasons.push(reason),
      }),
    ],
  })
  open.push(provider)
  const tracer = provider.getTracer('test')
  return {
    exports,
    fates,
    reasons,
    record: (count: number): void => {
      for (let nth = 0; nth < count; nth++) tracer.startSpan('one').end()
    },
  }
}

describe('of a collector that does not answer', () => {
  test('no more than the queue and one batch are held, however many spans come', async () => {
    const { exports, fates, record } = scene()
    record(10)
    await until('a batch is under way', () => exports.length === 1)
    record(100_000)
    expect(exports).toHaveLength(1)
    expect(fates).toEqual({ exported: 0, failed: 0, dropped: 99_900 })
  })

  test('nothing is held of a batch that failed, and there is room again', async () => {
    const { exports, fates, reasons, record } = scene()
    record(120)
    await until('a batch is under way', () => exports.length === 1)
    expect(fates.dropped).toBe(10)
    exports[0]?.done({ code: ExportResultCode.FAILED, error: new Error('refused') })
    await until('the next is', () => exports.length === 2)
    expect(fates).toEqual({ exported: 0, failed: 10, dropped: 10 })
    expect(reasons).toEqual(['refused'])
    record(20)
    expect(fates.dropped).toBe(10)
  })
})

test('each span is accounted for', async () => {
  const { exports, fates, record } = scene()
  record(1_000)
  for (let nth = 0; nth < 11; nth++) {
    await until('a batch is under way', () => exports.length === nth + 1)
    exports[nth]?.done({ code: nth % 2 === 0 ? ExportResultCode.SUCCESS : ExportResultCode.FAILED })
  }
  expect(fates).toEqual({ exported: 60, failed: 50, dropped: 890 })
})
