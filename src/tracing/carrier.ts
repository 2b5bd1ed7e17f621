import { type Context, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'

const propagator = new W3CTraceContextPropagator()

/** The headers of a Kafka record or an HTTP request. */
export type Carrier = Readonly<Record<string, unknown>>

/**
 * The most bytes of a header with a trace context. A longer header is ignored. W3C demands room for only 512
 * characters of a `tracestate`.
 */
const maxBytes = 4_096

/**
 * Returns the context of the trace that the headers `traceparent` and `tracestate` name. Returns
 * `ROOT_CONTEXT`, a context without a trace, if they name no trace. Never throws, whatever the headers
 * contain.
 */
export function contextIn(headers: Carrier | undefined): Context {
  if (headers?.['traceparent'] === undefined) return ROOT_CONTEXT
  return propagator.extract(ROOT_CONTEXT, headers, reader)
}

const reader = {
  keys: (carrier: Carrier): string[] => Object.keys(carrier),
  get(carrier: Carrier, name: string): string | undefined {
    const given = carrier[name]
    const first: unknown = Array.isArray(given) ? given[0] : given
    if (typeof first === 'string') return first.length <= maxBytes ? first : undefined
    return Buffer.isBuffer(first) && first.length <= maxBytes ? first.toString('latin1') : undefined
  },
}

/** Returns the headers with which a receiver continues a trace. */
export function headersOf(context: Context): Record<string, string> {
  const headers: Record<string, string> = {}
  propagator.inject(context, headers, writer)
  return headers
}

const writer = {
  set(carrier: Record<string, string>, name: string, value: string): void {
    if (value !== '') carrier[name] = value
  },
}

/** Returns the `traceparent` for the children of a span. */
export function parentOf(span: Span): string | undefined {
  return headersOf(trace.setSpan(ROOT_CONTEXT, span))['traceparent']
}
