import type { IncomingHttpHeaders } from 'node:http'
import type { Delivered } from './parcel.ts'

/** The method of tracing that the gateway uses. If tracing is off, there is no such object. */
export type GatewayTracing = {
  /**
   * Begins the trace of a request, or continues the trace that the client began. `route` is the path of the
   * API, without anything that a client wrote.
   */
  begin(method: string, route: string, headers: IncomingHttpHeaders): RequestTrace
}

export type RequestTrace = {
  /** Begins the span for sending records of the request to a topic. */
  sends(topic: string, sourceId: string | undefined): SendTrace
  /** Ends the trace when the request is answered. */
  end(status: number): void
}

export type SendTrace = {
  /** Record headers with which readers of the topic continue the trace. */
  readonly headers: Readonly<Record<string, string>>
  /** The bytes that the headers add to a record. */
  readonly bytes: number
  /** Ends the span. This method isn't called if no record was sent. */
  end(records: number, delivered: Delivered): void
}
