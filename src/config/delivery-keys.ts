import { isIP, isIPv4, isIPv6 } from 'node:net'
import { boolean, bytes, cidrs, duration, integer, optionalText, texts } from './key.ts'
import { SECOND, MINUTE, HOUR, MIB } from './durations-and-sizes.ts'

/** The settings of requests to URLs, and of the breaker that slows them. */
export const deliveryKeys = {
  delivery: {
    timeout: duration({
      default: 5 * SECOND,
      min: 100,
      max: MINUTE,
      description:
        'The deadline of a request, from the start of the connection to the complete response head.',
    }),
    maxInFlight: integer({
      default: 512,
      min: 1,
      max: 65_536,
      description:
        'The most requests in flight in each process. The catalog sets a further limit for each destination, which holds for each process too.',
    }),
    maxInFlightSick: integer({
      default: 8_192,
      min: 16,
      max: 65_536,
      description:
        'The most requests in flight in each process to URLs that fail (their breaker is open) or asked for a pause, in addition to `delivery.maxInFlight`. One URL gets at most two thirds of them. As many requests again may wait. With the default `delivery.timeout`, a URL that never answers has 5 requests in flight for each message a second. If the system allows too few open files (`ulimit -n`), there may be fewer.',
    }),
    bufferRecords: integer({
      default: 2_000,
      min: 1,
      max: 1_000_000,
      description:
        'The most records in each process that are read from Kafka and not settled yet. At this number, reading pauses.',
    }),
    bufferBytes: bytes({
      default: 64 * MIB,
      min: MIB,
      max: 16 * 1024 * MIB,
      description: 'The most bytes of unsettled records in each process. At this number, reading pauses.',
    }),
    lanePatience: duration({
      default: 500,
      min: 0,
      max: MINUTE,
      description:
        'How long the lane of a destination may hold more than its share of the buffer. Then its new messages move to the retry ladder.',
    }),
    laneWait: duration({
      default: 5 * SECOND,
      min: 10,
      max: 10 * MINUTE,
      description:
        "How long a delivery may wait in its destination's lane before it moves to the retry ladder.",
    }),
    poolIdle: duration({
      default: 30 * SECOND,
      min: 100,
      max: 10 * MINUTE,
      description:
        'How long an idle connection to a destination is kept, unless its server asks for less with `Keep-Alive`.',
    }),
    maxIdleConnections: integer({
      default: 10_000,
      min: 16,
      max: 1_000_000,
      description:
        'The most idle connections that each process keeps. Beyond this number, the one that has been idle for the longest time is closed. Each takes an open file and about 10 KB of memory, or more with HTTPS. If the system allows too few open files (`ulimit -n`), fewer are kept.',
    }),
    allowAddresses: cidrs({
      default: [],
      description:
        'Address ranges to which deliveries are allowed although they are private, or kept by a cloud for its own machines (SECURITY.md). Sluice refuses every other such address, both in the catalog and at each connection.',
    }),
    dnsServers: texts({
      default: [],
      item: { accepts: isDnsServer, expected: 'addresses such as 10.0.0.2, 10.0.0.2:5353 or [fd00::2]:53' },
      description:
        'DNS servers for the names of URLs, instead of those in /etc/resolv.conf. Search domains do not apply.',
    }),
    proxy: optionalText({
      isSecret: true,
      shape: { accepts: isHttpProxy, expected: 'http://host:port or http://user:password@host:port' },
      description:
        'The HTTP proxy for all deliveries, by CONNECT. The proxy resolves the names of URLs, so it has to refuse private addresses.',
    }),
    traceparent: boolean({
      default: false,
      description:
        'Whether requests to URLs have the header `traceparent` while tracing is on (docs/tracing.md). The ids in it mean nothing to anyone who lacks the trace. If the catalog sets a `traceparent` for a URL, this value takes precedence.',
    }),
  },
  breaker: {
    failurePercent: integer({
      default: 50,
      min: 1,
      max: 100,
      description:
        'The percentage of failed requests at which the breaker of a URL opens. An open breaker slows requests to that URL.',
    }),
    minResults: integer({
      default: 10,
      min: 1,
      max: 10_000,
      description:
        'How many results in the window it takes to open a breaker. An open breaker closes when, of as many results in a row, fewer than `breaker.failurePercent` failed.',
    }),
    window: duration({
      default: 10 * SECOND,
      min: 100,
      max: 10 * MINUTE,
      description: 'How far back the breaker counts results.',
    }),
    openFor: duration({
      default: 5 * SECOND,
      min: 100,
      max: HOUR,
      description:
        'How long after the last request Sluice sends a probe to a URL whose breaker is open. The time doubles with each request that fails.',
    }),
    maxOpenFor: duration({
      default: MINUTE,
      min: 100,
      max: HOUR,
      description:
        'The longest wait before a probe. This is also the longest pause for all messages of a URL that the URL can ask for by `Retry-After`.',
    }),
  },
} as const

/** Returns true for an address that `Resolver.setServers` of `node:dns` accepts. */
function isDnsServer(item: string): boolean {
  if (isIP(item) !== 0) return true
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(item)
  const port = Number(match?.[3])
  return (isIPv6(match?.[1] ?? '') || isIPv4(match?.[2] ?? '')) && port >= 1 && port <= 65_535
}

function isHttpProxy(given: string): boolean {
  const url = URL.parse(given)
  if (url === null || url.protocol !== 'http:') return false
  const isBare = url.pathname === '/' && url.search === '' && url.hash === ''
  return isBare && isEncoded(url.username) && isEncoded(url.password)
}

function isEncoded(part: string): boolean {
  try {
    return decodeURIComponent(part).isWellFormed()
  } catch {
    return false
  }
}
