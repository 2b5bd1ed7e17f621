import type { PublicKey } from '../../catalog/features/signing-keys.ts'
import type { GatewayObserver } from '../calls/gateway-events.ts'
import type { Replies } from './replies.ts'
import type { RequestOrigin } from './request-origin.ts'
import type { GatewayTracing } from '../calls/request-tracing.ts'
import type { ServerCalls } from '../calls/deletion-and-audience-calls.ts'
import type { Sources } from '../calls/sources.ts'
import type { Tracking } from '../calls/tracking.ts'

export type GatewayServerOptions = {
  readonly sources: Sources
  readonly tracking: Tracking
  readonly serverCalls: ServerCalls
  /** Returns the public keys of a destination. Without this option, the gateway serves none. */
  readonly signingKeysOf?: (destinationId: string) => readonly PublicKey[]
  readonly observer: GatewayObserver
  /** The tracing of requests. If this option is absent, nothing is traced. */
  readonly tracing?: GatewayTracing | undefined
  /** The limit on the bytes that are held for the bodies of all requests while these bodies arrive. */
  readonly receiveBytes: number
  /** The time that a client may take to send a whole request, in milliseconds. */
  readonly requestTimeoutMs: number
  /**
   * A client may read nothing of its answers for at least this time, in milliseconds, before its connection
   * is closed. The time must be longer than any request waits for its answer. Default: 70 s.
   */
  readonly takenWithinMs?: number
  /** The limit on open connections of clients. Further connections are closed at once. */
  readonly maxConnections: number
  /** True if the address of the client is added to each message. */
  readonly addIp: boolean
  /** True if times are corrected by the error of the client's clock, except those of imports. */
  readonly correctTimestamps: boolean
  /** Ranges of addresses whose `X-Forwarded-…` headers are trusted. */
  readonly trustedProxies: readonly string[]
}

export type GatewayParts = Pick<
  GatewayServerOptions,
  'sources' | 'tracking' | 'serverCalls' | 'signingKeysOf' | 'observer' | 'tracing'
> & { readonly replies: Replies; readonly origin: RequestOrigin }
