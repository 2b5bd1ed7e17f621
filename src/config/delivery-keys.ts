import { isIP, isIPv4, isIPv6 } from 'node:net'
import {
  boolean,
  bytes,
  cidrs,
  duration,
  integer,
  optionalText,
  texts,
  SECOND,
  MINUTE,
  HOUR,
  MIB,
} from './key.ts'

/** The settings of requests to URLs, and of the breaker that slows them. */
export const deliveryKeys = {
  delivery: {
    timeout: duration({
      default: 5 * SECOND,
      min: 100,
      max: MINUTE,
      description:
        'The maximum duration of a request, from the start of the connection to the last response header.',
    }),
    namesRequests: boolean({
      default: true,
      description:
        'Whether requests to destinations have the headers `X-Sluice-Message-Id` and `X-Sluice-Attempt` (1 for the first attempt). With them, a receiver can tell a repeat from a new message, and can name a request to you.',
    }),
    maxInFlight: integer({
      default: 512,
      min: 1,
      max: 65_536,
      description:
        'The maximum number of requests in flight in each process. The catalog sets another limit for each destination (`maxInFlight`), which also applies to each process.',
    }),
    maxInFlightSick: integer({
      default: 8_192,
      min: 16,
      max: 65_536,
      description:
        'The maximum number of requests in flight in each process to URLs that fail (whose circuit breaker is open) or that asked for a pause. These requests do not count in `delivery.maxInFlight`. One URL gets at most two thirds of them. The same number of requests may wait. If a URL never answers and gets one message a second, it has 5 requests in flight with the default `delivery.timeout`. If the system allows too few open files (`ulimit -n`), the maximum is lower.',
    }),
    bufferRecords: integer({
      default: 2_000,
      min: 1,
      max: 1_000_000,
      description:
        'The maximum number of records in each process that are read from Kafka but not yet delivered or written to another topic. At this number, the process pauses reading.',
    }),
    bufferBytes: bytes({
      default: 64 * MIB,
      min: MIB,
      max: 16 * 1024 * MIB,
      description:
        'The maximum number of bytes of such records in each process (see `delivery.bufferRecords`). At this number, the process pauses reading.',
    }),
    lanePatience: duration({
      default: 500,
      min: 0,
      max: MINUTE,
      description:
        'How long the queue (lane) of a destination may hold more than its share of the buffer. After this time, new messages for the destination wait in Kafka, in the topic `waiting`, until it is their turn. It is also how long the lanes of many destinations together may keep the buffer full while more could be sent.',
    }),
    laneWait: duration({
      default: 5 * SECOND,
      min: 10,
      max: 10 * MINUTE,
      description:
        'How long a delivery may wait in memory, in the queue (lane) of its destination. After this time, it waits in Kafka, in the topic `waiting`, until it is its turn. While the buffer is full and more could be sent, this happens after `delivery.lanePatience`.',
    }),
    maxRuleTime: duration({
      default: 100,
      min: 1,
      max: SECOND,
      description:
        'How much of each second the conditions and mappings of one destination may take in each process. If they take more, the messages of this destination wait, and those of others do not.',
    }),
    waitingQueues: boolean({
      default: true,
      description:
        'Whether deliveries that only wait for their turn join a queue of their destination in the topic `waiting`. `false`: they wait on the retry topics, as in versions without these queues, and what is in the queues is still delivered. Set it to `false`, and wait until `sluice_waiting_messages` is 0, before you go back to such a version.',
    }),
    loginWait: duration({
      default: 72 * HOUR,
      min: MINUTE,
      max: 27 * 24 * HOUR,
      description:
        'How long a message waits in the queue of its destination while no token can be had to log in with (`login` of the kind `oauth2` in the catalog). It counts no try meanwhile. After this time, it becomes a dead letter (`login_failed`).',
    }),
    stopOnGone: boolean({
      default: true,
      description:
        'Whether a URL that answers 410 (Gone) gets no more requests, until somebody edits or resumes it. If all URLs of a destination are gone, Sluice pauses the destination, and its messages wait. `false`: 410 concerns only the message that got it, as any other refusal. It does not apply to destinations that get notices, or whose `autoPause` is `off` in the catalog.',
    }),
    poolIdle: duration({
      default: 30 * SECOND,
      min: 100,
      max: 10 * MINUTE,
      description:
        'How long Sluice keeps an idle connection to a destination. If the server asks for a shorter time with `Keep-Alive`, this time applies.',
    }),
    maxIdleConnections: integer({
      default: 10_000,
      min: 16,
      max: 1_000_000,
      description:
        'The maximum number of idle connections that each process keeps. If there are more, it closes the one that has been idle for the longest time. Each needs an open file and about 10 KB of memory (more with HTTPS). If the system allows too few open files (`ulimit -n`), the maximum is lower.',
    }),
    allowAddresses: cidrs({
      default: [],
      description:
        'Address ranges to which Sluice may deliver, although they are private or are used by a cloud for its own machines (SECURITY.md). Sluice refuses every other private address, both in the catalog and at each connection.',
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
        'Whether requests to URLs have the header `traceparent` while tracing is on (docs/tracing.md). Its ids are random, and reveal nothing to people without the trace. If the catalog sets a `traceparent` for a URL, the value in the catalog takes precedence.',
    }),
  },
  breaker: {
    failurePercent: integer({
      default: 50,
      min: 1,
      max: 100,
      description:
        'The percentage of failed requests at which the circuit breaker of a URL opens. An open breaker makes requests to this URL rarer.',
    }),
    minResults: integer({
      default: 10,
      min: 1,
      max: 10_000,
      description:
        'How many results there must be in `breaker.window` before a breaker can open. To decide when an open breaker closes, Sluice looks at the same number of results in a row. The breaker closes if fewer than `breaker.failurePercent` of them failed.',
    }),
    window: duration({
      default: 10 * SECOND,
      min: 100,
      max: 10 * MINUTE,
      description: 'The breaker counts the results of this period, up to now.',
    }),
    openFor: duration({
      default: 5 * SECOND,
      min: 100,
      max: HOUR,
      description:
        'If a breaker is open, Sluice sends a probe to the URL this long after the last request. The time doubles with each request that fails.',
    }),
    maxOpenFor: duration({
      default: MINUTE,
      min: 100,
      max: HOUR,
      description:
        'The longest wait before a probe. It is also the longest pause that a URL can ask for by `Retry-After` for all of its messages.',
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
