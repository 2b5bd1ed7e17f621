import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import type { Delivered } from '../gateway/outbox/parcel.ts'
import type { GatewayTracing, RequestTrace, SendTrace } from '../gateway/calls/request-tracing.ts'
import { contextIn, headersOf } from './carrier.ts'
import { names } from './names.ts'

/**
 * Creates the tracing of a gateway: a span for each request, and a span for the records that the request
 * writes to Kafka.
 */
export function createGatewayTracing(tracer: Tracer): GatewayTracing {
  return {
    begin(method, route, headers) {
      const options = { kind: SpanKind.SERVER, attributes: { [names.method]: method, [names.route]: route } }
      return new RequestSpan(tracer, tracer.startSpan(`${method} ${route}`, options, contextIn(headers)))
    },
  }
}

class RequestSpan implements RequestTrace {
  readonly #tracer: Tracer
  readonly #span: Span
  readonly #context: Context

  constructor(tracer: Tracer, span: Span) {
    this.#tracer = tracer
    this.#span = span
    this.#context = trace.setSpan(ROOT_CONTEXT, span)
  }

  sends(topic: string, sourceId: string | undefined): SendTrace {
    const attributes = {
      [names.system]: 'kafka',
      [names.operation]: 'send',
      [names.operationType]: 'send',
      [names.topic]: topic,
      ...(sourceId !== undefined && { [names.source]: sourceId }),
    }
    const options = { kind: SpanKind.PRODUCER, attributes }
    return new SendSpan(this.#tracer.startSpan(`send ${topic}`, options, this.#context))
  }

  /**
   * Ends the span. By OpenTelemetry's conventions for servers, only a fault of the server itself is an error.
   */
  end(status: number): void {
    this.#span.setAttribute(names.status, status)
    if (status >= 500)
      this.#span.setAttribute(names.errorType, String(status)).setStatus({ code: SpanStatusCode.ERROR })
    this.#span.end()
  }
}

/**
 * The bytes that a header takes in a record in addition to its name and its value. These bytes contain the
 * lengths of the name and the value, in at most two bytes each.
 */
const framingBytes = 4

class SendSpan implements SendTrace {
  readonly #span: Span
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: number

  constructor(span: Span) {
    this.#span = span
    this.headers = headersOf(trace.setSpan(ROOT_CONTEXT, span))
    this.bytes = Object.entries(this.headers).reduce(
      (sum, [name, value]) => sum + name.length + value.length + framingBytes,
      0,
    )
  }

  end(records: number, delivered: Delivered): void {
    this.#span.setAttribute(names.batchSize, records)
    if (delivered !== 'acknowledged')
      this.#span.setAttribute(names.errorType, delivered).setStatus({ code: SpanStatusCode.ERROR })
    this.#span.end()
  }
}
