import { boolean, bytes, cidrs, duration, integer, text, SECOND, MINUTE, MIB } from './key.ts'

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
    description: 'The port that the gateway listens on. 0 picks a free port.',
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
      'How long a request waits for Kafka to acknowledge its messages. After this time, the gateway answers 503.',
  }),
  bufferBytes: bytes({
    default: 64 * MIB,
    min: 16 * MIB,
    max: 16 * 1024 * MIB,
    description:
      'The maximum number of bytes of messages that Kafka has not acknowledged yet. Requests that are being received have another limit of the same size. If one of the two limits is reached, the gateway answers 503.',
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
      'The maximum number of open connections. The gateway closes further connections. If the system allows too few open files (`ulimit -n`), the maximum is lower.',
  }),
  addIp: boolean({
    default: true,
    description:
      'Whether the gateway sets `context.ip` to the address of the client if a message has no `context.ip`.',
  }),
  correctTimestamps: boolean({
    default: true,
    description:
      'Whether the gateway corrects the `timestamp` of a message by the error of the clock of the client, if `sentAt` shows an error of at least a second. It never does for requests to `/v1/import`.',
  }),
  trustedProxies: cidrs({
    default: [],
    description:
      'Address ranges of the proxies and load balancers in front of the gateway. The gateway trusts their headers `X-Forwarded-For` and `X-Forwarded-Proto`. It sets `context.ip` to the last address in `X-Forwarded-For` that is not in one of these ranges. If this setting is empty, the gateway ignores both headers, and `context.ip` is the address of the connection.',
  }),
  shutdownDelay: duration({
    default: 5 * SECOND,
    min: 0,
    max: MINUTE,
    description:
      'How long the gateway still accepts connections after SIGTERM. During this time it is not ready, so that load balancers and Kubernetes stop sending requests to it. After this time, requests in flight have `shutdown.timeout` to end. In Kubernetes, set `terminationGracePeriodSeconds` to more than the sum of both. Set 0 if there is no load balancer in front of the gateway.',
  }),
} as const
