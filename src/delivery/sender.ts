import { type Dispatcher, Pool } from 'undici'
import type { AddressPolicy } from './address-policy.ts'
import { createConnector } from './connector.ts'
import { createDeadlines, type Deadline, type Deadlines, type Expiring } from './deadlines.ts'
import { outcomeOfFailure } from './failure.ts'
import type { Outcome } from './outcome.ts'
import { parseRetryAfter } from './retry-after.ts'

/** Where a request goes, made once for a hook. */
export type Target = {
  /** `https://example.com:8443` */
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Name, value, name, value: all headers but the signature. */
  readonly headers: string[]
  /** Most requests in flight at once: the size of its pool. */
  readonly connections: number
}

/** Who hears what became of a request: `answered` once, then `released` once. */
export type Exchange = {
  /** The outcome is known: the response head is complete, the request failed, or its time is up. */
  answered(outcome: Outcome): void
  /** The connection slot is free again: the response's body has been thrown away, or the socket was closed. */
  released(): void
}

export type Sender = {
  /**
   * Posts `body`. The caller sees to it that no more than `target.connections` requests are in flight, so
   * that the deadline, which runs from now, covers the connection and the answer and no queue.
   */
  post(target: Target, body: Uint8Array, signature: string | undefined, exchange: Exchange): void
  /** Waits for nothing: sockets are closed at once. */
  close(): Promise<void>
}

export type SenderOptions = {
  policy: AddressPolicy
  /** From the start of the connection to the complete response head. */
  timeoutMs: number
  /** How long an idle connection is kept. */
  poolIdleMs: number
}

/** A response body is thrown away; one that is longer, or slower than the deadline, costs its sender the connection. */
const maxResponseBytes = 64 * 1024

/**
 * How much longer than the deadline undici may go on connecting. Its timer counts in half seconds and may be
 * early; the deadline is ours alone, and this one only frees the slot.
 */
const connectSlackMs = 500

/**
 * How long a pool is kept that has no connections: a destination that gets a message now and then needn't have one made each
 * time, which costs more than the message.
 */
const poolKeptMs = 60_000

type PoolEntry = { pool: Pool; inFlight: number; idleSinceMs: number }

export function createSender({ policy, timeoutMs, poolIdleMs }: SenderOptions): Sender {
  const pools = new Map<Target, PoolEntry>()
  const deadlines = createDeadlines({ timeoutMs })
  const connect = createConnector({ policy, timeoutMs: timeoutMs + connectSlackMs })
  const sweep = setInterval(closeIdlePools, poolKeptMs / 4)
  sweep.unref()

  function poolOf(target: Target): PoolEntry {
    let entry = pools.get(target)
    if (entry === undefined) {
      const pool = new Pool(target.origin, {
        connect,
        connections: target.connections,
        pipelining: 1,
        allowH2: false,
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: poolIdleMs,
        keepAliveMaxTimeout: poolIdleMs,
      })
      entry = { pool, inFlight: 0, idleSinceMs: 0 }
      pools.set(target, entry)
    }
    return entry
  }

  function closeIdlePools(): void {
    const nowMs = performance.now()
    for (const [target, { pool, inFlight, idleSinceMs }] of pools) {
      if (inFlight > 0 || nowMs - idleSinceMs < poolIdleMs + poolKeptMs) continue
      pools.delete(target)
      void pool.destroy()
    }
  }

  return {
    post(target, body, signature, exchange) {
      const entry = poolOf(target)
      entry.inFlight++
      const headers = signature === undefined ? target.headers : [...target.headers, 'X-Signature', signature]
      const handler = new ExchangeHandler(exchange, entry, deadlines)
      entry.pool.dispatch({ path: target.path, method: 'POST', headers, body }, handler)
    },
    async close() {
      clearInterval(sweep)
      deadlines.stop()
      const open = [...pools.values()]
      pools.clear()
      await Promise.all(open.map(({ pool }) => pool.destroy()))
    },
  }
}

/** One request on its way through undici. Reports the outcome once and the free slot once, whatever happens. */
class ExchangeHandler implements Dispatcher.DispatchHandler, Expiring {
  readonly #exchange: Exchange
  readonly #entry: PoolEntry
  readonly #deadline: Deadline
  #controller: Dispatcher.DispatchController | undefined
  #isAnswered = false
  #isReleased = false
  #isTimeUp = false
  #bytes = 0

  constructor(exchange: Exchange, entry: PoolEntry, deadlines: Deadlines) {
    this.#exchange = exchange
    this.#entry = entry
    this.#deadline = deadlines.add(this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // The connection came up after the deadline: nothing may be sent on it any more.
    if (this.#isTimeUp) controller.abort(timeIsUp)
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // 1xx answers are only announcements; the deadline goes on.
    if (status < 200) return
    const retryAfter = headers['retry-after']
    if (retryAfter === undefined) {
      this.#answer({ kind: 'answer', status })
      return
    }
    const retryAfterMs = parseRetryAfter([retryAfter].flat()[0], Date.now())
    this.#answer(
      retryAfterMs === undefined ? { kind: 'answer', status } : { kind: 'answer', status, retryAfterMs },
    )
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > maxResponseBytes) controller.abort(bodyTooLong)
  }

  onResponseEnd(): void {
    this.#release()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#answer(outcomeOfFailure(error))
    this.#release()
  }

  /** The head didn't come in time, or the body after it. */
  expire(): void {
    this.#isTimeUp = true
    this.#answer({ kind: 'timeout' })
    this.#controller?.abort(timeIsUp)
  }

  #answer(outcome: Outcome): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.#exchange.answered(outcome)
  }

  #release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#deadline.cancel()
    this.#entry.inFlight--
    if (this.#entry.inFlight === 0) this.#entry.idleSinceMs = performance.now()
    this.#exchange.released()
  }
}

const timeIsUp = new Error('the deadline has passed')
const bodyTooLong = new Error('the response body is too long')
