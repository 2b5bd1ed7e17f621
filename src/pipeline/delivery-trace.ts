import type { EndpointHook } from '../delivery/endpoint.ts'
import type { RetryHeaders } from '../retry/retry-state.ts'
import type { Shaped } from '../shape/shaper.ts'

/** The trace of one delivery, until the delivery ends in this process. */
export type DeliveryTrace = {
  /** The id of the trace, for log lines. `undefined` if the trace isn't recorded. */
  readonly traceId: string | undefined
  /** The headers with which the reader of a retry topic or of the dead letters continues the trace. */
  readonly headers: RetryHeaders
  /**
   * Starts the trace of a request to a hook, immediately before the request is made. Returns `headers`,
   * possibly with headers of the trace added. The request has these headers in addition to those of the hook.
   * `shaped`: what a mapping has made of the request.
   */
  posting(hook: EndpointHook, headers: readonly string[], shaped?: Shaped): readonly string[]
  /**
   * Ends the trace. At this time, the delivery has been delivered, written to another topic, or left to the
   * next owner of its record.
   */
  end(): void
}
