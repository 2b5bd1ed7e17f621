import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { Exchange } from '../../../src/delivery/send/sender.ts'

/**
 * How a customer acts on a request without a good answer: not at all, at once, or late. Either the customer
 * gives no good answer, or its good answer is lost.
 */
export type Effect = 'nothing' | 'at once' | 'late'

/**
 * A value that is sent. `value` is the number of its change. It is negative for a `delete`. `origin` is the first record of its delivery.
 */
type Sent = { readonly user: string; readonly value: number; readonly origin: string }

type Late = Sent & { readonly to: string }

type Request = Late & {
  /** The owner that sent the request. Only its identity counts here. */
  readonly owner: object
  readonly exchange: Exchange
  /**
   * True if the request has no effect any more, because its effect happened before the last retry of its
   * delivery.
   */
  isSpent: boolean
  /** What is sent in the same request, this value included. */
  together: readonly Request[]
}

/**
 * The customers, and the requests that are under way to them. A customer may act on a request late, and
 * remembers the last value that it applied. Late effects follow these rules:
 *
 * - The late effect of an attempt happens before the last retry of its delivery. That is before this retry
 *   succeeds, or is found to be superseded.
 * - If a newer delivery replaces a delivery, the late effects of the older delivery become those of the newer
 *   one.
 * - A delivery may have succeeded after one of its requests had been lost. The late effect of the lost
 *   request has happened when the rung is over.
 */
export class SimulatedCustomers {
  requests: Request[] = []
  late: Late[] = []
  readonly faults: string[] = []
  /** The last value that each customer applied. The keys come from `stateKeyOf`. */
  readonly applied = new Map<string, number>()
  /** The kinds of events that have happened. */
  readonly #seen: Set<string>

  constructor(seen: Set<string>) {
    this.#seen = seen
  }

  /** Takes a request from an owner. */
  post(owner: object, to: string, body: Uint8Array, exchange: Exchange): void {
    const text = Buffer.from(body).toString()
    const bodies = text.endsWith('\n') ? text.trimEnd().split('\n') : [text]
    if (bodies.length > 1) this.#seen.add('several were sent together')
    const together: Request[] = []
    for (const one of bodies) {
      const sent = sentOf(Buffer.from(one))
      const isBusy = [...this.requests, ...together].some(
        ({ owner: by, to: where, user, value }) =>
          by === owner && where === to && user === sent.user && value > 0 && sent.value > 0,
      )
      if (isBusy) this.faults.push(`two under way: ${stateKeyOf(to, sent.user)}`)
      together.push({ ...sent, owner, to, exchange, isSpent: false, together })
    }
    this.requests.push(...together)
  }

  answer(request: Request, outcome: Outcome, mayHaveArrived: boolean, effect: Effect): void {
    for (const one of request.together) {
      this.requests.splice(this.requests.indexOf(one), 1)
      if (!one.isSpent) this.#take(one, outcome, effect)
    }
    request.exchange.answered(outcome, mayHaveArrived)
    request.exchange.released()
  }

  #take(request: Request, outcome: Outcome, effect: Effect): void {
    if (outcome.kind === 'answer' && outcome.status === 200) {
      this.landAllOf(request.origin, request.to)
      this.#apply(request)
      // The late effect belongs to the request that was lost.
      if (effect === 'late') this.late.push(request)
    } else this.#have(request, effect)
  }

  /** Applies one of the late effects, of any customer. */
  land(pick: number): void {
    const [landing] = this.late.splice(pick % this.late.length, 1)
    if (landing === undefined) return
    this.#seen.add('an effect came late')
    this.#apply(landing)
  }

  /**
   * Applies the late effects of a delivery, and those of its requests at all owners. None of them can come
   * later than now.
   */
  landAllOf(origin: string, to: string): void {
    const isIts = (one: Late): boolean => one.origin === origin && one.to === to
    for (const one of this.late.filter(isIts)) this.#apply(one)
    this.late = this.late.filter((one) => !isIts(one))
    for (const request of this.requests) {
      if (!isIts(request) || request.isSpent) continue
      this.#apply(request)
      request.isSpent = true
    }
  }

  /** Ends all requests of an owner whose process is gone, with these effects. */
  abandon(owner: object, effects: readonly Effect[]): void {
    const requests = this.requests.filter((one) => one.owner === owner)
    requests.forEach((request, index) => {
      if (!request.isSpent) this.#have(request, effects[index % effects.length] ?? 'nothing')
    })
    this.requests = this.requests.filter((one) => one.owner !== owner)
  }

  /** Notes that the delivery whose first record is `heir` replaces another delivery at an owner. */
  passOn(owner: object, origin: string, to: string, heir: string): void {
    const isIts = (one: Late): boolean => one.origin === origin && one.to === to
    this.late = this.late.map((one) => (isIts(one) ? { ...one, origin: heir } : one))
    this.requests = this.requests.map((one) =>
      isIts(one) && one.owner !== owner ? Object.assign(one, { origin: heir }) : one,
    )
  }

  #have(sent: Late, effect: Effect): void {
    if (effect === 'at once') this.#apply(sent)
    else if (effect === 'late') this.late.push(sent)
  }

  #apply({ to, user, value }: Late): void {
    this.applied.set(stateKeyOf(to, user), value)
  }
}

export function stateKeyOf(to: string, user: string): string {
  return `${to} ${user}`
}

export function bodyOf(sent: Sent): Buffer {
  return Buffer.from(JSON.stringify(sent))
}

export function sentOf(body: Uint8Array): Sent {
  const sent: unknown = JSON.parse(Buffer.from(body).toString())
  if (!isSent(sent)) throw new Error('this was not sent here')
  return sent
}

function isSent(value: unknown): value is Sent {
  return (
    typeof value === 'object' && value !== null && 'user' in value && 'value' in value && 'origin' in value
  )
}
