import kafkajs from 'kafkajs'
import { type Connection, cutOff, errorOf } from './connections.ts'
import type { Entry } from './request-queue.ts'
import { within } from '../../async/within.ts'

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
    /** The connection for all requests but fetches, and the connection for fetches. */
    readonly pool: readonly Pick<Connection, 'requestQueue'>[]
  }
}

/** The parts of a connection that requests use. */
type WireConnection = Connection & {
  readonly clientId: string
  /** Null if the connection needs no login. */
  readonly sasl: unknown
  isAuthenticated(): boolean
  authenticate(): Promise<void>
  nextCorrelationId(): number
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

export type AskOptions = {
  /**
   * The time after which the connection counts as dead, in milliseconds. It begins when the broker reads the
   * connection, so a throttle that the broker has announced doesn't count. This limit applies only if it is
   * shorter than the client's own timeout. A request that wasn't sent by then is never sent.
   */
  readonly mostMs?: number
  /**
   * True if the request may go over the connection for fetches while the broker throttles the other one for
   * long. So metadata needn't wait because a quota for writing is used up.
   */
  readonly overEither?: boolean
  /** True if the connection isn't closed when `mostMs` is over. */
  readonly leavesOpen?: boolean
  /**
   * The longest throttle for which the caller waits, in milliseconds. When the broker has announced a longer
   * one, `ask` rejects at once with a `ThrottledError`, unless the request was sent before. Default: there is
   * no limit.
   */
  readonly mostThrottleMs?: number | undefined
  /**
   * Called when the broker has announced a throttle that is longer than `mostThrottleMs` after the request
   * was sent. The broker executes the request when the throttle is over.
   */
  readonly onStuck?: ((throttleMs: number) => void) | undefined
}

/**
 * Reports that a request was not sent, and won't be sent, because the broker has announced a throttle for
 * which the caller doesn't wait.
 */
export class ThrottledError extends kafkajs.KafkaJSError {
  override readonly name = 'ThrottledError'
  readonly throttleMs: number

  constructor(throttleMs: number) {
    super(
      `the broker slows this client down for ${(throttleMs / 1_000).toFixed(1)} s, because a quota is used up`,
    )
    this.throttleMs = throttleMs
  }
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
 * Sends nothing while the broker throttles the connection (KIP-219).
 *
 * @param broker a broker that a cluster's `findBroker` returned
 */
export async function ask<T>(
  broker: WireBroker,
  request: WireRequest<T>,
  options: AskOptions = {},
): Promise<T> {
  const { apiKey, flexibleFrom = Infinity } = request
  const apiVersion = versionFor(broker, request)
  const isFlexible = apiVersion >= flexibleFrom
  const isElsewhere = options.overEither === true && isOtherSooner(broker)
  const connection = await broker.connectionPool.getConnectionByRequest({
    request: { apiKey: isElsewhere ? fetchApiKey : apiKey },
  })
  const payload = await answerOf(connection, request, { apiVersion, isFlexible }, options)
  return request.read(isFlexible ? behindTags(payload) : payload, apiVersion)
}

/**
 * Returns the time from which a broker reads the connection for all requests but fetches, by
 * `performance.now`. The time lies in the past unless the broker throttles this client.
 */
export function readsFromMs({ connectionPool: { pool } }: WireBroker): number {
  return pool[0]?.requestQueue.readsFromMs ?? -Infinity
}

/**
 * Returns true if the broker throttles the connection for all requests but fetches for longer than the one
 * for fetches, and for long. A short throttle is waited out, because an answer to a fetch may take as long.
 */
function isOtherSooner(broker: WireBroker): boolean {
  const fromMs = readsFromMs(broker)
  const otherFromMs = broker.connectionPool.pool[1]?.requestQueue.readsFromMs ?? -Infinity
  return fromMs > performance.now() + shortThrottleMs && otherFromMs < fromMs
}

const shortThrottleMs = 2_000

/** The API key by which kafkajs recognizes requests that get the connection for fetches. */
const fetchApiKey = 1

type Form = { readonly apiVersion: number; readonly isFlexible: boolean }

/** Sends a request, and returns the part of the answer after its correlation id. */
async function answerOf(
  connection: WireConnection,
  request: WireRequest<unknown>,
  form: Form,
  { mostMs, leavesOpen = false, mostThrottleMs = Infinity, onStuck }: AskOptions,
): Promise<Buffer> {
  const { apiName } = request
  const { requestQueue } = connection
  const answer = Promise.withResolvers<void>()
  // The answer isn't the result of the promise. What is left of a request may have become old while it
  // waited, and would keep the bytes of its answer until V8 marks all memory, which these bytes would bring
  // about.
  let payload: Buffer | undefined
  const resolve: Entry['resolve'] = (answered) => {
    payload = answered.payload
    answer.resolve()
  }
  let entry: Entry | undefined
  let isOver = false
  /** Sends the request no more. Returns false if it was sent already. */
  const giveUp = (): boolean => {
    isOver = true
    return entry === undefined || requestQueue.withdraw(entry)
  }
  const onMuted = (ms: number): void => {
    if (ms <= mostThrottleMs) return
    if (giveUp()) answer.reject(new ThrottledError(ms))
    else onStuck?.(ms)
  }
  const readsFrom = (): number => requestQueue.readsFromMs ?? -Infinity
  try {
    onMuted(readsFrom() - performance.now())
    const sent = logIn(connection).then(() => {
      if (!isOver) entry = send(connection, request, form, { resolve, reject: answer.reject, onMuted })
    })
    sent.catch(answer.reject)
    if (mostMs === undefined || (await within(mostMs, answer.promise, readsFrom))) {
      await answer.promise
      const taken = payload
      payload = undefined
      if (taken !== undefined) return taken
    }
    if (giveUp()) throw new NotSentError(`${apiName} could not be sent to the broker within ${mostMs} ms`)
    throw new NoAnswerError(`the broker did not answer ${apiName} within ${mostMs} ms`)
  } catch (error) {
    if (isDead(error) && !(error instanceof NoAnswerError && leavesOpen))
      cutOff(connection, `an earlier request had no answer: ${error.message}`)
    throw error
  }
}

/** Logs in to the broker, if this is necessary. */
async function logIn(connection: WireConnection): Promise<void> {
  if (connection.sasl === null || connection.isAuthenticated()) return
  try {
    await connection.authenticate()
  } catch (error) {
    // A connection on which a login has failed half-way can't be used for another login.
    cutOff(connection, 'a login had failed')
    throw error
  }
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
 * Sends a request, or queues it until the broker reads the connection again. kafkajs' own code would copy the
 * request's body twice, each time into memory of up to twice the body's size.
 */
function send(
  connection: WireConnection,
  request: WireRequest<unknown>,
  { apiVersion, isFlexible }: Form,
  { resolve, reject, onMuted }: Required<Pick<Entry, 'resolve' | 'reject' | 'onMuted'>>,
): Entry {
  const { apiKey, apiName, timeoutMs } = request
  const body = request.write(apiVersion)
  const { socket } = connection
  if (socket === null || connection.connectionStatus !== 'connected')
    throw errorOf(connection, 'the connection to the broker was closed')
  const correlationId = connection.nextCorrelationId()
  const entry = { apiKey, apiName, apiVersion, correlationId, resolve, reject, onMuted }
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
  return entry
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

/** Reports that a request could not be sent in time, and won't be sent any more. */
class NotSentError extends kafkajs.KafkaJSError {
  override readonly name = 'NotSentError'
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
