import { type Connection, cutOff } from './connections.ts'
import { within } from './within.ts'

/**
 * A broker of kafkajs 2.2.4, as a cluster's `findBroker` returns it. These are the parts that Sluice uses,
 * some of which kafkajs doesn't declare.
 */
export type WireBroker = {
  /** The versions that the broker understands, by API key; null before the first connection. */
  readonly versions: Readonly<Record<number, VersionRange>> | null
  readonly connectionPool: {
    /** Returns the connection for a request. Connects if there is none. */
    getConnectionByRequest(protocol: Pick<Protocol<unknown>, 'request'>): Promise<WireConnection>
  }
}

type WireConnection = Connection & { send<T>(protocol: Protocol<T>): Promise<T> }

type VersionRange = { readonly minVersion: number; readonly maxVersion: number }

/** A request in the form that kafkajs needs: how to write it, and how to read its answer. */
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
  /** A timeout in milliseconds, which applies if it is longer than the client's own. */
  readonly requestTimeout?: number | undefined
}

/** A request that Sluice writes itself. */
export type WireRequest<T> = {
  readonly apiKey: number
  /** Kafka's name of the API, for errors and log lines. */
  readonly apiName: string
  /**
   * The lowest and highest version that `write` and `read` know. `ask` takes the highest that the broker has
   * too.
   */
  readonly lowest: number
  readonly highest: number
  /** The first version with tagged fields in its header (KIP-482). Absent if no version has them. */
  readonly flexibleFrom?: number
  /** The time that the answer may take, in milliseconds, if that is longer than the client's own timeout. */
  readonly timeoutMs?: number | undefined
  /** Writes the body, without the header of the request. */
  write(version: number): Buffer
  /** Reads the body of the answer, without its header. The result may keep slices of `body`. */
  read(body: Buffer, version: number): T | Promise<T>
}

/** Reports that the broker is older than a request needs. */
export class BrokerTooOldError extends Error {
  override readonly name = 'BrokerTooOldError'
}

/**
 * Sends one request to one broker over kafkajs' connections. Returns the answer with its error codes, and
 * leaves the codes to the caller. Rejects only when the connection or the request as a whole failed. Rejects
 * with a `BrokerTooOldError` if the broker has none of the versions.
 *
 * @param broker a broker that a cluster's `findBroker` returned
 * @param mostMs the time after which the connection counts as dead, in milliseconds, if that is shorter than
 * the client's own timeout
 */
export async function ask<T>(broker: WireBroker, request: WireRequest<T>, mostMs?: number): Promise<T> {
  const { apiKey, apiName, flexibleFrom = Infinity, timeoutMs } = request
  const apiVersion = versionFor(broker, request)
  const isFlexible = apiVersion >= flexibleFrom
  const protocol: Protocol<T> = {
    request: {
      apiKey,
      apiName,
      apiVersion,
      async encode() {
        const body = request.write(apiVersion)
        // A flexible header ends with its tagged fields, of which there are none.
        const bytes = isFlexible ? Buffer.concat([noTags, body]) : body
        return { buf: bytes, buffer: bytes }
      },
    },
    response: {
      decode: async (bytes) => request.read(isFlexible ? behindTags(bytes) : bytes, apiVersion),
      parse: (answer) => Promise.resolve(answer),
    },
    requestTimeout: timeoutMs,
  }
  return send(broker, protocol, mostMs)
}

/** Returns the highest version that both sides have. */
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

/**
 * Sends a request. Cuts a connection that closes or gives no answer in time: all its requests are rejected.
 */
async function send<T>(broker: WireBroker, protocol: Protocol<T>, mostMs: number | undefined): Promise<T> {
  const connection = await broker.connectionPool.getConnectionByRequest(protocol)
  const sent = connection.send(protocol)
  try {
    if (mostMs === undefined || (await within(mostMs, sent))) return await sent
  } catch (error) {
    if (isDead(error)) cutOff(connection, `an earlier request had no answer: ${error.message}`)
    throw error
  }
  const late = `the broker did not answer ${protocol.request.apiName} within ${mostMs} ms`
  cutOff(connection, late)
  throw new Error(late)
}

/** Returns true if the connection is closed or gives no answer. kafkajs would go on using it. */
function isDead(error: unknown): error is Error {
  return error instanceof Error && deadConnection.has(error.name)
}

const deadConnection: ReadonlySet<string> = new Set([
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
])

const noTags = Buffer.from([0])

/** Removes the header of an answer, which here has only tagged fields. No broker sends any. */
function behindTags(bytes: Buffer): Buffer {
  if (bytes[0] !== 0) throw new Error('the header of an answer has unknown fields')
  return bytes.subarray(1)
}
