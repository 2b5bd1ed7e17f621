/**
 * A broker of kafkajs 2.2.4, as `findBroker` of a cluster gives it: what is used of it, which it declares in
 * part.
 */
export type WireBroker = {
  /** What the broker understands, by API key; null before the first connection. */
  readonly versions: Readonly<Record<number, VersionRange>> | null
  readonly connectionPool: {
    send<T>(protocol: Protocol<T>): Promise<T>
    /** Connects where it isn't. */
    getConnectionByRequest?(protocol: Pick<Protocol<unknown>, 'request'>): Promise<unknown>
  }
  disconnect(): Promise<void>
}

type VersionRange = { readonly minVersion: number; readonly maxVersion: number }

/** What kafkajs makes of a request: how it is written, and how its answer is read. */
type Protocol<T> = {
  readonly request: {
    readonly apiKey: number
    readonly apiVersion: number
    readonly apiName: string
    encode(): Promise<{ readonly buf: Buffer; readonly buffer: Buffer }>
  }
  readonly response: {
    readonly decode: (bytes: Buffer) => Promise<T>
    readonly parse: (answer: T) => Promise<T>
  }
  /** Instead of the client's own, where that is shorter, in milliseconds. */
  readonly requestTimeout?: number | undefined
}

/** A request that is written here. */
export type WireRequest<T> = {
  readonly apiKey: number
  /** Kafka's name of the API, for errors and log lines. */
  readonly apiName: string
  /** The versions that `write` and `read` know. The highest of them that the broker has is taken. */
  readonly lowest: number
  readonly highest: number
  /** The first version with tagged fields in its header (KIP-482); none where it isn't given. */
  readonly flexibleFrom?: number
  /** How long the answer may take, where that is longer than the client's own timeout, in milliseconds. */
  readonly timeoutMs?: number | undefined
  /** The body, without the header of the request. */
  write(version: number): Buffer
  /** Reads the body of the answer, without its header. Slices of `body` may be kept. */
  read(body: Buffer, version: number): T | Promise<T>
}

/** The broker is older than what a request needs. */
export class BrokerTooOldError extends Error {
  override readonly name = 'BrokerTooOldError'
}

/**
 * Sends one request to one broker, by kafkajs' connections. Gives its answer with all error codes left where
 * they belong. Rejects only when the connection or the request as a whole failed; with a `BrokerTooOldError`
 * where the broker has none of the versions.
 *
 * @param broker one of a cluster's `findBroker`
 */
export async function ask<T>(broker: WireBroker, request: WireRequest<T>): Promise<T> {
  const { apiKey, apiName, flexibleFrom = Infinity, timeoutMs } = request
  const apiVersion = versionFor(broker, request)
  const isFlexible = apiVersion >= flexibleFrom
  return send(broker, {
    request: {
      apiKey,
      apiName,
      apiVersion,
      async encode() {
        const body = request.write(apiVersion)
        // The end of the header: no tagged fields.
        const bytes = isFlexible ? Buffer.concat([noTags, body]) : body
        return { buf: bytes, buffer: bytes }
      },
    },
    response: {
      decode: async (bytes) => request.read(isFlexible ? behindTags(bytes) : bytes, apiVersion),
      parse: (answer) => Promise.resolve(answer),
    },
    requestTimeout: timeoutMs,
  })
}

/** The highest version that both sides have. */
function versionFor(
  { versions }: WireBroker,
  {
    apiKey,
    apiName,
    lowest,
    highest,
  }: Pick<WireRequest<unknown>, 'apiKey' | 'apiName' | 'lowest' | 'highest'>,
): number {
  const range = versions?.[apiKey]
  const version = Math.min(highest, range?.maxVersion ?? -1)
  if (range !== undefined && version >= lowest && version >= range.minVersion) return version
  const has =
    range === undefined ? 'does not have it' : `has versions ${range.minVersion} to ${range.maxVersion}`
  throw new BrokerTooOldError(
    `the broker ${has}, and ${apiName} is needed in one of the versions ${lowest} to ${highest}: use a broker that is supported`,
  )
}

/** What connects now: by pool, and whether the connection is the one for fetches. */
const connecting = new WeakMap<object, Map<boolean, Promise<unknown>>>()
const fetchKey = 1

/**
 * kafkajs opens a socket for each request that comes while it connects, and forgets, and never closes, all
 * but the last.
 */
function connectOnce(
  pool: WireBroker['connectionPool'],
  { request }: Pick<Protocol<unknown>, 'request'>,
): Promise<unknown> {
  const ofPool = connecting.get(pool) ?? new Map<boolean, Promise<unknown>>()
  connecting.set(pool, ofPool)
  const isFetch = request.apiKey === fetchKey
  const underWay = ofPool.get(isFetch)
  if (underWay !== undefined) return underWay
  const connected = Promise.resolve(pool.getConnectionByRequest?.({ request })).finally(() =>
    ofPool.delete(isFetch),
  )
  ofPool.set(isFetch, connected)
  return connected
}

async function send<T>(broker: WireBroker, protocol: Protocol<T>): Promise<T> {
  try {
    await connectOnce(broker.connectionPool, protocol)
    return await broker.connectionPool.send(protocol)
  } catch (error) {
    if (isDead(error)) await broker.disconnect()
    throw error
  }
}

/** kafkajs goes on with a connection that was closed, or gives no answer. */
function isDead(error: unknown): boolean {
  return error instanceof Error && deadConnection.has(error.name)
}

const deadConnection: ReadonlySet<string> = new Set([
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
])

const noTags = Buffer.from([0])

/** The header of an answer is nothing but its tagged fields, here: no broker has any. */
function behindTags(bytes: Buffer): Buffer {
  if (bytes[0] !== 0) throw new Error('the header of an answer has fields that nobody knows')
  return bytes.subarray(1)
}
