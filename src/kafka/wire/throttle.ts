/** The first four API keys have a quota of their own. */
const apiKeys = {
  produce: 0,
  fetch: 1,
  createTopics: 19,
  deleteTopics: 20,
  createPartitions: 37,
  metadata: 3,
  apiVersions: 18,
} as const

/**
 * The first version of each request in whose answer a broker announces a throttle (KIP-219): it answers at
 * once, and then reads nothing from the connection for the announced time. Requests without an entry are
 * never throttled, or Sluice doesn't send them.
 */
const announcedFrom: ReadonlyMap<number, number> = new Map([
  [apiKeys.produce, 6],
  [apiKeys.fetch, 8],
  [2, 3], // ListOffsets
  [apiKeys.metadata, 6],
  [8, 4], // OffsetCommit
  [9, 4], // OffsetFetch
  [10, 2], // FindCoordinator
  [11, 3], // JoinGroup
  [12, 2], // Heartbeat
  [13, 2], // LeaveGroup
  [14, 2], // SyncGroup
  [15, 2], // DescribeGroups
  [16, 2], // ListGroups
  [apiKeys.apiVersions, 2],
  [apiKeys.createTopics, 3],
  [apiKeys.deleteTopics, 1],
  [21, 1], // DeleteRecords
  [22, 1], // InitProducerId
  [23, 2], // OffsetForLeaderEpoch
  [24, 1], // AddPartitionsToTxn
  [26, 1], // EndTxn
  [32, 2], // DescribeConfigs
  [33, 1], // AlterConfigs
  [apiKeys.createPartitions, 1],
  [42, 1], // DeleteGroups
])

/**
 * The first version of Metadata whose answers begin with tagged fields. Other answers used here have none.
 */
const flexibleMetadata = 9

/**
 * Returns for how long the broker reads nothing from the connection after this answer, in milliseconds.
 *
 * @param payload the part of the answer after its correlation id
 */
export function announcedThrottleMs(
  { apiKey, apiVersion }: { readonly apiKey: number; readonly apiVersion: number },
  payload: Buffer,
): number {
  const from = announcedFrom.get(apiKey)
  if (from === undefined || apiVersion < from) return 0
  let at = apiKey === apiKeys.metadata && apiVersion >= flexibleMetadata ? 1 : 0
  if (apiKey === apiKeys.produce) at = payload.length - 4
  if (apiKey === apiKeys.apiVersions) {
    // A refusal has the form of version 0, without a throttle.
    if (payload.length < 2 || payload.readInt16BE(0) !== 0) return 0
    at = payload.length - 4
  }
  return at >= 0 && payload.length >= at + 4 ? Math.max(0, payload.readInt32BE(at)) : 0
}

/**
 * The longest time for which throttles excuse that nothing moves, in milliseconds. After this time, what
 * waits is reported as failing. A quota may be so small that it never lets a large batch through.
 */
export const throttlePatienceMs = 5 * 60_000

/** The kinds of requests whose throttles are told apart. */
export type ThrottledRequest = (typeof throttledRequests)[number]

const throttledRequests = ['produce', 'fetch', 'topics', 'other'] as const

/** A wait that a broker has announced: for `ms` milliseconds, it reads nothing from one connection. */
export type Throttle = {
  /** The address of the broker, as `host:port`. */
  readonly broker: string
  readonly clientId: string
  readonly apiKey: number
  readonly ms: number
}

const requestOf: ReadonlyMap<number, ThrottledRequest> = new Map([
  [apiKeys.produce, 'produce'],
  [apiKeys.fetch, 'fetch'],
  [apiKeys.createTopics, 'topics'],
  [apiKeys.deleteTopics, 'topics'],
  [apiKeys.createPartitions, 'topics'],
])

const quotas: Readonly<Record<ThrottledRequest, string>> = {
  produce: 'producer_byte_rate or request_percentage',
  fetch: 'consumer_byte_rate or request_percentage',
  topics: 'controller_mutation_rate or request_percentage',
  other: 'request_percentage',
}

/** The reason why nothing is read although the broker answers. */
export const tooSmallForFetch =
  'a quota of this client id or its user lets nothing through (consumer_byte_rate, request_percentage): the largest batch must not be larger than the quota of ten seconds'

const loggedEveryMs = 60_000

type Sum = { readonly broker: string; readonly request: ThrottledRequest; seconds: number; loggedMs: number }

/**
 * The throttles that all clients of this process have got, by broker and kind of request. A process has many
 * clients of Kafka, and a quota belongs to all of them together.
 */
const sums = new Map<string, Sum>()

/** Notes that this process uses a broker, so that the sums of its throttles begin with zero. */
export function noteBroker(broker: string): void {
  for (const request of throttledRequests) sumOf(broker, request)
}

function sumOf(broker: string, request: ThrottledRequest): Sum {
  const name = `${broker} ${request}`
  const known = sums.get(name)
  if (known !== undefined) return known
  const sum = { broker, request, seconds: 0, loggedMs: -Infinity }
  sums.set(name, sum)
  return sum
}

/** Returns for how many seconds each broker has throttled this process since its start. */
export function throttledSeconds(): readonly Readonly<Omit<Sum, 'loggedMs'>>[] {
  return [...sums.values()]
}

/** Adds up a throttle, and logs it. Logs the same kind at the same broker at most once a minute. */
export function noteThrottle(
  { broker, clientId, apiKey, ms }: Throttle,
  log: (message: string, ms: number) => void,
): void {
  const request = requestOf.get(apiKey) ?? 'other'
  const sum = sumOf(broker, request)
  sum.seconds += ms / 1_000
  const nowMs = performance.now()
  if (nowMs - sum.loggedMs < loggedEveryMs) return
  sum.loggedMs = nowMs
  log(
    `the broker ${broker} slows this process down: it reads nothing from a connection for ${(ms / 1_000).toFixed(1)} s, because a quota of the client id ${clientId} or of its user is used up (${quotas[request]}). Sluice waits as long, and loses nothing. If this lasts, raise the quota (kafka-configs.sh --describe --entity-type clients, and --entity-type users), or give Sluice a client id of its own (kafka.clientId)`,
    ms,
  )
}
