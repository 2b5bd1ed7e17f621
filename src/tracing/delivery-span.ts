import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import type { EndpointHook } from '../delivery/endpoint.ts'
import type { Outcome } from '../delivery/outcomes/outcome.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { Delivery } from '../pipeline/delivery.ts'
import type { DeliveryTrace } from '../pipeline/delivery-trace.ts'
import type { RetryHeaders } from '../retry/retry-state.ts'
import type { Shaped } from '../shape/shaper.ts'
import { headersOf, parentOf } from './carrier.ts'
import { names } from './names.ts'

export type DeliverySpanOptions = {
  readonly tracer: Tracer
  readonly groupId: string
  /** True if requests to endpoints have headers that name the trace. */
  readonly isForwarded: boolean
}

/**
 * Starts the trace of a delivery. The trace is either recorded or only passed on to the endpoint. Passing a
 * trace on has to be cheap, because this may happen for ninety-nine of a hundred deliveries.
 */
export function traceDelivery(
  options: DeliverySpanOptions,
  delivery: Delivery,
  parent: Context,
): DeliveryTrace {
  const { topic } = delivery.pending.record
  const span = options.tracer.startSpan(`process ${topic}`, { kind: SpanKind.CONSUMER }, parent)
  return span.isRecording() ? new DeliverySpan(options, delivery, span) : new PassedOn(options, span)
}

/** A trace that isn't recorded, but only passed on. */
class PassedOn implements DeliveryTrace {
  readonly traceId = undefined
  readonly #options: DeliverySpanOptions
  readonly #span: Span

  constructor(options: DeliverySpanOptions, span: Span) {
    this.#options = options
    this.#span = span
  }

  get headers(): RetryHeaders {
    return headersOf(trace.setSpan(ROOT_CONTEXT, this.#span))
  }

  posting(hook: EndpointHook, headers: readonly string[], shaped?: Shaped): readonly string[] {
    return this.#options.isForwarded ? naming(this.#span, hook, headers, shaped) : headers
  }

  end(): void {}
}

/**
 * The recorded trace of a delivery: a span for its processing in this worker, and a child span for each
 * request.
 */
export class DeliverySpan implements DeliveryTrace {
  readonly traceId: string
  readonly #options: DeliverySpanOptions
  readonly #delivery: Delivery
  readonly #span: Span
  readonly #context: Context
  /** The spans of requests that have no outcome yet, by hook. A hook has only one such request at a time. */
  readonly #requests = new Map<string, Span>()

  constructor(options: DeliverySpanOptions, delivery: Delivery, span: Span) {
    this.#options = options
    this.#delivery = delivery
    this.#span = span
    this.#context = trace.setSpan(ROOT_CONTEXT, span)
    this.traceId = span.spanContext().traceId
    span.setAttributes(attributesOf(delivery, options.groupId))
  }

  get headers(): RetryHeaders {
    return headersOf(this.#context)
  }

  posting(hook: EndpointHook, headers: readonly string[], shaped?: Shaped): readonly string[] {
    const span = this.#startRequest(hook, shaped?.method ?? 'POST')
    return this.#options.isForwarded ? naming(span, hook, headers, shaped) : headers
  }

  #startRequest(hook: EndpointHook, method: string): Span {
    const { attempts } = this.#delivery
    const { hostname, port, protocol } = new URL(hook.target.origin)
    const attributes = {
      [names.method]: method,
      [names.scheme]: protocol.slice(0, -1),
      [names.serverAddress]: hostname,
      [names.serverPort]: Number(port) || (protocol === 'https:' ? 443 : 80),
      [names.hook]: hook.id,
      [names.attempt]: attempts,
      ...(attempts > 1 && { [names.resendCount]: attempts - 1 }),
    }
    const options = { kind: SpanKind.CLIENT, attributes }
    const span = this.#options.tracer.startSpan(method, options, this.#context)
    this.#requests.set(hook.id, span)
    return span
  }

  answered({ hookId, outcome, verdict }: HookResult): void {
    const span = this.#requests.get(hookId)
    if (span === undefined) return
    this.#requests.delete(hookId)
    span.setAttribute(names.verdict, verdict.kind)
    if (outcome.kind === 'answer') span.setAttribute(names.status, outcome.status)
    const error = errorOf(outcome)
    if (error !== undefined)
      span.setAttribute(names.errorType, error).setStatus({ code: SpanStatusCode.ERROR })
    span.end()
  }

  /**
   * Adds an event to the span. Once the span has ended, adds a span without duration: one URL of the
   * destination may have taken the message before another one misses it for good.
   */
  tell(event: string, attributes: Record<string, string | number>): void {
    if (this.#span.isRecording()) this.#span.addEvent(event, attributes)
    else this.#options.tracer.startSpan(event, { attributes }, this.#context).end()
  }

  failed(reason: string): void {
    this.#span.setAttribute(names.errorType, reason).setStatus({ code: SpanStatusCode.ERROR })
  }

  end(): void {
    this.#span.end()
  }
}

function attributesOf(delivery: Delivery, groupId: string): Record<string, string | number> {
  const { topic, partition, offset } = delivery.pending.record
  return {
    [names.system]: 'kafka',
    [names.operation]: 'process',
    [names.operationType]: 'process',
    [names.topic]: topic,
    [names.partition]: String(partition),
    [names.offset]: offset,
    [names.group]: groupId,
    [names.messageId]: delivery.messageId,
    [names.type]: delivery.kind,
    [names.source]: delivery.sourceId,
    [names.destination]: delivery.destinationId,
  }
}

/**
 * Returns the name of the error if an outcome is an error. By OpenTelemetry's conventions for clients, a
 * status of 400 or more is an error, and the status is the error's name.
 */
function errorOf(outcome: Outcome): string | undefined {
  if (outcome.kind !== 'answer') return outcome.kind
  return outcome.status >= 400 ? String(outcome.status) : undefined
}

function naming(
  span: Span,
  { target }: EndpointHook,
  headers: readonly string[],
  shaped: Shaped | undefined,
): readonly string[] {
  const isNamed = namesTrace(target.headers) || (shaped !== undefined && namesTrace(shaped.headers))
  const parent = isNamed ? undefined : parentOf(span)
  return parent === undefined ? headers : [...headers, 'traceparent', parent]
}

/**
 * Returns true if headers of the catalog, those of a hook or of a mapping, contain a `traceparent`. This
 * header is then sent unchanged.
 */
function namesTrace(headers: readonly string[]): boolean {
  return headers.some((text, at) => at % 2 === 0 && text.toLowerCase() === 'traceparent')
}
