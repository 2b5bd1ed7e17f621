import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { Exchange } from '../../../src/delivery/send/sender.ts'
import type { Judgement } from '../../../src/message/judgement.ts'
import type { Effect } from '../pipeline/simulated-customers.ts'

/** A value of a user's property, on its way to a customer. */
type Sent = {
  readonly to: string
  readonly userId: string
  readonly spaceId: string
  readonly value: string
  /**
   * The time at which the first record of the delivery was appended, in epoch milliseconds. No two records
   * have the same time.
   */
  readonly originMs: number
}

type Request = Sent & {
  /** The program that sent the request. Only its identity counts here. */
  readonly program: object
  readonly exchange: Exchange
  /**
   * True if the request has no effect any more, because its effect happened before the last retry of its
   * delivery.
   */
  isSpent: boolean
}

/**
 * The customers, the requests that are under way to them, and everything that is known about the deliveries.
 * Each customer has one hook, and may act on a request late.
 *
 * A delivery begins with a record of `memberships`, its origin, and goes on through retries and other owners.
 * Late effects follow these rules:
 *
 * - The late effect of an attempt happens before the last retry of its delivery. That is before this retry
 *   succeeds here, or is found to be superseded.
 * - If a newer delivery replaces a delivery, the late effects of the older delivery become those of the newer
 *   one.
 * - A delivery may have succeeded after one of its requests had been lost. The late effect of the lost
 *   request has happened when the rung is over.
 * - A former owner may not know that it lost the units. Its requests are late in the same way.
 */
export class WholeCustomers {
  requests: Request[] = []
  late: Sent[] = []
  readonly faults: string[] = []
  /** The last value that each customer applied, by state key. */
  readonly applied = new Map<string, string>()
  /** The time of the origin of each delivery, by its body. */
  readonly origins = new WeakMap<Uint8Array, number>()
  /** The last judgement about each delivery that waited, by its body. */
  readonly verdicts = new WeakMap<Uint8Array, Judgement['kind']>()
  /** Returns the program that owns the units now. */
  readonly #present: () => object
  /** The kinds of events that have happened. */
  readonly #seen: Set<string>
  /** Deliveries that have ended at the present owner, by origin and destination. */
  readonly #ended = new Set<string>()
  /** The origin of the delivery that replaced a delivery, by origin and destination of the replaced one. */
  readonly #heirs = new Map<string, number>()

  constructor({ present, seen }: { present: () => object; seen: Set<string> }) {
    this.#present = present
    this.#seen = seen
  }

  /** Takes a request from a program. */
  post(program: object, to: string, body: Uint8Array, exchange: Exchange): void {
    const originMs = this.origins.get(body)
    if (originMs === undefined) throw new Error('nobody knows where this comes from')
    const isPresent = program === this.#present()
    const heirMs = isPresent ? originMs : this.#heirOf(originMs, to)
    const sent: Sent = { to, ...readIdentify(body), originMs: heirMs }
    const isBusy = this.requestsOf(program).some((one) => stateKeyOf(one) === stateKeyOf(sent))
    if (isBusy) this.faults.push(`two under way: ${stateKeyOf(sent)}`)
    const isSpent = !isPresent && this.#ended.has(`${heirMs} ${to}`)
    this.requests.push({ ...sent, program, exchange, isSpent })
  }

  requestsOf(program: object): readonly Request[] {
    return this.requests.filter((one) => one.program === program)
  }

  answer(request: Request, outcome: Outcome, mayHaveArrived: boolean, effect: Effect): void {
    this.requests.splice(this.requests.indexOf(request), 1)
    const isTaken = outcome.kind === 'answer' && outcome.status === 200
    if (isTaken && request.program === this.#present()) this.end(request.originMs, request.to)
    if (!request.isSpent) this.#have(request, isTaken ? 'at once' : effect)
    // The late effect belongs to the request that was lost before this one.
    if (isTaken && mayHaveArrived && effect === 'late') this.#have(request, effect)
    request.exchange.answered(outcome, mayHaveArrived)
    request.exchange.released()
  }

  /** Applies one of the late effects. */
  landEffect(pick: number): void {
    const [landing] = this.late.splice(pick % this.late.length, 1)
    if (landing === undefined) return
    this.#seen.add('an effect came late')
    this.#apply(landing)
  }

  /** Ends all requests of a program that is gone, with these effects. */
  abandon(program: object, effects: readonly Effect[]): void {
    this.requestsOf(program).forEach((request, index) => {
      if (!request.isSpent) this.#have(request, effects[index % effects.length] ?? 'nothing')
    })
    this.requests = this.requests.filter((one) => one.program !== program)
  }

  /**
   * Ends a delivery with its last retry. The requests of the delivery in other programs can't take effect
   * later than now.
   */
  end(originMs: number, to: string): void {
    const isIts = (one: Sent): boolean => one.originMs === originMs && one.to === to
    for (const one of this.late.filter(isIts)) this.#apply(one)
    this.late = this.late.filter((one) => !isIts(one))
    for (const request of this.requests) {
      if (!isIts(request) || request.isSpent || request.program === this.#present()) continue
      this.#apply(request)
      request.isSpent = true
    }
    this.#ended.add(`${originMs} ${to}`)
  }

  /** Notes that another delivery replaces this one at the present owner. */
  passOn(originMs: number, to: string, heirMs: number): void {
    const isIts = (one: Sent): boolean => one.originMs === originMs && one.to === to
    const pass = <S extends Sent>(one: S): S => (isIts(one) ? Object.assign(one, { originMs: heirMs }) : one)
    this.late = this.late.map((one) => pass({ ...one }))
    for (const request of this.requests) if (request.program !== this.#present()) pass(request)
    if (heirMs !== originMs) this.#heirs.set(`${originMs} ${to}`, heirMs)
  }

  /** Notes that the owner holds the delivery, perhaps once more. */
  reopen(originMs: number, to: string): void {
    this.#ended.delete(`${originMs} ${to}`)
    this.#heirs.delete(`${originMs} ${to}`)
  }

  #heirOf(originMs: number, to: string): number {
    const heir = this.#heirs.get(`${originMs} ${to}`)
    return heir === undefined ? originMs : this.#heirOf(heir, to)
  }

  #have(sent: Sent, effect: Effect): void {
    if (effect === 'at once') this.#apply(sent)
    else if (effect === 'late') this.late.push(sent)
  }

  #apply(sent: Sent): void {
    this.applied.set(stateKeyOf(sent), sent.value)
  }
}

export function stateKeyOf({ to, userId, spaceId }: Pick<Sent, 'to' | 'userId' | 'spaceId'>): string {
  return `${to} ${userId} ${spaceId}`
}

function readIdentify(body: Uint8Array): { userId: string; spaceId: string; value: string } {
  const { userId, traits, context } = JSON.parse(Buffer.from(body).toString())
  return { userId, spaceId: context.personas.space_id, value: String(Object.values(traits)[0]) }
}
