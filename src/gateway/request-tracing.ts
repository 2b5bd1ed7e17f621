import type { IncomingHttpHeaders } from 'node:http'
import type { Delivered } from './parcel.ts'

/** What the gateway needs of tracing. Where tracing is off there is none of it. */
export type GatewayTracing = {
  /**
   * A request came: it goes on with its client's trace, or begins one. `route`: as the API has it, without
   * what a client wrote.
   */
  begin(method: string, route: string, headers: IncomingHttpHeaders): RequestTrace
}

export type RequestTrace = {
  /** Records of the request are about to be sent to a topic. */
  sends(topic: string, sourceId: string | undefined): SendTrace
  /** It is answered. */
  end(status: number): void
}

export type SendTrace = {
  /** By which readers of the topic go on with the trace. */
  readonly headers: Readonly<Record<string, string>>
  /** What they add to a record. */
  readonly bytes: number
  /** Not called where no record was sent. */
  end(records: number, delivered: Delivered): void
}
