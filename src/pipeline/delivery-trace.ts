import type { EndpointHook } from '../delivery/endpoint.ts'
import type { CarriedHeaders } from '../retry/carried.ts'

/** The trace of one delivery, until it comes to its end here. */
export type DeliveryTrace = {
  /** Of one that is recorded: log lines name it. */
  readonly traceId: string | undefined
  /** By which the reader of a retry topic or the dead letters goes on with it. */
  readonly headers: CarriedHeaders
  /**
   * A request to a hook is about to be made. Gives the headers that it is to have beside the hook's own:
   * `headers`, and maybe more.
   */
  posting(hook: EndpointHook, headers: readonly string[]): readonly string[]
  /** It has come to its end here: delivered, on another topic, or left to the next owner of its record. */
  end(): void
}
