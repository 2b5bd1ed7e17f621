import type { Dispatcher } from 'undici'
import type { AddressPolicy } from '../../address/policy.ts'
import type { HookTls } from '../../catalog/features/hook-tls.ts'
import {
  type Connection,
  type ConnectionOptions,
  maxHeadBytes,
  NoAnswerError,
  type RequestHandler,
} from './connection.ts'
import { type ConnectorOptions, createAddressing, createConnector } from '../connect/guarded-connector.ts'
import { type Connector, hostAddressesOf } from '../connect/host-addresses.ts'
import { type Deadline, DeadlinesByTimeout, type Deadlines, type Expiring } from './deadlines.ts'
import { rememberingDistrust } from './untrusted-certificates.ts'
import type { EgressHealth } from './egress-health.ts'
import { isLostConnection, outcomeOfFailure } from './failure.ts'
import { type HookOwner, HookPool, type PoolsShared, TurnEnd } from './hook-pool.ts'
import { OpenConnections, unlimited } from './open-connections.ts'
import { type Answer, type AnswerKeeper, KeptAnswer } from './kept-answer.ts'
import { type AnswersRead, ReadAnswer } from './read-answer.ts'
import { WholeAnswer } from './whole-answer.ts'
import type { Outcome } from '../outcomes/outcome.ts'
import type { OutboundProxy } from '../connect/proxy.ts'
import { createResolver, type NameResolver } from '../connect/resolver.ts'
import { parseRetryAfter } from '../../http/retry-after.ts'

/** The parts that all requests to a hook have in common, made once for each hook. */
export type Target = {
  /** `https://example.com:8443` */
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** The headers that all requests to the hook have, as name, value, name, value. */
  readonly headers: string[]
  /** Texts that are masked in a kept answer. The signature is masked too, although it isn't in this list. */
  readonly secrets?: readonly string[] | undefined
  /**
   * The destination of the hook, and the first of its sources. If this is absent, each host is a destination
   * and a source of its own.
   */
  readonly owner?: HookOwner
  /** The deadline of requests to the hook, in milliseconds, if it is shorter than that of all requests. */
  readonly timeoutMs?: number | undefined
  /** What connections to the hook show and trust. */
  readonly tls?: HookTls | undefined
  /**
   * If it is set, the body of each answer is kept up to this number of bytes, and nothing is masked in it.
   */
  readonly wholeAnswerBytes?: number
  /** The hook's connections. The sender that posts to the hook sets this field. */
  connections?: HookPool | undefined
}

/** What is different in a request of a target's: its method, its path with the query, and its headers. */
export type OwnRequest = {
  readonly method: 'POST' | 'PUT' | 'PATCH'
  readonly path: string
  /** They take the place of the target's headers: name, value, name, value. */
  readonly headers: string[]
}

/** The receiver of a request's result. `answered` is called once, and then `released` is called once. */
export type Exchange = {
  /** The id of the message's user, which is masked in a kept answer. */
  readonly userId?: Buffer | null
  /** What is different in this request. */
  readonly own?: OwnRequest | undefined
  /** The ids of the users, if the request has several messages. */
  readonly userIds?: readonly (Buffer | null)[] | undefined
  /** Says of which answers the whole body is read, and up to how many bytes. By default, of none. */
  readonly reads?: AnswersRead | undefined
  /**
   * Called when the outcome is known: the answer has come, the request failed, or its time is up.
   * `mayHaveArrived`: true if part of the request was written on a connection that brought no answer.
   */
  answered(outcome: Outcome, mayHaveArrived: boolean): void
  /**
   * Called when the place of the request is free again, because the response's body was read to its end or
   * the socket was closed.
   */
  released(): void
}

export type Sender = {
  /**
   * Posts `body` at once. The sender has no queue, because the caller limits the number of requests in
   * flight. So no part of the request's deadline is spent in a queue. `ownHeaders` are those that only this
   * request has: name, value, name, value.
   *
   * If a reused connection is lost before a byte of an answer has come, the request is sent again at once on
   * a new connection. The deadline stays the same.
   */
  post(target: Target, body: Uint8Array, ownHeaders: readonly string[], exchange: Exchange): void
  /** Closes all sockets at once, without waiting for anything. */
  close(): Promise<void>
}

export type SenderOptions = {
  policy: AddressPolicy
  /** The resolver of names. The default resolver asks the system's DNS servers. */
  resolver?: NameResolver
  proxy?: OutboundProxy | undefined
  /**
   * The time from the start of a request to the complete response head, in milliseconds. A request that takes
   * longer fails.
   */
  timeoutMs: number
  /** Time that an idle connection is kept. */
  poolIdleMs: number
  /** The age up to which a connection gets requests, in milliseconds (see `ConnectionOptions`). */
  maxAgeMs?: number
  /** The limits on open connections. The default has no limits. */
  open?: OpenConnections
  /** The observer of all outcomes. By default, nobody observes them. */
  egress?: Pick<EgressHealth, 'take'>
  /**
   * How many bytes of an unsuccessful answer's body are kept. The default, 0, keeps none. The outcome is
   * reported when these bytes have come, when the body ends, or at the deadline.
   */
  keptAnswerBytes?: number
}

/**
 * How many milliseconds after the deadline undici stops connecting. The deadline itself has a timer of its
 * own. undici's timer only frees the place of the request, and needs this slack because it counts in half
 * seconds and may fire early.
 */
const connectSlackMs = 500

/**
 * If a server announces when it closes an idle connection (`Keep-Alive: timeout=5`), the connection is closed
 * this number of milliseconds earlier, because the last request still has to reach the server in time. With
 * undici's default of 2 s, no connection would be kept if a server announces 1 s or 2 s.
 */
const announcedSlackMs = 500

/**
 * Time in milliseconds that a pool is kept after its idle connections have closed. So a hook that gets a
 * message only now and then doesn't need a new pool for each message, which would cost more than the message.
 */
const poolKeptMs = 60_000

const unobserved: Pick<EgressHealth, 'take'> = { take: () => undefined }

export function createSender({
  policy,
  resolver = createResolver(),
  proxy,
  timeoutMs,
  poolIdleMs,
  maxAgeMs,
  open = new OpenConnections(unlimited),
  egress = unobserved,
  keptAnswerBytes = 0,
}: SenderOptions): Sender {
  const pools = new Set<HookPool>()
  const ofTimeout = new DeadlinesByTimeout(timeoutMs)
  const shared: PoolsShared = { turnEnd: new TurnEnd(), open, egress, isProxied: proxy !== undefined }
  const ways = { policy, resolver, proxy, timeoutMs: timeoutMs + connectSlackMs }
  const connect = createConnector(ways)
  const options = connectionOptions(connect, poolIdleMs, maxAgeMs)
  const addressing = createAddressing(policy, resolver)
  const sweep = setInterval(closeIdlePools, poolKeptMs / 4).unref()

  function poolOf(target: Target): HookPool {
    if (target.connections?.isOpen === true) return target.connections
    const own: ConnectionOptions = {
      ...options,
      connect: connectorOf(target, ways, connect),
      addresses: proxy === undefined ? hostAddressesOf(target.origin, addressing) : undefined,
    }
    const pool = new HookPool(target.origin, own, shared, target.owner)
    target.connections = pool
    pools.add(pool)
    return pool
  }

  function closeIdlePools(): void {
    const beforeMs = performance.now() - poolIdleMs - poolKeptMs
    for (const pool of pools) {
      pool.trim()
      if (!pool.isIdleSince(beforeMs)) continue
      pools.delete(pool)
      void pool.destroy()
    }
  }

  return {
    post(target, body, ownHeaders, exchange) {
      const request = requestOf(target, body, ownHeaders, exchange.own)
      const pool = poolOf(target)
      const kept = keptOf(keptAnswerBytes, target, ownHeaders, exchange)
      const deadlines = ofTimeout.of(target.timeoutMs)
      pool.send(new ExchangeHandler({ exchange, request, pool, deadlines, kept }))
    },
    async close() {
      clearInterval(sweep)
      ofTimeout.stop()
      await Promise.all([...pools].map((pool) => pool.destroy()))
      pools.clear()
    },
  }
}

function requestOf(
  target: Target,
  body: Uint8Array,
  ownHeaders: readonly string[],
  own: OwnRequest | undefined,
): Dispatcher.DispatchOptions {
  const { path, headers: base } = own ?? target
  const headers = ownHeaders.length === 0 ? base : base.concat(ownHeaders)
  return { path, method: own === undefined ? 'POST' : own.method, headers, body }
}

/** Returns the connector of a hook: `shared`, unless the hook's connections show or trust something else. */
function connectorOf({ origin, tls }: Target, ways: ConnectorOptions, shared: Connector): Connector {
  const connect = tls === undefined ? shared : createConnector({ ...ways, tls })
  return origin.startsWith('https:') ? rememberingDistrust(connect) : connect
}

function connectionOptions(
  connect: ConnectionOptions['connect'],
  poolIdleMs: number,
  maxAgeMs: number | undefined,
): ConnectionOptions {
  return {
    connect,
    ...(maxAgeMs !== undefined && { maxAgeMs }),
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: maxHeadBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: poolIdleMs,
    keepAliveMaxTimeout: poolIdleMs,
    keepAliveTimeoutThreshold: announcedSlackMs,
  }
}

function keptOf(
  bytes: number,
  { secrets = noSecrets, wholeAnswerBytes }: Target,
  headers: readonly string[],
  { userId = null, userIds, reads }: Exchange,
): AnswerKeeper | ReadAnswer | undefined {
  if (wholeAnswerBytes !== undefined) return new WholeAnswer(wholeAnswerBytes)
  const kept = bytes === 0 ? undefined : new KeptAnswer(bytes, secrets, { headers, userId, userIds })
  return reads === undefined ? kept : new ReadAnswer(reads, kept)
}

const noSecrets: readonly string[] = []

type ExchangeParts = {
  readonly exchange: Exchange
  readonly request: Dispatcher.DispatchOptions
  readonly pool: HookPool
  readonly deadlines: Deadlines
  readonly kept: AnswerKeeper | ReadAnswer | undefined
}

/**
 * A request on its way through undici. If a stale connection has lost the request, the same handler is used
 * to send the request again. Calls `answered` exactly once and `released` exactly once.
 */
class ExchangeHandler implements RequestHandler, Expiring {
  readonly request: Dispatcher.DispatchOptions
  readonly #exchange: Exchange
  readonly #pool: HookPool
  readonly #deadline: Deadline
  #connection: Connection | undefined
  /** Set by undici when it is about to send the request. */
  #controller: Dispatcher.DispatchController | undefined
  #isAnswered = false
  #isReleased = false
  #isTimeUp = false
  /** True if a stale connection was lost after part of the request may have been written to it. */
  #wasLost = false
  /** The kept part of the answer; `undefined` if nothing of the answer is to be kept. */
  readonly #kept: AnswerKeeper | ReadAnswer | undefined

  constructor({ exchange, request, pool, deadlines, kept }: ExchangeParts) {
    this.#kept = kept
    this.#exchange = exchange
    this.request = request
    this.#pool = pool
    this.#deadline = deadlines.add(this)
  }

  assigned(connection: Connection): void {
    this.#connection = connection
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#connection?.begin()
    // If the connection opened after the deadline, nothing may be sent on it.
    if (this.#isTimeUp) controller.abort(timeIsUp)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    dropRawHeaders(controller)
    if (status < 200) {
      // After a 1xx answer, the final answer still has to come. undici's parser fails on a status below 100,
      // and on 101, which would switch to another protocol.
      if (status < 102) controller.abort(noSuchStatus)
      return
    }
    this.#connection?.headCame()
    const retryAfterMs = retryAfterOf(headers)
    const answer: Answer =
      retryAfterMs === undefined ? { kind: 'answer', status } : { kind: 'answer', status, retryAfterMs }
    const isAwaited = this.#kept?.begin(answer, headers['content-encoding'], firstOf(headers['content-type']))
    if (isAwaited !== true) this.#answer(answer)
  }

  /** Discards the body, except for the part that is kept. */
  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#kept?.take(chunk) === true) this.#answerKept()
  }

  onResponseEnd(): void {
    this.#answerKept()
    this.#release('leave')
  }

  /**
   * `controller` is `null` if undici refused the request as invalid, and `undefined` if the request was not
   * sent.
   */
  onResponseError(controller: Dispatcher.DispatchController | null | undefined, error: Error): void {
    const stale = controller === null ? undefined : this.#staleConnection(error)
    if (stale !== undefined) {
      this.#wasLost ||= this.#controller !== undefined
      this.#controller = undefined
      this.#pool.resend(this, stale)
      return
    }
    this.#answerKept()
    const outcome = outcomeOfFailure(error)
    if (outcome.kind === 'files') this.#pool.giveUpIdle()
    this.#answer(outcome)
    this.#release('fail')
  }

  /** Called when the deadline of the request passes before its answer is complete. */
  expire(): void {
    this.#isTimeUp = true
    this.#answerKept()
    this.#answer({ kind: 'timeout' })
    this.#controller?.abort(timeIsUp)
  }

  /**
   * If the request was lost on a stale connection, returns this connection. A stale connection is a reused
   * connection that the server had most likely closed while it was idle. A request can have only one stale
   * connection, because its second connection is new.
   */
  #staleConnection(error: Error): Connection | undefined {
    const connection = this.#connection
    const hasHead = this.#isAnswered || this.#kept?.hasBegun === true
    if (hasHead || !this.#pool.isOpen || connection === undefined) return undefined
    const isStale =
      this.#controller === undefined
        ? connection.wasLostUnsent
        : connection.wasLostUnheard && isLostConnection(error)
    return isStale ? connection : undefined
  }

  /**
   * Reports a kept answer with the part of its body that has come, even if the body is longer, breaks off or
   * takes too long.
   */
  #answerKept(): void {
    const answer = this.#isAnswered ? undefined : this.#kept?.outcome()
    if (answer !== undefined) this.#answer(answer)
  }

  #answer(outcome: Outcome): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    const wasSent = this.#controller !== undefined
    const isUnanswered = outcome.kind !== 'answer' && wasSent
    this.#pool.answered(outcome, wasSent ? this.#connection : undefined)
    crashIfThrown(() => this.#exchange.answered(outcome, this.#wasLost || isUnanswered))
  }

  #release(ending: 'leave' | 'fail'): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#deadline.cancel()
    if (this.#connection !== undefined) this.#pool[ending](this.#connection)
    crashIfThrown(() => this.#exchange.released())
  }
}

/**
 * Runs a callback of the caller. If the callback throws, the error becomes an uncaught exception, which ends
 * the process. Otherwise undici would catch the error and only close the connection. The caller would then go
 * on in an inconsistent state, and nobody would notice.
 */
function crashIfThrown(callback: () => void): void {
  try {
    callback()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}

/**
 * Empties the array from which `headers` were read, so that its content doesn't stay in memory. undici
 * created this array when the previous answer was complete. If that was seconds ago, the garbage collector
 * has moved the array to its old generation, which it collects only rarely.
 */
function dropRawHeaders({ rawHeaders }: Dispatcher.DispatchController): void {
  if (Array.isArray(rawHeaders)) rawHeaders.length = 0
}

type AnswerHeaders = Record<string, string | string[] | undefined>

/** Returns the wait in milliseconds that an answer asks for, or `undefined` if it asks for none. */
function retryAfterOf({ 'retry-after': retryAfter, date }: AnswerHeaders): number | undefined {
  return retryAfter === undefined
    ? undefined
    : parseRetryAfter(firstOf(retryAfter), Date.now(), firstOf(date))
}

/** Returns the value of a header, or its first value if the server sent the header more than once. */
function firstOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

const timeIsUp = new Error('the deadline has passed')
const noSuchStatus = new NoAnswerError(
  'SLUICE_ANSWER_STATUS',
  'the answer has a status that ends no exchange',
)
