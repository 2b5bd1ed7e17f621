import { boolean, bytes, cidrs, duration, integer, text } from './key.ts'
import { SECOND, MINUTE, MIB } from './durations-and-sizes.ts'

/** The settings of `sluice gateway`. */
export const gatewayKeys = {
  host: text({
    default: '0.0.0.0',
    description:
      'The address that the gateway listens on. `::` is every address of the machine, including those of IPv4.',
  }),
  port: integer({
    default: 8080,
    min: 0,
    max: 65_535,
    description: 'The port that the gateway listens on; 0 picks a free one.',
  }),
  linger: duration({
    default: 5,
    min: 1,
    max: SECOND,
    description: 'How long a message waits for other messages, so that they are written to Kafka together.',
  }),
  ackTimeout: duration({
    default: 1_500,
    min: 100,
    max: MINUTE,
    description:
      'How long a request waits for Kafka to acknowledge its messages. After that, it is answered 503.',
  }),
  bufferBytes: bytes({
    default: 64 * MIB,
    min: 16 * MIB,
    max: 16 * 1024 * MIB,
    description:
      'The most bytes of messages that Kafka has not acknowledged yet. Requests that are being received may hold as many bytes again. Beyond these limits, requests are answered 503.',
  }),
  requestTimeout: duration({
    default: 10 * SECOND,
    min: SECOND,
    max: 5 * MINUTE,
    description: 'How long a client may take to send a whole request.',
  }),
  maxConnections: integer({
    default: 10_000,
    min: 1,
    max: 1_000_000,
    description:
      'The most connections at once. Further connections are closed. If the system allows too few open files (`ulimit -n`), there may be fewer.',
  }),
  addIp: boolean({
    default: true,
    description: 'Whether to set `context.ip` to the address of the client if a message has no `context.ip`.',
  }),
  trustedProxies: cidrs({
    default: [],
    description:
      'Address ranges of the proxies and load balancers in front of the gateway. Their `X-Forwarded-For` and `X-Forwarded-Proto` are trusted: Sluice sets `context.ip` to the last address in `X-Forwarded-For` that is not in one of these ranges. Empty: both headers are ignored, and `context.ip` is the address of the connection.',
  }),
  shutdownDelay: duration({
    default: 5 * SECOND,
    min: 0,
    max: MINUTE,
    description:
      'How long the gateway still accepts connections after SIGTERM. It is no longer ready in this time, so that load balancers and Kubernetes stop sending to it. Requests in flight then have `shutdown.timeout`: set `terminationGracePeriodSeconds` above the sum of both. Set 0 if nothing stands in front of the gateway.',
  }),
} as const
