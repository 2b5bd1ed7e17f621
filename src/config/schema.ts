import { adminKeys } from './admin-keys.ts'
import { isBroker } from './broker-name.ts'
import { isIP, isIPv4, isIPv6 } from 'node:net'
import { deliveryLogKeys } from './delivery-log-keys.ts'
import { noticesKeys } from './notices-keys.ts'
import { isPlainUrl } from './plain-url.ts'
import {
  boolean,
  bytes,
  choice,
  cidrs,
  duration,
  durations,
  integer,
  integerOr,
  optionalText,
  text,
  texts,
  type Key,
} from './key.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const KIB = 1024
const MIB = 1024 ** 2

/** As `Resolver.setServers` of `node:dns` reads it. */
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

/** Of a SASL OAUTHBEARER message. Source: RFC 7628, section 3.1. */
function isExtension(item: string): boolean {
  return /^[A-Za-z]+=[\x20-\x7e]+$/.test(item) && !item.startsWith('auth=')
}

function isEncoded(part: string): boolean {
  try {
    return decodeURIComponent(part).isWellFormed()
  } catch {
    return false
  }
}

const defaultTopicPrefix = 'sluice.'
/** The default group of the default prefix; before groups followed the prefix, that of every prefix. */
export const plainGroupId = 'sluice'

/** The group of an installation that sets none: no two prefixes have the same. */
export function groupIdFor(topicPrefix: string): string {
  return topicPrefix === defaultTopicPrefix ? plainGroupId : `${topicPrefix}workers`
}

/**
 * Every key of the configuration. Its variable, its flag, the table in `docs/configuration.md` and the type
 * of `Config` come from here.
 */
const configTable = {
  kafka: {
    brokers: texts({
      default: [],
      item: { accepts: isBroker, expected: 'host:port' },
      alias: 'KAFKA_BROKERS',
      description: 'A few brokers to connect to first. The client learns the others from them.',
    }),
    groupId: text({
      default: groupIdFor(defaultTopicPrefix),
      description:
        'The consumer group of the workers. No other installation may use it. With another `kafka.topicPrefix` the default is that prefix and `workers`: `eu.workers` for `eu.`.',
    }),
    clientId: text({
      default: 'sluice',
      description: 'The name of this client in the logs and quotas of the brokers.',
    }),
    instanceId: optionalText({
      shape: {
        accepts: (given) => /^[A-Za-z0-9._-]{1,200}$/.test(given),
        expected: 'up to 200 of A-Z a-z 0-9 . _ -',
      },
      description:
        'The name of this worker in its group (static membership). It is unique in the group, and the same after a restart, as the name of a pod of a StatefulSet. ' +
        'A restart within the session moves no partition. A worker that stops and does not come back keeps its partitions until its session is over: ' +
        'set `kafka.leaveOnStop` where names do not come back, as where an autoscaler takes pods away. ' +
        'When two workers run with the same name the first one ends with an error. Process N is the member NAME-N of the group.',
    }),
    leaveOnStop: boolean({
      default: false,
      description:
        'What a worker with an instance id does when it stops in good order. `true`: it leaves its group, and its partitions move to the others at once. ' +
        '`false`: the group keeps its partitions for it, so a restart within the session moves nothing. A worker without an instance id always leaves.',
    }),
    topicPrefix: text({
      default: defaultTopicPrefix,
      shape: {
        accepts: (given) => /^[A-Za-z0-9._-]{0,100}$/.test(given),
        expected: 'up to 100 of A-Z a-z 0-9 . _ -',
      },
      description: 'The beginning of the name of every topic.',
    }),
    sessionTimeout: duration({
      default: 30 * SECOND,
      min: 6 * SECOND,
      max: 5 * MINUTE,
      description: 'A worker that the group has not heard from for this long loses its partitions.',
    }),
    commitInterval: duration({
      default: SECOND,
      min: 100,
      max: MINUTE,
      description:
        'How often offsets are committed. After a crash, deliveries that were settled since the last commit are repeated.',
    }),
    onTruncation: choice({
      values: ['earliest', 'stop'],
      default: 'earliest',
      description:
        'What a worker does when the log of a partition is not the one that it has read: the topic was made again or restored, or its leader was elected without ' +
        'all records. `earliest`: it reads on from where the logs part, or from the beginning where that is not known. Messages that are delivered twice have ' +
        'the same messageId. `stop`: it stops reading and is not ready. Set the offsets of the group, and restart it.',
    }),
    batchBytes: bytes({
      default: 880 * KIB,
      min: 16 * KIB,
      max: 8 * MIB,
      description:
        'The most bytes that are written to a partition at once, except for a single larger message. A smaller `max.message.bytes` of the topic takes precedence. Lower this setting where the cluster has a limit that it does not report.',
    }),
    ssl: boolean({ default: false, description: 'Connect to the brokers over TLS.' }),
    caFile: optionalText({
      description:
        'A PEM file of certificate authorities to trust for the brokers and the token endpoint, beside those that Node trusts. Read again when it changes.',
    }),
    certFile: optionalText({
      description:
        'A PEM file with the client certificate for the brokers (mTLS) and its intermediate certificates. Read again when it changes.',
    }),
    keyFile: optionalText({ description: 'A PEM file with the private key of that certificate.' }),
    keyPassword: optionalText({ description: 'The password of that key, where it has one.', isSecret: true }),
    keyPasswordFile: optionalText({
      description: 'A file that holds that password. Read again when it changes.',
    }),
    serverName: optionalText({
      shape: { accepts: (given) => /^[A-Za-z0-9._-]{1,253}$/.test(given), expected: 'a host name' },
      description:
        'The host name to expect in the certificates of the brokers, where it differs from the host that Sluice connects to, as behind a tunnel.',
    }),
    saslMechanism: choice({
      values: ['none', 'plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer', 'aws-iam'],
      default: 'none',
      description:
        "How to log in to the brokers. `aws-iam` is for Amazon MSK, with the credentials that AWS' own tools would find.",
    }),
    saslUsername: optionalText({
      description: 'The user to log in as, for `plain` and `scram-sha-…`.',
    }),
    saslPassword: optionalText({ description: 'The password of that user.', isSecret: true }),
    saslPasswordFile: optionalText({
      description:
        'A file that holds that password. Read again at each login: a new password needs no restart.',
    }),
    oauthTokenUrl: optionalText({
      shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
      description: 'Where `oauthbearer` gets its tokens, by client credentials.',
    }),
    oauthClientId: optionalText({ description: 'The client that the tokens are for.' }),
    oauthClientSecret: optionalText({ description: 'The secret of that client.', isSecret: true }),
    oauthClientSecretFile: optionalText({
      description: 'A file that holds that secret. Read again for each token.',
    }),
    oauthScope: optionalText({ description: 'The scope to ask for, where the token endpoint wants one.' }),
    oauthAudience: optionalText({
      description: 'The audience to ask for, where the token endpoint wants one.',
    }),
    oauthExtensions: texts({
      default: [],
      item: { accepts: isExtension, expected: 'name=value' },
      description:
        'SASL extensions to send with the token. Confluent Cloud wants `logicalCluster=lkc-…,identityPoolId=pool-…`.',
    }),
    awsRegion: optionalText({
      shape: {
        accepts: (given) => /^[a-z0-9-]{1,40}$/.test(given),
        expected: 'a region such as eu-central-1',
      },
      description: 'The region of the cluster, for `aws-iam`.',
    }),
  },
  topics: {
    partitions: integer({
      default: 12,
      min: 1,
      max: 1000,
      description:
        'Partitions of each data topic, the same for all: at most so many processes share the load. `sluice topics grow` takes an installation to more of them (docs/growing.md).',
    }),
    generation: integer({
      default: 1,
      min: 1,
      max: 1000,
      description:
        'Which generation of the topics that only Sluice writes is in use. Each growth makes a new one, and says what to set here. The start fails where this is not the last generation.',
    }),
    replication: integer({ default: 3, min: 1, max: 15, description: 'Copies of each partition.' }),
    minInsync: integer({
      default: 2,
      min: 1,
      max: 15,
      description: 'Copies that must have a record before it counts as written (`min.insync.replicas`).',
    }),
    check: choice({
      values: ['strict', 'warn', 'off'],
      default: 'strict',
      description:
        'What to do at the start when replicas or settings of a topic differ, or the cluster does not report them. `strict`: the start fails. `warn`: Sluice logs it and goes on, and `sluice topics apply` leaves out what the cluster refuses. `off`: they are not checked. A missing topic, or another number of partitions, always fails the start.',
    }),
    development: boolean({
      default: false,
      description:
        'Use one replica of everything, for a cluster of one broker. When that broker is lost the data is lost.',
    }),
  },
  worker: {
    processes: integerOr({
      default: 'auto',
      word: 'auto',
      min: 1,
      max: 256,
      description:
        'Processes of `sluice worker`, each a member of the group. `auto`: as many as CPUs may be used, and no more than partitions.',
    }),
  },
  admin: adminKeys,
  gateway: {
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
        'Address ranges of the proxies and load balancers in front of the gateway. Their `X-Forwarded-For` and `X-Forwarded-Proto` are trusted: `context.ip` is the last address of that list which is not one of them. Empty: both headers are ignored, and `context.ip` is the address of the connection.',
    }),
    shutdownDelay: duration({
      default: 5 * SECOND,
      min: 0,
      max: MINUTE,
      description:
        'How long the gateway still accepts connections after SIGTERM, while it is no longer ready, so that load balancers and Kubernetes stop sending to it first. Requests in flight then have `shutdown.timeout`: set `terminationGracePeriodSeconds` above the sum of both. 0 where nothing stands in front of the gateway.',
    }),
  },
  catalog: {
    file: text({
      default: 'catalog.yaml',
      description:
        'Sources and destinations. Edits are live within a second; a faulty one is refused as a whole.',
    }),
  },
  message: {
    maxBytes: bytes({
      default: MIB,
      min: KIB,
      max: 16 * MIB,
      description:
        'The largest message: its key and its value, also in canonical form. A larger message becomes a dead letter. Run `sluice topics apply` after a change: the retry topics need room for it and its headers.',
    }),
    maxDepth: integer({
      default: 100,
      min: 10,
      max: 1_000,
      description: 'The most levels of nested objects and arrays in a message.',
    }),
    maxKeys: integer({
      default: 10_000,
      min: 100,
      max: 1_000_000,
      description: 'The most keys in a message, those of all its objects together.',
    }),
  },
  repeats: {
    window: duration({
      default: 24 * HOUR,
      min: 0,
      max: 24 * HOUR,
      description:
        'A message is dropped when its source sent the same messageId within this time before it. 0: no message is dropped.',
    }),
    messages: integer({
      default: 1_000_000,
      min: 1,
      max: 50_000_000,
      description:
        'How many messages each process remembers to recognize repeats. Beyond it the oldest is forgotten. Each takes 36 to 40 bytes, allocated at the start.',
    }),
  },
  state: {
    folder: optionalText({
      description:
        'The folder for the state of audiences, which is a cache of the topic memberships. Where the folder is lost the worker reads the topic again. Put it on a volume that stays with the pod to avoid that. Not set: a new folder in the temporary folder of the system.',
    }),
  },
  audiences: {
    syncTimeout: duration({
      default: 10 * MINUTE,
      min: SECOND,
      max: 24 * HOUR,
      description:
        'How long the parts of a sync may take to arrive in a partition after the first one. Then the whole sync is refused, and no user leaves the audience.',
    }),
    firstSync: boolean({
      default: true,
      description:
        'Whether a destination that is connected to an audience space later gets all of its present members. `false`: it gets only changes, and is marked as in need of a backfill.',
    }),
    firstSyncRate: integer({
      default: 200,
      min: 1,
      max: 100_000,
      description:
        'The most members a second that such a destination gets, from all workers together. Its own rateLimit applies too.',
    }),
  },
  registry: {
    url: optionalText({
      shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
      description:
        'The schema registry (Confluent API) for framed values. Not set: a framed value becomes a dead letter.',
    }),
    username: optionalText({ description: 'The user to log in to it as, or the API key.' }),
    password: optionalText({ isSecret: true, description: 'The password of that user, or the API secret.' }),
    passwordFile: optionalText({
      description: 'A file that holds that password. Read again when it changes.',
    }),
    caFile: optionalText({
      description:
        'A PEM file of certificate authorities to trust for the registry, beside those that Node trusts. Read again when it changes.',
    }),
    timeout: duration({
      default: 5 * SECOND,
      min: 100,
      max: MINUTE,
      description:
        'How long the registry may take to answer. Partitions that need the answer wait, and Sluice asks again.',
    }),
  },
  retry: {
    ladder: durations({
      default: [MINUTE, 10 * MINUTE, HOUR, HOUR, HOUR],
      min: 100,
      max: 24 * HOUR,
      maxItems: 20,
      description: 'How long to wait before each further try. Each distinct wait is a topic.',
    }),
    // oxlint-disable-next-line unicorn/no-thenable -- a key of the table; no function, so no await calls it
    then: duration({
      default: 10 * MINUTE,
      min: 100,
      max: 24 * HOUR,
      description: 'The wait after the last step of the ladder, repeated as often as it fits.',
    }),
    limit: duration({
      default: 4 * HOUR,
      min: SECOND,
      max: 48 * HOUR,
      description:
        'How long after the first attempt the last one may be due. Then the message becomes a dead letter. Beyond 24h the retry topics have to keep records for longer: run `sluice topics apply` after a change.',
    }),
  },
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
        'The most requests in flight in each process. The catalog sets a limit for each destination, also by process.',
    }),
    maxInFlightSick: integer({
      default: 8_192,
      min: 16,
      max: 65_536,
      description:
        'The most requests in flight in each process to URLs that fail (their breaker is open) or asked for a pause, in addition to `delivery.maxInFlight`. One URL gets at most two thirds of it. As many requests again may wait. A URL that never answers needs 5 for each message a second. The effective limit is at most half of the open files that the system allows.',
    }),
    bufferRecords: integer({
      default: 2_000,
      min: 1,
      max: 1_000_000,
      description:
        'The most records in each process that are read from Kafka and not settled yet. Beyond it reading pauses.',
    }),
    bufferBytes: bytes({
      default: 64 * MIB,
      min: MIB,
      max: 16 * 1024 * MIB,
      description: 'The most bytes of such records. Beyond it reading pauses.',
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
    allowAddresses: cidrs({
      default: [],
      description:
        'Private address ranges, or ranges that a cloud keeps for its own machines, to which deliveries are allowed (SECURITY.md). All others of them are refused, both in the catalog and at each connection.',
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
        'Whether requests to URLs have the header `traceparent` while tracing is on (docs/tracing.md). Its ids mean nothing to anyone without the trace. A `traceparent` of a URL in the catalog takes precedence.',
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
        'The least results in the window that can open a breaker. An open breaker closes after a run of as many results of which fewer failed.',
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
        'How long a URL with an open breaker waits for a probe while nothing else is sent to it. Doubled with each request that fails.',
    }),
    maxOpenFor: duration({
      default: MINUTE,
      min: 100,
      max: HOUR,
      description:
        'The longest wait for such a probe, and the longest pause for all messages of a URL that its `Retry-After` can ask for.',
    }),
  },
  http: {
    host: text({
      default: '0.0.0.0',
      description:
        'The address that metrics and probes listen on. `::` is every address of the machine, of IPv4 too.',
    }),
    port: integer({
      default: 9400,
      min: 0,
      max: 65_535,
      description: 'The port that metrics and probes listen on; 0 picks a free one.',
    }),
  },
  shutdown: {
    timeout: duration({
      default: 10 * SECOND,
      min: 100,
      max: 10 * MINUTE,
      description:
        'How long a stopping process waits for requests in flight. Deliveries that take longer are repeated, not lost.',
    }),
  },
  log: {
    level: choice({
      values: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      default: 'info',
      description: 'The least severe log lines to write.',
    }),
    attempts: boolean({
      default: true,
      description:
        'Write one log line for each attempt of a delivery. `false`: only for timeouts and for refused certificates and addresses, at most one line a second for each hook.',
    }),
  },
  ...deliveryLogKeys,
  ...noticesKeys,
  metrics: {
    perDestination: boolean({
      default: false,
      description:
        'Label metrics by destination. The number of series then grows with the number of destinations.',
    }),
  },
} as const

type Table = typeof configTable

type ValueOf<K> = K extends Key<infer T, infer _> ? T : never
type SuffixOf<K> = K extends Key<infer _, infer Suffix> ? Suffix : never

/**
 * What the process runs with: `config.kafka.brokers`. Durations are in milliseconds and say so:
 * `config.delivery.timeoutMs`, `config.retry.ladderMs`. Holds secrets (`kafka.saslPassword`): never log it as
 * a whole.
 */
export type Config = {
  readonly [Section in keyof Table]: {
    readonly [Name in keyof Table[Section] & string as `${Name}${SuffixOf<Table[Section][Name]>}`]: ValueOf<
      Table[Section][Name]
    >
  }
}

/** A row of the table, whatever its type, with the names that are derived from it. */
export type ConfigKey = {
  /** `kafka.groupId` */
  readonly name: string
  readonly section: string
  /** The name of its value in `Config`'s section: `groupId`, `sessionTimeoutMs`. */
  readonly property: string
  /** `SLUICE_KAFKA_GROUP_ID` */
  readonly variable: string
  /** `--kafka-group-id`; secrets have none. */
  readonly flag: string | undefined
  /** What commander calls that flag among its options: `kafkaGroupId`. */
  readonly option: string
  readonly key: Key<unknown, '' | 'Ms'>
}

/** All rows, in the order of the table. */
export const configKeys: readonly ConfigKey[] = Object.entries(configTable).flatMap(([section, keys]) =>
  Object.entries<Key<unknown, '' | 'Ms'>>(keys).map(([name, key]) => {
    const words = [section, ...name.split(/(?=[A-Z])/)].map((word) => word.toLowerCase())
    return {
      name: `${section}.${name}`,
      section,
      property: `${name}${key.suffix}`,
      variable: `SLUICE_${words.join('_').toUpperCase()}`,
      flag: key.isSecret ? undefined : `--${words.join('-')}`,
      option: `${section}${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      key,
    }
  }),
)
