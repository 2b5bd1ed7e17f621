import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace'
import { expect, onTestFinished, test } from 'vitest'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import { createWorkerTracing } from '../../../src/tracing/worker-tracing.ts'

test('a URL that gets nothing after another one took the message is in the trace', () => {
  const ended: ReadableSpan[] = []
  const processor = {
    onStart: () => undefined,
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  }
  const provider = new TracerProvider({ spanProcessors: [processor] })
  onTestFinished(() => provider.shutdown())
  const tracer = provider.getTracer('test')
  const tracing = createWorkerTracing({ tracer, groupId: 'sluice', isForwarded: false })
  const record = { topic: 'events', partition: 0, offset: 7 }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tracing reads no other fields
  const delivery = {
    pending: { record },
    messageId: 'm',
    kind: 'track',
    sourceId: 's',
    destinationId: 'd',
  } as Delivery
  delivery.trace = tracing.begin(delivery)
  tracing.observer.delivered?.(delivery)
  delivery.trace.end()
  tracing.observer.omitted?.(delivery, 'second', 'waited')
  const [first, second] = ended
  expect(first?.events.map(({ name }) => name)).toEqual(['delivered'])
  expect(second).toMatchObject({
    name: 'omitted',
    attributes: { 'sluice.hook.id': 'second', 'sluice.reason': 'waited' },
    parentSpanContext: { spanId: first?.spanContext().spanId },
  })
})
