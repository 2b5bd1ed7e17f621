import type { IncomingHttpHeaders } from 'node:http'
import type { Delivered } from '../outbox/parcel.ts'

/** The method of tracing that the gateway uses. If tracing is off, there is no such object. */
export type GatewayTracing = {
  /**
   * Begins the trace of a request, or continues the trace that the client began. `route` is the path as the
   * API defines it. It contains nothing that the client chose.
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
  /** The record headers with which readers of the topic continue the trace. */
  readonly headers: Readonly<Record<string, string>>
  /** The bytes that the headers add to a record. */
  readonly bytes: number
  /** Ends the span. If no record was sent, this method isn't called. */
  end(records: number, delivered: Delivered): void
}
