import { boolean, bytes, cidrs, duration, integer, text } from './key.ts'
import { SECOND, MINUTE, MIB } from './durations-and-sizes.ts'

/** The settings of `sluice gateway`. */
export const gatewayKeys = {
  host: text({
    default: '0.0.0.0',
    description:
      'The address that the gateway listens on. `::` is every address of the machine, of IPv4 too.',
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
    description: 'How long messages wait for others, so that they are written to Kafka together.',
  }),
  ackTimeout: duration({
    default: 1_500,
    min: 100,
    max: MINUTE,
    description: 'How long a request waits for Kafka to acknowledge its messages; then it is answered 503.',
  }),
  bufferBytes: bytes({
    default: 64 * MIB,
    min: 16 * MIB,
    max: 16 * 1024 * MIB,
    description:
      'The most bytes of messages that Kafka has not acknowledged yet, and as many again of requests that are being received. Beyond it requests are answered 503.',
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
    description: 'The most connections at once. Further ones are closed.',
  }),
  addIp: boolean({
    default: true,
    description: 'Whether to set `context.ip` to the address of the client where a message has none.',
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
      'How long the gateway still accepts connections after SIGTERM, while it is no longer ready, so that load balancers and Kubernetes stop sending to it first. Requests in flight then have `shutdown.timeout`: set `terminationGracePeriodSeconds` above the sum of both. Set 0 if nothing stands in front of the gateway.',
  }),
} as const
