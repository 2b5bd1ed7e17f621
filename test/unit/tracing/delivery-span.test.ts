import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace'
import { expect, onTestFinished, test } from 'vitest'
import type { EndpointHook } from '../../../src/delivery/endpoint.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import type { Shaped } from '../../../src/shape/shaper.ts'
import { createWorkerTracing } from '../../../src/tracing/worker-tracing.ts'

/** Starts a delivery with a trace. `ended`: the spans that have ended, in their order. */
function traced({ isForwarded = false } = {}) {
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
  const tracing = createWorkerTracing({ tracer, groupId: 'sluice', isForwarded })
  const record = { topic: 'events', partition: 0, offset: 7 }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tracing reads no other fields
  const delivery = {
    pending: { record },
    messageId: 'm',
    kind: 'track',
    sourceId: 's',
    destinationId: 'd',
  } as Delivery
  const trace = tracing.begin(delivery)
  delivery.trace = trace
  return { tracing, delivery, trace, ended }
}

test('a URL that gets nothing after another one took the message is in the trace', () => {
  const { tracing, delivery, trace, ended } = traced()
  tracing.observer.delivered?.(delivery)
  trace.end()
  tracing.observer.omitted?.(delivery, 'second', 'waited')
  const [first, second] = ended
  expect(first?.events.map(({ name }) => name)).toEqual(['delivered'])
  expect(second).toMatchObject({
    name: 'omitted',
    attributes: { 'sluice.hook.id': 'second', 'sluice.reason': 'waited' },
    parentSpanContext: { spanId: first?.spanContext().spanId },
  })
})

test('a request that a mapping has made is in the trace with its method, and has at most one traceparent', () => {
  const { tracing, delivery, trace, ended } = traced({ isForwarded: true })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tracing reads no other fields
  const hook = {
    id: 'main',
    target: { origin: 'https://crm.example', headers: [] as string[] },
  } as EndpointHook
  const shaped: Shaped = {
    method: 'PUT',
    path: '/users/u1',
    headers: [],
    contentType: 'application/json',
    body: Buffer.from('{}'),
  }
  const answered = { hookId: 'main', verdict: { kind: 'delivered' }, mayHaveArrived: false } as const
  expect(trace.posting(hook, ['A', '1'], shaped)).toEqual(['A', '1', 'traceparent', expect.any(String)])
  tracing.observer.attempted?.(delivery, { ...answered, outcome: { kind: 'answer', status: 200 } }, 1)
  expect(ended).toMatchObject([{ name: 'PUT', attributes: { 'http.request.method': 'PUT' } }])
  const own = { ...shaped, headers: ['TraceParent', 'of-the-message'] }
  expect(trace.posting(hook, ['A', '1'], own)).toEqual(['A', '1'])
})
