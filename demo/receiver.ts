import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isDeepStrictEqual } from 'node:util'

/** One message as a customer's server saw it. Times are of `performance.now()`. */
export type Arrival = {
  body: Readonly<Record<string, unknown>>
  atMs: number[]
  /** How many of its requests were answered with 2xx. */
  accepted: number
}

/** With `--stay` the demo has no end; this many messages are remembered. */
const remembered = 5_000
const shownFaults = 5

/** What one customer's server saw: it checks every request, whatever it answers. */
export class Receiver {
  readonly arrivals = new Map<string, Arrival>()
  /** What was wrong with requests, in words; the first few. */
  readonly faults: string[] = []
  /** How many requests named each replay. */
  readonly replayed = new Map<string, number>()
  requests = 0
  signatures = { right: 0, wrong: 0, absent: 0 }
  /** The last answer that was given: `200`. */
  lastAnswer = '-'
  readonly #secret: string | undefined
  readonly #headers: Readonly<Record<string, string>>

  /** `headers`: those that must be on each request, lower case. */
  constructor(secret: string | undefined, headers: Readonly<Record<string, string>>) {
    this.#secret = secret
    this.#headers = headers
  }

  /** Takes note of a request, and gives back its message with how often it was here before. */
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

  /** Takes note of what was answered to it. */
  answered(arrival: Arrival, status: number): void {
    this.lastAnswer = String(status)
    if (status >= 200 && status < 300) arrival.accepted++
  }

  /** The shortest time between two requests of the same message, in milliseconds; Infinity without a second. */
  get soonestRepeatMs(): number {
    let soonest = Infinity
    for (const { atMs } of this.arrivals.values()) {
      for (const [index, at] of atMs.entries()) {
        if (index > 0) soonest = Math.min(soonest, at - (atMs[index - 1] ?? at))
      }
    }
    return soonest
  }

  /** As the contract says: parse the body, stringify it, HMAC-SHA1 with the shared secret, hex, compare. */
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

/** What is wrong with a body by the contract's shapes. */
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
