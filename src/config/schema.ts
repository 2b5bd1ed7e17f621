import { isIP, isIPv4, isIPv6 } from 'node:net'
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

function isPlainUrl(given: string): boolean {
  const url = URL.parse(given)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return false
  return url.username === '' && url.password === '' && url.search === '' && url.hash === ''
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

/** kafkajs splits at the colon: names and IPv4 addresses only. */
function isBroker(item: string): boolean {
  const port = Number(/^[A-Za-z0-9._-]+:(\d{1,5})$/.exec(item)?.[1])
  return port >= 1 && port <= 65_535
}

const defaultTopicPrefix = 'sluice.'
/** The default group of the default prefix; before groups followed the prefix, that of every prefix. */
export const plainGroupId = 'sluice'

/** The group of an installation that sets none: no two prefixes have the same. */
export function groupIdFor(topicPrefix: string): string {
  return topicPrefix === defaultTopicPrefix ? plainGroupId : `${topicPrefix}workers`
}

/**
 * Every key of the configuration. Its variable, its flag, the table in `docs/configuration.md` and the type of
 * `Config` come from here.
 */
const configTable = {
  kafka: {
    brokers: texts({
      default: [],
      item: { accepts: isBroker, expected: 'host:port' },
      alias: 'KAFKA_BROKERS',
      description: 'Where to begin: a few brokers, the client learns of the others.',
    }),
    groupId: text({
      default: groupIdFor(defaultTopicPrefix),
      description:
        'The consumer group of the workers: of one installation alone. With another `kafka.topicPrefix` its default is that prefix and `workers`: `eu.workers` for `eu.`.',
    }),
    clientId: text({
      default: 'sluice',
      description: 'What the brokers call this client in their logs and quotas.',
    }),
    instanceId: optionalText({
      shape: {
        accepts: (given) => /^[A-Za-z0-9._-]{1,200}$/.test(given),
        expected: 'up to 200 of A-Z a-z 0-9 . _ -',
      },
      description:
        'Who this worker is: no other of the group that runs has it, and it has it again after a restart, as a pod of a StatefulSet has its name. ' +
        'A restart within the session moves no partition, and the others need not join again. One that is stopped and does not come back ' +
        'keeps its partitions until its session is over: leave it out where names do not come back. ' +
        'Of two that run with the same one the first ends with an error. Process N is the member ID-N of the group.',
    }),
    topicPrefix: text({
      default: defaultTopicPrefix,
      shape: {
        accepts: (given) => /^[A-Za-z0-9._-]{0,100}$/.test(given),
        expected: 'up to 100 of A-Z a-z 0-9 . _ -',
      },
      description: 'Begins the name of every topic.',
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
        'How often offsets are committed: what was settled since is delivered again after a crash.',
    }),
    onTruncation: choice({
      values: ['earliest', 'stop'],
      default: 'earliest',
      description:
        'What a worker does with a partition whose log is not the one that it has read: the topic was made again or restored, or its leader was elected without ' +
        'all records. `earliest`: reads from the first record that it may not have read, where the logs part, or from the beginning where that is not known; ' +
        'what is delivered twice has the same messageId. `stop`: reads no further and is not ready, until somebody has set the offsets of the group and starts it again.',
    }),
    batchBytes: bytes({
      default: 880 * KIB,
      min: 16 * KIB,
      max: 8 * MIB,
      description:
        'The most that is written to a partition at once, but for a message that is larger. Where a topic tells a smaller `max.message.bytes`, that counts: lower it where the cluster has a limit that it does not tell.',
    }),
    ssl: boolean({ default: false, description: 'Connect to the brokers over TLS.' }),
    caFile: optionalText({
      description:
        'A PEM file with certificates that the certificates of the brokers, and that of the token endpoint, may be signed by, beside those that Node trusts. Read again when it changes.',
    }),
    certFile: optionalText({
      description:
        'A PEM file with the certificate that Sluice shows the brokers (mTLS), and those between it and its authority. Read again when it changes.',
    }),
    keyFile: optionalText({ description: 'A PEM file with the private key of that certificate.' }),
    keyPassword: optionalText({ description: 'The password of that key, where it has one.', isSecret: true }),
    keyPasswordFile: optionalText({
      description: 'A file that holds that password. Read again when it changes.',
    }),
    serverName: optionalText({
      shape: { accepts: (given) => /^[A-Za-z0-9._-]{1,253}$/.test(given), expected: 'a host name' },
      description:
        'The name that the certificates of the brokers are for, where it is not the host that is connected to, as behind a tunnel.',
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
        'What the brokers are told beside the token: Confluent Cloud wants `logicalCluster=lkc-…,identityPoolId=pool-…`.',
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
        'Which of the topics that only Sluice writes are in use: each growth makes new ones, and says what to set here. A start ends where it is not the one that the last growth has made.',
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
        'What a start makes of topics whose copies or settings are not as they should be, or are not told. `strict`: it ends. `warn`: it says so and goes on; `sluice topics apply` leaves out what the cluster refuses. `off`: they are not looked at. A topic that is missing, or has another number of partitions, ends each start.',
    }),
    development: boolean({
      default: false,
      description:
        'One broker will do: replication and in-sync replicas are taken as 1. Loses data with that broker.',
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
  gateway: {
    host: text({ default: '0.0.0.0', description: 'The address that the gateway listens on.' }),
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
        'Messages that Kafka has not acknowledged yet, and as much again of requests that are being received; past it, 503.',
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
      description: 'Connections at once; further ones are closed.',
    }),
    addIp: boolean({
      default: true,
      description:
        'Whether `context.ip` is filled in where a message has none: with the address that the request came from.',
    }),
    trustedProxies: cidrs({
      default: [],
      description:
        'Address ranges of the proxies and load balancers in front of the gateway, whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed: `context.ip` is the last address of that list that is none of them. Empty: both headers say nothing, and `context.ip` is the address that is connected.',
    }),
    shutdownDelay: duration({
      default: 5 * SECOND,
      min: 0,
      max: MINUTE,
      description:
        'How long the gateway goes on taking connections after SIGTERM, no longer ready, so that load balancers and Kubernetes withdraw it first. Then what is in flight has `shutdown.timeout`: give it both together to end (`terminationGracePeriodSeconds`). 0 where nothing stands in front of it.',
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
        'The largest message: its value, also as it is written out, and its key. A larger one is a dead letter. The retry topics have room for it and its headers: run `sluice topics apply` after a change.',
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
        'A message is dropped when its source has sent the same messageId within this time before. 0: none is dropped.',
    }),
    messages: integer({
      default: 1_000_000,
      min: 1,
      max: 50_000_000,
      description:
        'How many messages each process remembers for that; then it forgets the oldest. Each takes 36 to 40 bytes, from the start.',
    }),
  },
  state: {
    folder: optionalText({
      description:
        'Where what audiences hold is kept: a cache of the topic memberships, which is read again where the folder is lost. On a volume that stays with the pod a worker starts without that. Not set: a folder of its own in the temporary folder of the system.',
    }),
  },
  audiences: {
    syncTimeout: duration({
      default: 10 * MINUTE,
      min: SECOND,
      max: 24 * HOUR,
      description:
        'How long after the first part of a sync the others of its partition may come; then the whole is refused, and nobody has left.',
    }),
    firstSync: boolean({
      default: true,
      description:
        'Tell a destination that is connected to an audience space later who is in it. `false`: it is marked as in need of a backfill, and told only what changes.',
    }),
    firstSyncRate: integer({
      default: 200,
      min: 1,
      max: 100_000,
      description:
        'How many members a second such a destination is told at most, by all workers together. Its own rateLimit holds as well.',
    }),
  },
  registry: {
    url: optionalText({
      shape: { accepts: isPlainUrl, expected: 'http://host:port/path or https://…, without a login' },
      description:
        'The schema registry (Confluent API) that framed values are read with. Not set: a framed value is a dead letter.',
    }),
    username: optionalText({ description: 'The user to log in to it as, or the API key.' }),
    password: optionalText({ isSecret: true, description: 'The password of that user, or the API secret.' }),
    passwordFile: optionalText({
      description: 'A file that holds that password. Read again when it changes.',
    }),
    caFile: optionalText({
      description:
        'A PEM file with certificates that the certificate of the registry may be signed by, beside those that Node trusts. Read again when it changes.',
    }),
    timeout: duration({
      default: 5 * SECOND,
      min: 100,
      max: MINUTE,
      description:
        'How long the registry may take for an answer. Partitions that need one wait, and it is asked again.',
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
        'No try is due later than this after the first; then the message is a dead letter. Beyond 24h the retry topics keep records for longer: run `sluice topics apply` after a change.',
    }),
  },
  delivery: {
    timeout: duration({
      default: 5 * SECOND,
      min: 100,
      max: MINUTE,
      description: 'From the beginning of the connection to the complete response head.',
    }),
    maxInFlight: integer({
      default: 512,
      min: 1,
      max: 65_536,
      description:
        'Requests in flight at once, in each process. A destination has a limit of its own in the catalog, for each process too.',
    }),
    maxInFlightSick: integer({
      default: 8_192,
      min: 16,
      max: 65_536,
      description:
        'The same for all URLs together that fail (their breaker is open) or asked for a pause, beside the others: two thirds of it at most are for one. As many again may wait. One that never answers takes 5 for each message a second. No more than half of the open files that the system allows.',
    }),
    bufferRecords: integer({
      default: 2_000,
      min: 1,
      max: 1_000_000,
      description: 'Records read from Kafka and not settled yet, in each process; past it, reading pauses.',
    }),
    bufferBytes: bytes({
      default: 64 * MIB,
      min: MIB,
      max: 16 * 1024 * MIB,
      description: 'The same in bytes.',
    }),
    lanePatience: duration({
      default: 500,
      min: 0,
      max: MINUTE,
      description:
        'How long a lane may hold more than its share of the buffer before what it has no room for moves to the ladder.',
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
        'How long an idle connection to a destination is kept, where its server does not ask for less by `Keep-Alive`.',
    }),
    allowAddresses: cidrs({
      default: [],
      description:
        'Address ranges that may be delivered to though they are private, or kept by a cloud for its own machines (SECURITY.md). Those are refused otherwise, also in the catalog when it is read.',
    }),
    dnsServers: texts({
      default: [],
      item: { accepts: isDnsServer, expected: 'addresses such as 10.0.0.2, 10.0.0.2:5353 or [fd00::2]:53' },
      description:
        'Where the names of URLs are resolved, in place of the servers in /etc/resolv.conf. Search domains do not apply.',
    }),
    proxy: optionalText({
      isSecret: true,
      shape: { accepts: isHttpProxy, expected: 'http://host:port or http://user:password@host:port' },
      description:
        'The HTTP proxy that all deliveries go through, by CONNECT. It resolves the names of URLs, and has to refuse private addresses.',
    }),
    traceparent: boolean({
      default: false,
      description:
        'Where tracing is on (docs/tracing.md), requests to URLs have the header `traceparent`, whose ids say nothing to who does not have the trace. A URL that has a `traceparent` of its own in the catalog keeps that.',
    }),
  },
  breaker: {
    failurePercent: integer({
      default: 50,
      min: 1,
      max: 100,
      description:
        'The share of failed requests, in percent, at which the breaker of a URL opens, which slows it.',
    }),
    minResults: integer({
      default: 10,
      min: 1,
      max: 10_000,
      description:
        'Fewer results than this in the window open no breaker; of one that is open, so many close it when fewer of them failed.',
    }),
    window: duration({
      default: 10 * SECOND,
      min: 100,
      max: 10 * MINUTE,
      description: 'How far back results count.',
    }),
    openFor: duration({
      default: 5 * SECOND,
      min: 100,
      max: HOUR,
      description:
        'How long a URL whose breaker is open, and that was sent nothing, waits for a try in between; doubled with each request that fails.',
    }),
    maxOpenFor: duration({
      default: MINUTE,
      min: 100,
      max: HOUR,
      description:
        'The longest that such a URL waits for a try, and the longest pause that it may ask for by `Retry-After` on behalf of all messages.',
    }),
  },
  http: {
    host: text({ default: '0.0.0.0', description: 'The address that metrics and probes listen on.' }),
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
        'How long to wait for what is in flight before the worker ends. Nothing is lost after it, only repeated.',
    }),
  },
  log: {
    level: choice({
      values: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      default: 'info',
      description: 'The least urgent lines that are written.',
    }),
    attempts: boolean({
      default: true,
      description:
        'Write one line for each attempt of a delivery. If not, only of its errors: timeouts, certificates and addresses that are refused, at most one line a second for each hook.',
    }),
  },
  attempts: {
    enabled: boolean({
      default: true,
      description:
        'Write what becomes of each delivery to the topic `attempts` (docs/delivery-log.md). It is beside delivery: what Kafka does not take in time is dropped and counted.',
    }),
    retention: duration({
      default: 7 * 24 * HOUR,
      min: HOUR,
      max: 366 * 24 * HOUR,
      description:
        'How long that topic keeps its records, and the index with it. Run `sluice topics apply` after a change.',
    }),
    successes: integer({
      default: 100,
      min: 1,
      max: 1_000_000,
      description:
        'How many deliveries a second that succeed at once have a record of their own, for each URL and process; of those above every tenth, hundredth and so on, which stands for the others. Failures and ends always have one.',
    }),
    bufferBytes: bytes({
      default: 4 * MIB,
      min: 64 * KIB,
      max: 1024 * MIB,
      description: 'What may wait to be written, in each process; past it, records are dropped.',
    }),
    userKey: optionalText({
      isSecret: true,
      shape: { accepts: (given) => given.length >= 16, expected: 'at least 16 characters' },
      description:
        'The key that users are hashed with, so that they can be searched for and no record says who they are. The same for all workers and for whoever searches. Not set: records have no user.',
    }),
    userKeyFile: optionalText({ description: 'A file that holds that key. Read at the start.' }),
  },
  metrics: {
    perDestination: boolean({
      default: false,
      description: 'Label metrics by destination: their number grows with the customers.',
    }),
  },
} as const

type Table = typeof configTable

type ValueOf<K> = K extends Key<infer T, infer _> ? T : never
type SuffixOf<K> = K extends Key<infer _, infer Suffix> ? Suffix : never

/**
 * What the process runs with: `config.kafka.brokers`. Durations are in milliseconds and say so:
 * `config.delivery.timeoutMs`, `config.retry.ladderMs`. Holds secrets (`kafka.saslPassword`): never log it as a whole.
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
