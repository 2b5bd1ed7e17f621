import { replaceFile } from './kafkajs-file.ts'
import { announcedThrottleMs, type Throttle } from './throttle.ts'

/** A request that waits for its answer. */
export type Entry = {
  readonly apiKey: number
  readonly apiName: string
  readonly apiVersion: number
  readonly correlationId: number
  /** Called with the part of the answer after its correlation id. */
  readonly resolve: (answer: { readonly payload: Buffer }) => void
  readonly reject: (error: Error) => void
  /**
   * Called when the broker announces, in the answer to another request, that it reads nothing for `ms`
   * milliseconds. This request may have been sent already, or may still wait to be sent.
   */
  readonly onMuted?: (ms: number) => void
}

/** The queue of requests of one connection in kafkajs 2.2.4, as `mendRequestQueue` changes it. */
export type RequestQueue = {
  /**
   * The time from which the broker reads this connection again, by `performance.now`. It lies in the past
   * unless the broker throttles this client. `undefined` before the first throttle.
   */
  readonly readsFromMs?: number | undefined
  onThrottle?: ((throttle: Throttle) => void) | undefined
  /** Called with the first answer to a request that doesn't belong to a login. */
  onFirstAnswer?: (() => void) | undefined
  /** Called when a request had no answer in time. The requests behind it would have none either. */
  onSilence?: ((apiName: string) => void) | undefined
  /**
   * The time within which a broker has to answer the requests that come before and in a login, in
   * milliseconds. `undefined`: the same time as for other requests.
   */
  greetingTimeoutMs?: number | undefined
  push(request: {
    readonly entry: Entry
    readonly expectResponse: boolean
    readonly requestTimeout: number | undefined
    readonly sendRequest: () => void
  }): void
  /**
   * Removes a request that wasn't sent yet. Returns false if it was sent, so that it may still be executed.
   */
  withdraw(entry: Entry): boolean
  waitForPendingRequests(): Promise<void>
  destroy(): void
}

/** A request in the queue. `sentAt` is in epoch milliseconds, or null before the request was sent. */
type Queued = {
  readonly entry: Entry
  sentAt: number | null
  requestTimeout: number
  timeoutHandler: () => void
}

/** The parts of kafkajs' class that are changed or used here. */
type Internals = {
  readonly broker: string
  readonly clientId: string
  readonly pending: Queued[]
  readonly inflight: Map<number, Queued>
  throttleCheckTimeoutId: NodeJS.Timeout | null
  readsFromMs?: number
  /** Until this time, by `performance.now`, only one request is in flight. */
  oneAtATimeUntilMs?: number
  onThrottle?: (throttle: Throttle) => void
  onFirstAnswer?: (() => void) | undefined
  onSilence?: (apiName: string) => void
  greetingTimeoutMs?: number
  withdraw(entry: Entry): boolean
  canSendSocketRequestImmediately(): boolean
  scheduleCheckPendingRequests(): void
  checkPendingRequests(): void
  maybeThrottle(ms: number): void
  createSocketRequest(pushed: unknown): Queued
  fulfillRequest(answer: {
    readonly correlationId: number
    readonly payload: Buffer
    readonly size: number
  }): void
}

/** The API keys of the requests before and in a login: SaslHandshake, ApiVersions, SaslAuthenticate. */
const greetings: ReadonlySet<number> = new Set([17, 18, 36])

/**
 * For how long a connection has only one request in flight after a throttle has ended, in milliseconds. A
 * request that is sent before the answer to the previous one would often be stuck in front of a broker that
 * has just stopped reading. Nobody could take it back any more.
 */
const oneAtATimeMs = 30_000

/**
 * Changes kafkajs' queue of requests. Call this before making the first client. The changes are:
 *
 * - A connection polls its queue only while a request waits for the end of a throttle. Without this change,
 *   each connection polls its queue a thousand times a second, forever, from its first answer on. Node then
 *   also warns of a timer with a negative time (minus 57 years).
 * - A throttle is honoured whoever wrote the request (KIP-219). kafkajs honours only throttles of its own
 *   requests, and sends the next request before it has looked at the answer.
 * - The time limit of a request that was sent begins when the broker reads the connection again. kafkajs
 *   would take the wait that the broker has announced for silence.
 * - A throttle doesn't depend on the wall clock.
 * - The requests before and in a login may have a shorter time limit.
 * - After a request without an answer, nothing more is sent if `onSilence` ends the connection. kafkajs would
 *   send the next request.
 */
export function mendRequestQueue(): void {
  replaceFile<{ readonly prototype: Internals }>('kafkajs/src/network/requestQueue/index.js', (original) => {
    const { prototype } = original
    // oxlint-disable-next-line typescript/unbound-method -- called below with a `this`
    const { fulfillRequest, createSocketRequest, canSendSocketRequestImmediately } = prototype
    prototype.canSendSocketRequestImmediately = function canSend() {
      const nowMs = performance.now()
      if (nowMs < (this.readsFromMs ?? 0)) return false
      if (this.inflight.size > 0 && nowMs < (this.oneAtATimeUntilMs ?? 0)) return false
      return canSendSocketRequestImmediately.call(this)
    }
    // oxlint-disable-next-line unicorn/consistent-function-scoping -- it is a method
    prototype.scheduleCheckPendingRequests = function schedule() {
      const waitMs = (this.readsFromMs ?? 0) - performance.now()
      // If the connection isn't throttled, the next answer makes room for the next request.
      if (this.pending.length === 0 || waitMs <= 0 || this.throttleCheckTimeoutId !== null) return
      this.throttleCheckTimeoutId = setTimeout(() => {
        this.throttleCheckTimeoutId = null
        this.checkPendingRequests()
      }, Math.ceil(waitMs))
    }
    prototype.fulfillRequest = function fulfill(answer) {
      const request = this.inflight.get(answer.correlationId)
      if (request !== undefined) {
        const ms = announcedThrottleMs(request.entry, answer.payload)
        if (ms > 0) mute(this, request, ms)
        if (this.onFirstAnswer !== undefined && !greetings.has(request.entry.apiKey)) {
          this.onFirstAnswer()
          this.onFirstAnswer = undefined
        }
      }
      fulfillRequest.call(this, answer)
    }
    // oxlint-disable-next-line unicorn/consistent-function-scoping -- it is a method
    prototype.maybeThrottle = function ignore() {
      // `fulfillRequest` has noted the throttle already.
    }
    prototype.createSocketRequest = function create(pushed) {
      const request = createSocketRequest.call(this, pushed)
      if (greetings.has(request.entry.apiKey))
        request.requestTimeout = Math.min(request.requestTimeout, this.greetingTimeoutMs ?? Infinity)
      const { timeoutHandler } = request
      request.timeoutHandler = () => {
        this.inflight.delete(request.entry.correlationId)
        this.onSilence?.(request.entry.apiName)
        timeoutHandler()
      }
      return request
    }
    prototype.withdraw = withdraw
    return original
  })
}

function withdraw(this: Internals, entry: Entry): boolean {
  const index = this.pending.findIndex((request) => request.entry === entry)
  if (index >= 0) this.pending.splice(index, 1)
  return index >= 0
}

/** Notes that the broker reads nothing for `ms` milliseconds after its answer to the request `answered`. */
function mute(queue: Internals, answered: Queued, ms: number): void {
  const fromMs = performance.now() + ms
  queue.readsFromMs = Math.max(queue.readsFromMs ?? 0, fromMs)
  queue.oneAtATimeUntilMs = queue.readsFromMs + oneAtATimeMs
  queue.onThrottle?.({ broker: queue.broker, clientId: queue.clientId, apiKey: answered.entry.apiKey, ms })
  for (const request of [...queue.inflight.values(), ...queue.pending]) {
    if (request === answered) continue
    if (request.sentAt !== null) request.sentAt = Math.max(request.sentAt, Date.now() + ms)
    request.entry.onMuted?.(ms)
  }
}
