import kafkajs from 'kafkajs'
import { type Connection, cutOff, errorOf } from './connections.ts'
import { within } from './within.ts'

/**
 * A broker of kafkajs 2.2.4, as a cluster's `findBroker` returns it. These are the parts that Sluice uses,
 * some of which kafkajs doesn't declare.
 */
export type WireBroker = {
  /** The versions that the broker understands, by API key. Null before the first connection. */
  readonly versions: Readonly<Record<number, VersionRange>> | null
  readonly connectionPool: {
    /** Returns the connection for a request. Opens a connection if there is none. */
    getConnectionByRequest(protocol: {
      readonly request: { readonly apiKey: number }
    }): Promise<WireConnection>
  }
}

/** The parts of a connection that requests use. */
type WireConnection = Connection & {
  readonly clientId: string
  /** Null if the connection needs no login. */
  readonly sasl: unknown
  readonly requestQueue: {
    push(request: {
      readonly entry: Entry
      readonly expectResponse: boolean
      readonly requestTimeout: number | undefined
      readonly sendRequest: () => void
    }): void
  }
  isAuthenticated(): boolean
  authenticate(): Promise<void>
  nextCorrelationId(): number
}

/** A request that waits for its answer. `payload` is the part of the answer after its correlation id. */
type Entry = {
  readonly apiKey: number
  readonly apiName: string
  readonly apiVersion: number
  readonly correlationId: number
  readonly resolve: (answer: { readonly payload: Buffer }) => void
  readonly reject: (error: Error) => void
}

type VersionRange = { readonly minVersion: number; readonly maxVersion: number }

/** A request that Sluice writes itself. */
export type WireRequest<T> = {
  readonly apiKey: number
  /** Kafka's name of the API. Errors and log lines contain it. */
  readonly apiName: string
  /**
   * The lowest and highest version that `write` and `read` know. `ask` uses the highest of these versions
   * that the broker knows too.
   */
  readonly lowest: number
  readonly highest: number
  /** The first version with tagged fields in its header (KIP-482). Absent if no version has them. */
  readonly flexibleFrom?: number
  /**
   * How long the answer may take, in milliseconds. This limit applies only if it is longer than the client's
   * own timeout.
   */
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
 * Sends one request to one broker over kafkajs' connections. Returns the answer. The caller has to check the
 * error codes in the answer. Rejects only when the connection or the request as a whole failed. Rejects with
 * a `BrokerTooOldError` if the broker knows none of the request's versions. Rejects with an error of kafkajs
 * if the broker hasn't said yet which versions it knows.
 *
 * @param broker a broker that a cluster's `findBroker` returned
 * @param mostMs the time after which the connection counts as dead, in milliseconds. This limit applies only
 * if it is shorter than the client's own timeout
 */
export async function ask<T>(broker: WireBroker, request: WireRequest<T>, mostMs?: number): Promise<T> {
  const { apiKey, apiName, flexibleFrom = Infinity } = request
  const apiVersion = versionFor(broker, request)
  const isFlexible = apiVersion >= flexibleFrom
  const connection = await broker.connectionPool.getConnectionByRequest({ request: { apiKey } })
  const answered = send(connection, request, { apiVersion, isFlexible })
  let payload: Buffer
  try {
    if (mostMs !== undefined && !(await within(mostMs, answered)))
      throw new NoAnswerError(`the broker did not answer ${apiName} within ${mostMs} ms`)
    payload = await answered
  } catch (error) {
    if (isDead(error)) cutOff(connection, `an earlier request had no answer: ${error.message}`)
    throw error
  }
  return request.read(isFlexible ? behindTags(payload) : payload, apiVersion)
}

/** Returns the highest version that both the request and the broker know. */
function versionFor(
  { versions }: WireBroker,
  {
    apiKey,
    apiName,
    lowest,
    highest,
  }: Pick<WireRequest<unknown>, 'apiKey' | 'apiName' | 'lowest' | 'highest'>,
): number {
  // Another caller may be connecting to this broker, and may still wait for the broker's first answer.
  if (versions === null)
    throw new kafkajs.KafkaJSConnectionError(
      `the broker has answered nothing yet, so ${apiName} can't be sent`,
    )
  const range = versions[apiKey]
  const version = Math.min(highest, range?.maxVersion ?? -1)
  if (range !== undefined && version >= lowest && version >= range.minVersion) return version
  const has =
    range === undefined ? 'does not have it' : `has versions ${range.minVersion} to ${range.maxVersion}`
  throw new BrokerTooOldError(
    `the broker ${has}, and ${apiName} is needed in one of the versions ${lowest} to ${highest}: use a broker that is supported`,
  )
}

/**
 * Sends a request. Returns the part of the answer after its correlation id. kafkajs' own code would copy the
 * request's body twice, each time into memory of up to twice the body's size.
 */
async function send<T>(
  connection: WireConnection,
  request: WireRequest<T>,
  { apiVersion, isFlexible }: { readonly apiVersion: number; readonly isFlexible: boolean },
): Promise<Buffer> {
  if (connection.sasl !== null && !connection.isAuthenticated()) await connection.authenticate()
  const { apiKey, apiName, timeoutMs } = request
  const body = request.write(apiVersion)
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly payload: Buffer }>()
  const { socket } = connection
  if (socket === null || connection.connectionStatus !== 'connected')
    throw errorOf(connection, 'the connection to the broker was closed')
  const correlationId = connection.nextCorrelationId()
  const entry = { apiKey, apiName, apiVersion, correlationId, resolve, reject }
  const head = headOf(entry, { clientId: connection.clientId, bodyBytes: body.length, isFlexible })
  connection.requestQueue.push({
    entry,
    expectResponse: true,
    requestTimeout: timeoutMs,
    sendRequest() {
      socket.cork()
      socket.write(head)
      socket.write(body)
      socket.uncork()
    },
  })
  return (await promise).payload
}

/**
 * Writes the length of a request, and the header of the request. The header has version 1, or version 2 if
 * the request is flexible. Source: the Kafka protocol, request headers.
 */
function headOf(
  { apiKey, apiVersion, correlationId }: Entry,
  {
    clientId,
    bodyBytes,
    isFlexible,
  }: { readonly clientId: string; readonly bodyBytes: number; readonly isFlexible: boolean },
): Buffer {
  const name = Buffer.from(clientId)
  // A flexible header ends with its tagged fields: a zero says that there are none.
  const head = Buffer.alloc(14 + name.length + (isFlexible ? 1 : 0))
  let at = head.writeInt32BE(head.length - 4 + bodyBytes)
  at = head.writeInt16BE(apiKey, at)
  at = head.writeInt16BE(apiVersion, at)
  at = head.writeInt32BE(correlationId, at)
  at = head.writeInt16BE(name.length, at)
  name.copy(head, at)
  return head
}

/**
 * Reports that no answer came over a connection within the time that the caller has set. It extends kafkajs'
 * class of errors. So callers that repeat a request after an error of kafkajs also repeat it after this
 * error.
 */
class NoAnswerError extends kafkajs.KafkaJSError {
  override readonly name = 'NoAnswerError'
}

/**
 * Returns true if an error means that the connection is closed or that no answer comes over it. kafkajs would
 * continue to use such a connection.
 */
function isDead(error: unknown): error is Error {
  return error instanceof Error && deadConnection.has(error.name)
}

const deadConnection: ReadonlySet<string> = new Set([
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
  'NoAnswerError',
])

/** Removes the header of an answer, which is a list of tagged fields. All brokers send an empty list. */
function behindTags(bytes: Buffer): Buffer {
  if (bytes[0] !== 0) throw new Error('the header of an answer has unknown fields')
  return bytes.subarray(1)
}
