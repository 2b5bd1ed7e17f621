import type { Dispatcher } from 'undici'
import type { AddressPolicy } from '../address/policy.ts'
import {
  type Connection,
  type ConnectionOptions,
  maxHeadBytes,
  NoAnswerError,
  type RequestHandler,
} from './connection.ts'
import { createConnector } from './connector.ts'
import { createDeadlines, type Deadline, type Deadlines, type Expiring } from './deadlines.ts'
import { rememberingDistrust } from './distrust.ts'
import { isLostConnection, outcomeOfFailure } from './failure.ts'
import { HookPool, TurnEnd } from './hook-pool.ts'
import { type Answer, KeptAnswer } from './kept-answer.ts'
import type { Outcome } from './outcome.ts'
import type { OutboundProxy } from './proxy.ts'
import { createResolver, type NameResolver } from './resolver.ts'
import { parseRetryAfter } from './retry-after.ts'

/** Where a request goes, made once for a hook. */
export type Target = {
  /** `https://example.com:8443` */
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Name, value, name, value: all headers but those of the signature. */
  readonly headers: string[]
  /** What isn't kept of an answer, beside the signature. */
  readonly secrets?: readonly string[] | undefined
  /** Set by the sender that posts to it. */
  connections?: HookPool | undefined
}

/** Who hears what became of a request: `answered` once, then `released` once. */
export type Exchange = {
  /**
   * The outcome is known: the response head is complete, the request failed, or its time is up.
   * `mayHaveArrived`: some of the request was written that this outcome is no answer to.
   */
  answered(outcome: Outcome, mayHaveArrived: boolean): void
  /**
   * The connection slot is free again: the response's body has been thrown away, or the socket was closed.
   */
  released(): void
}

export type Sender = {
  /**
   * Posts `body` at once: how many requests are in flight is for the caller to limit, so that the deadline,
   * which runs from now, covers the connection and the answer and no queue. `signatureHeaders`: name, value,
   * name, value; empty for a request that isn't signed.
   *
   * A request that a connection lost which had been kept from earlier ones, before a byte of an answer came,
   * is made once more at once, by a new connection and within the same deadline.
   */
  post(target: Target, body: Uint8Array, signatureHeaders: readonly string[], exchange: Exchange): void
  /** Waits for nothing: sockets are closed at once. */
  close(): Promise<void>
}

export type SenderOptions = {
  policy: AddressPolicy
  /** One that asks the servers of the system, if none is given. */
  resolver?: NameResolver
  /** All requests go through it, if there is one. */
  proxy?: OutboundProxy | undefined
  /** From the start of the connection to the complete response head. */
  timeoutMs: number
  /** How long an idle connection is kept. */
  poolIdleMs: number
  /**
   * So many bytes of an answer that is no success are kept: its outcome comes with them, at the latest at the
   * deadline. 0, as by default: none.
   */
  keptAnswerBytes?: number
}

/**
 * How much longer than the deadline undici may go on connecting. Its timer counts in half seconds and may be
 * early; the deadline is ours alone, and this one only frees the slot.
 */
const connectSlackMs = 500

/**
 * How long a pool is kept that has no connections: a destination that gets a message now and then needn't
 * have one made each time, which costs more than the message.
 */
const poolKeptMs = 60_000

export function createSender({
  policy,
  resolver = createResolver(),
  proxy,
  timeoutMs,
  poolIdleMs,
  keptAnswerBytes = 0,
}: SenderOptions): Sender {
  const pools = new Set<HookPool>()
  const deadlines = createDeadlines({ timeoutMs })
  const turnEnd = new TurnEnd()
  const options: ConnectionOptions = {
    connect: createConnector({ policy, resolver, proxy, timeoutMs: timeoutMs + connectSlackMs }),
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: maxHeadBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: poolIdleMs,
    keepAliveMaxTimeout: poolIdleMs,
  }
  const sweep = setInterval(closeIdlePools, poolKeptMs / 4).unref()

  function poolOf(target: Target): HookPool {
    if (target.connections?.isOpen === true) return target.connections
    const isSecure = target.origin.startsWith('https:')
    const own = isSecure ? { ...options, connect: rememberingDistrust(options.connect) } : options
    const pool = new HookPool(target.origin, own, turnEnd)
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
    post(target, body, signatureHeaders, exchange) {
      const headers = signatureHeaders.length === 0 ? target.headers : target.headers.concat(signatureHeaders)
      const request: Dispatcher.DispatchOptions = { path: target.path, method: 'POST', headers, body }
      const pool = poolOf(target)
      const kept = keptOf(keptAnswerBytes, target, signatureHeaders)
      pool.send(new ExchangeHandler({ exchange, request, pool, deadlines, kept }))
    },
    async close() {
      clearInterval(sweep)
      deadlines.stop()
      const open = [...pools]
      pools.clear()
      await Promise.all(open.map((pool) => pool.destroy()))
    },
  }
}

function keptOf(
  bytes: number,
  { secrets = [] }: Target,
  signatureHeaders: readonly string[],
): KeptAnswer | undefined {
  if (bytes === 0) return undefined
  return new KeptAnswer(bytes, [...secrets, ...signatureHeaders.filter((_, at) => at % 2 === 1)])
}

type ExchangeParts = {
  readonly exchange: Exchange
  readonly request: Dispatcher.DispatchOptions
  readonly pool: HookPool
  readonly deadlines: Deadlines
  readonly kept: KeptAnswer | undefined
}

/**
 * One request on its way through undici, or twice on its way when a stale connection lost it. Reports the
 * outcome once and the free slot once, whatever happens.
 */
class ExchangeHandler implements RequestHandler, Expiring {
  readonly request: Dispatcher.DispatchOptions
  readonly #exchange: Exchange
  readonly #pool: HookPool
  readonly #deadline: Deadline
  #connection: Connection | undefined
  /** From when it is about to be sent. */
  #controller: Dispatcher.DispatchController | undefined
  #isAnswered = false
  #isReleased = false
  #isTimeUp = false
  /** A stale connection has lost the request after it was begun to be written. */
  #wasLost = false
  /** Absent: nothing is kept of its answer. */
  readonly #kept: KeptAnswer | undefined

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
    // The connection came up after the deadline: nothing may be sent on it any more.
    if (this.#isTimeUp) controller.abort(timeIsUp)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    dropRawHeaders(controller)
    if (status < 200) {
      // 1xx answers are only announcements; the deadline goes on. 101 would leave HTTP, and undici fails in
      // the middle of its parser on that and on what is below 100.
      if (status < 102) controller.abort(noSuchStatus)
      return
    }
    this.#connection?.headCame()
    const retryAfter = headers['retry-after']
    const retryAfterMs =
      retryAfter === undefined ? undefined : parseRetryAfter([retryAfter].flat()[0], Date.now())
    const answer: Answer =
      retryAfterMs === undefined ? { kind: 'answer', status } : { kind: 'answer', status, retryAfterMs }
    if (this.#kept?.begin(answer, headers['content-encoding']) !== true) this.#answer(answer)
  }

  /** The body is thrown away, but for what is kept of it. */
  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#kept?.take(chunk) === true) this.#answerKept()
  }

  onResponseEnd(): void {
    this.#answerKept()
    this.#release('leave')
  }

  /** `controller`: null if undici refused the request itself, and undefined if it was not sent. */
  onResponseError(controller: Dispatcher.DispatchController | null | undefined, error: Error): void {
    const stale = controller === null ? undefined : this.#staleConnection(error)
    if (stale !== undefined) {
      this.#wasLost ||= this.#controller !== undefined
      this.#controller = undefined
      this.#pool.resend(this, stale)
      return
    }
    this.#answerKept()
    this.#answer(outcomeOfFailure(error))
    this.#release('fail')
  }

  /** The head didn't come in time, or the body after it. */
  expire(): void {
    this.#isTimeUp = true
    this.#answerKept()
    this.#answer({ kind: 'timeout' })
    this.#controller?.abort(timeIsUp)
  }

  /**
   * The connection that has lost the request since it was stale: most likely the server had closed it, or
   * broken it, while it was idle. There is one only once: the second connection is new.
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
   * Of an answer whose head came: with what has come of its body, whether that goes on, breaks off, or takes
   * too long.
   */
  #answerKept(): void {
    const answer = this.#isAnswered ? undefined : this.#kept?.outcome()
    if (answer !== undefined) this.#answer(answer)
  }

  #answer(outcome: Outcome): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    const isUnanswered = outcome.kind !== 'answer' && this.#controller !== undefined
    this.#exchange.answered(outcome, this.#wasLost || isUnanswered)
  }

  #release(ending: 'leave' | 'fail'): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#deadline.cancel()
    if (this.#connection !== undefined) this.#pool[ending](this.#connection)
    this.#exchange.released()
  }
}

/**
 * Empties the array from which `headers` were read. undici makes it when the answer before is complete; where
 * that was seconds ago, the garbage collector has taken it for old, and would keep all that is put into it
 * until it next looks at what is old.
 */
function dropRawHeaders({ rawHeaders }: Dispatcher.DispatchController): void {
  if (Array.isArray(rawHeaders)) rawHeaders.length = 0
}

const timeIsUp = new Error('the deadline has passed')
const noSuchStatus = new NoAnswerError(
  'SLUICE_ANSWER_STATUS',
  'the answer has a status that ends no exchange',
)
