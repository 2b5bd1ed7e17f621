import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isDeepStrictEqual } from 'node:util'

/**
 * One message that a customer's server has received. `atMs`: the times of its requests, by
 * `performance.now()`.
 */
export type Arrival = {
  body: Readonly<Record<string, unknown>>
  atMs: number[]
  /** The number of the message's requests that were answered with 2xx. */
  accepted: number
}

/** Limit on remembered messages. Without it, memory would grow without end under `--stay`. */
const remembered = 5_000
const shownFaults = 5

/**
 * The requests that one customer's server has received. The receiver checks every request, independently of
 * the server's answer.
 */
export class Receiver {
  readonly arrivals = new Map<string, Arrival>()
  /** Descriptions of the first few distinct faults in requests. */
  readonly faults: string[] = []
  /** The number of requests for each replay, by the replay's id in the header `X-Sluice-Replay`. */
  readonly replayed = new Map<string, number>()
  requests = 0
  signatures = { right: 0, wrong: 0, absent: 0 }
  /** The last answer of the server: a status such as `200`, `none`, or `-` before the first request. */
  lastAnswer = '-'
  readonly #secret: string | undefined
  readonly #headers: Readonly<Record<string, string>>

  /** `headers`: the headers that each request must have, with names in lower case. */
  constructor(secret: string | undefined, headers: Readonly<Record<string, string>>) {
    this.#secret = secret
    this.#headers = headers
  }

  /** Records a request. Returns its message, and the number of earlier requests with the same message. */
  see(headers: IncomingHttpHeaders, text: string): { arrival: Arrival; before: number } {
    this.requests++
    const body = parseObject(text)
    this.#checkSignature(headers['x-signature'], body)
    for (const [name, value] of Object.entries(this.#headers)) {
      if (headers[name] !== value) this.#note(`${name} is ${String(headers[name])} instead of ${value}`)
    }
    for (const fault of bodyFaults(body)) this.#note(fault)
    const replay = headers['x-sluice-replay']
    if (typeof replay === 'string') this.replayed.set(replay, (this.replayed.get(replay) ?? 0) + 1)

    const messageId = String(body['messageId'])
    const arrival = this.arrivals.get(messageId) ?? { body, atMs: [], accepted: 0 }
    if (!isDeepStrictEqual(arrival.body, body)) this.#note(`${messageId} came again with another body`)
    this.#remember(messageId, arrival)
    arrival.atMs.push(performance.now())
    return { arrival, before: arrival.atMs.length - 1 }
  }

  /** Records the status that the server answers to a message. */
  answered(arrival: Arrival, status: number): void {
    this.lastAnswer = String(status)
    if (status >= 200 && status < 300) arrival.accepted++
  }

  /**
   * The shortest time between two requests of the same message, in milliseconds. Infinity if every message
   * had only one request.
   */
  get soonestRepeatMs(): number {
    let soonest = Infinity
    for (const { atMs } of this.arrivals.values()) {
      for (const [index, at] of atMs.entries()) {
        if (index > 0) soonest = Math.min(soonest, at - (atMs[index - 1] ?? at))
      }
    }
    return soonest
  }

  /**
   * Checks a signature as the contract says: stringifies the parsed body, computes its HMAC-SHA1 with the
   * shared secret in hex, and compares.
   */
  #checkSignature(signature: string | string[] | undefined, body: object): void {
    if (signature === undefined) {
      this.signatures.absent++
      return
    }
    const digest = createHmac('sha1', this.#secret ?? '')
      .update(JSON.stringify(body))
      .digest('hex')
    const isRight = typeof signature === 'string' && isSame(signature, digest)
    this.signatures[isRight ? 'right' : 'wrong']++
  }

  #remember(messageId: string, arrival: Arrival): void {
    this.arrivals.set(messageId, arrival)
    if (this.arrivals.size <= remembered) return
    const [oldest] = this.arrivals.keys()
    if (oldest !== undefined) this.arrivals.delete(oldest)
  }

  #note(fault: string): void {
    if (this.faults.length < shownFaults && !this.faults.includes(fault)) this.faults.push(fault)
  }
}

/** Returns a description of each way in which a body differs from the contract's shapes. */
function bodyFaults(body: Readonly<Record<string, unknown>>): string[] {
  const { type, version, timestamp, userId, anonymousId, context } = body
  const faults: string[] = []
  if (version !== (type === 'delete' ? undefined : 1))
    faults.push(`${String(type)} has version ${String(version)}`)
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(timestamp))) faults.push('a bad timestamp')
  if (typeof userId !== 'string' && typeof anonymousId !== 'string') faults.push('a body without a user')
  if (typeof context !== 'object' || context === null) faults.push('a body without context')
  if (type === 'alias' && !('Previous ID' in body && 'User ID' in body)) {
    faults.push('an alias without "Previous ID" and "User ID"')
  }
  return faults
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object has string keys
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}
