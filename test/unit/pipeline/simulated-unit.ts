import type { HeldRecord } from '../../../src/message/held-record.ts'
import { roomyBulkhead } from '../../support/bulkhead.ts'
import { setImmediate as turn } from 'node:timers/promises'
import type { DestinationDefinition } from '../../../src/delivery/endpoint.ts'
import type { Outcome } from '../../../src/delivery/outcome.ts'
import type { Exchange } from '../../../src/delivery/sender.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import type { Judgement, WaitingDelivery } from '../../../src/message/judgement.ts'
import type { DropReason } from '../../../src/pipeline/identify.ts'
import type { OutboundRecord } from '../../../src/pipeline/outbound-record.ts'
import { createPipeline } from '../../../src/pipeline/pipeline.ts'
import type { Pipeline } from '../../../src/pipeline/pipeline-ports.ts'
import { parseWait } from '../../../src/retry/duration.ts'
import { destinationOf } from './stage.ts'

/**
 * A model of one unit of the group: its records of `memberships` and of the retry topics, the owners that
 * follow one another, and the customers. Only the pipelines are real. A customer may act on a request late,
 * and remembers the last value that it applied. Late effects follow these rules:
 *
 * - The late effect of an attempt happens before the last retry of its delivery. That is before this retry
 *   succeeds, or is found to be superseded.
 * - If a newer delivery replaces a delivery, the late effects of the older delivery become those of the newer
 *   one.
 * - A delivery may have succeeded after one of its requests had been lost. The late effect of the lost
 *   request has happened when the rung is over.
 */

/**
 * How a customer acts on a request without a good answer: not at all, at once, or late. Either the customer
 * gives no good answer, or its good answer is lost.
 */
export type Effect = 'nothing' | 'at once' | 'late'

/**
 * A value that is sent. `value` is the number of its change. `origin` is the first record of its delivery.
 */
type Sent = { readonly user: string; readonly value: number; readonly origin: string }

export type Request = Sent & {
  readonly owner: Owner
  readonly to: string
  readonly exchange: Exchange
  /**
   * True if the request has no effect any more, because its effect happened before the last retry of its
   * delivery.
   */
  isSpent: boolean
}

type Late = Sent & { readonly to: string }

export type Produce = {
  readonly owner: Owner
  readonly record: OutboundRecord
  readonly acknowledge: (answer: 'acknowledged') => void
}

export type Question = {
  readonly owner: Owner
  readonly waiting: WaitingDelivery
  readonly asked: Judgement
  readonly answer: (judgement: Judgement) => void
}

type Logged = { readonly id: string; readonly user: string; readonly value: number }

type Parked = { readonly id: string; readonly record: OutboundRecord; readonly dueMs: number }

/** A member that owns the unit, or that owned it before. */
export class Owner {
  readonly pipeline: Pipeline
  /** The records that the owner was given. */
  readonly taken = new Set<string>()
  /**
   * The first records of the deliveries that the owner has taken and is still at, by `stateKeyOf`, in order.
   */
  readonly fresh = new Map<string, string[]>()
  /** True when the unit goes to another owner. What is under way at this owner still ends. */
  isLeaving = false
  /** True when nothing that this owner settles and commits counts any more. */
  isFenced = false
  /** True when the process of the owner is gone. */
  isDead = false

  constructor(make: (owner: Owner) => Pipeline) {
    this.pipeline = make(this)
  }
}

export type Settings = {
  users: number
  destinations: number
  /** The limit on requests in flight of each destination. */
  maxInFlight: number
  /** True if Kafka answers at once. */
  isPrompt: boolean
  /** True if the buffer is so small that lanes overflow at once. */
  isCramped: boolean
}

const startMs = 1_700_000_000_000

export class SimulatedUnit {
  /** The present value of each user's property. */
  readonly state = new Map<string, number>()
  readonly log: Logged[] = []
  readonly parked: Parked[] = []
  /** The last value that each customer applied, by `stateKeyOf`. */
  readonly applied = new Map<string, number>()
  readonly behind = new Set<string>()
  requests: Request[] = []
  produces: Produce[] = []
  questions: Question[] = []
  late: Late[] = []
  owner: Owner
  /** The kinds of events that have happened. */
  readonly seen = new Set<string>()
  readonly users: readonly string[]
  readonly destinationIds: readonly string[]
  readonly #settings: Settings
  readonly #states = new Map<string, DestinationDefinition['state']>()
  readonly #owners: Owner[] = []
  readonly #verdicts = new WeakMap<Buffer, Judgement>()
  readonly #faults: string[] = []
  #settled = new Set<string>()
  #committed = new Set<string>()
  #mayHaveBegun = new Set<string>()
  #nowMs = startMs
  #changes = 0
  #parkedEver = 0

  constructor(settings: Settings) {
    this.#settings = settings
    this.users = ['u', 'v', 'w'].slice(0, settings.users)
    this.destinationIds = ['crm', 'ads'].slice(0, settings.destinations)
    this.owner = this.#newOwner()
  }

  // Events outside of Sluice.

  change(user: string): void {
    const value = ++this.#changes
    this.state.set(user, value)
    this.log.push({ id: `memberships/0/${this.log.length}`, user, value })
  }

  setState(to: string, state: DestinationDefinition['state']): void {
    this.#states.set(to, state)
  }

  /** Applies one of the late effects, of any customer. */
  land(pick: number): void {
    const [landing] = this.late.splice(pick % this.late.length, 1)
    if (landing === undefined) return
    this.seen.add('an effect came late')
    this.#apply(landing)
  }

  answer(request: Request, outcome: Outcome, mayHaveArrived: boolean, effect: Effect): void {
    this.requests.splice(this.requests.indexOf(request), 1)
    if (!request.isSpent) this.#take(request, outcome, effect)
    request.exchange.answered(outcome, mayHaveArrived)
    request.exchange.released()
  }

  #take(request: Request, outcome: Outcome, effect: Effect): void {
    if (outcome.kind === 'answer' && outcome.status === 200) {
      this.#landAllOf(request.origin, request.to)
      this.#apply(request)
      // The late effect belongs to the request that was lost.
      if (effect === 'late') this.late.push(request)
    } else if (effect === 'at once') this.#apply(request)
    else if (effect === 'late') this.late.push(request)
  }

  // Records that the owner reads.

  get toTake(): readonly Logged[] {
    return this.log.filter(({ id }) => this.#isToTake(id)).slice(0, 1)
  }

  /** The first record of each retry topic that the owner has to take. */
  get toComeDue(): readonly Parked[] {
    const heads = new Map<string, Parked>()
    for (const one of this.parked) {
      if (this.#isToTake(one.id) && !heads.has(one.record.topic)) heads.set(one.record.topic, one)
    }
    return [...heads.values()]
  }

  /** Reads a record of `memberships`, and compares it with the state. */
  take({ id, user, value }: Logged): void {
    const record = this.#lend(id, startMs)
    const isSuperseded = (this.state.get(user) ?? 0) > value
    if (isSuperseded && !record.mayHaveBegun) {
      record.settle()
      return
    }
    if (isSuperseded) this.seen.add('a superseded one may have been begun')
    else {
      for (const to of this.destinationIds) {
        const stateKey = stateKeyOf(to, user)
        this.owner.fresh.set(stateKey, [...(this.owner.fresh.get(stateKey) ?? []), id])
      }
    }
    this.owner.pipeline.acceptIdentify(record, {
      kind: 'identify',
      userId: user,
      spaceId: `space-${user}`,
      property: 'p',
      since: String(value),
      messageId: `${user}-${value}`,
      body: bodyOf({ user, value, origin: id }),
      isSuperseded,
    })
  }

  comeDue({ id, record, dueMs }: Parked): void {
    this.#nowMs = Math.max(this.#nowMs, dueMs)
    const { delivered, 'destination-id': to = '' } = record.headers
    if (delivered !== undefined) {
      this.seen.add('a delivered one was outlasted')
      this.#landAllOf(sentOf(record.value ?? Buffer.alloc(0)).origin, to)
    }
    this.owner.pipeline.accept(this.#lend(id, dueMs), record)
  }

  // Answers of Kafka and of the judge.

  acknowledge(produce: Produce): void {
    this.produces.splice(this.produces.indexOf(produce), 1)
    this.#write(produce.record)
    produce.acknowledge('acknowledged')
  }

  /**
   * Lets the judge answer a question. The judge looks at the state now if `isLate` is true. Otherwise it has
   * looked at the state when it was asked.
   */
  rule(question: Question, isLate: boolean): void {
    this.questions.splice(this.questions.indexOf(question), 1)
    const judgement = isLate ? this.#judge(question.waiting) : question.asked
    this.seen.add(`judged: ${judgement.kind}`)
    this.#verdicts.set(question.waiting.body, judgement)
    question.answer(judgement)
  }

  // Changes of the owner.

  get hasNews(): boolean {
    return this.#settled.size !== this.#committed.size
  }

  commit(): void {
    this.#committed = new Set(this.#settled)
  }

  /**
   * Ends the process of the owner. Its requests may have had an effect, and its writes may have reached the
   * broker.
   */
  crash(effects: readonly Effect[], isWritten: readonly boolean[]): void {
    const { owner } = this
    owner.isDead = true
    const of = <T extends { owner: Owner }>(all: readonly T[]) => all.filter((one) => one.owner === owner)
    of(this.requests).forEach((request, index) => {
      const effect = effects[index % effects.length]
      if (request.isSpent) return
      if (effect === 'at once') this.#apply(request)
      else if (effect === 'late') this.late.push(request)
    })
    of(this.produces).forEach(({ record }, index) => {
      if (isWritten[index % isWritten.length] === true) this.#write(record)
    })
    this.requests = this.requests.filter((one) => one.owner !== owner)
    this.produces = this.produces.filter((one) => one.owner !== owner)
    this.questions = this.questions.filter((one) => one.owner !== owner)
    this.seen.add('an owner crashed')
    this.#beginWithoutMark()
  }

  /** Lets the unit go to another member. The present owner begins nothing more. */
  leave(): void {
    this.owner.isLeaving = true
    this.owner.pipeline.letGoAbandoned()
  }

  get isLeft(): boolean {
    return this.owner.isLeaving && this.owner.pipeline.held.records === 0
  }

  /**
   * Hands the unit over. Everything that was under way has ended, and is committed before the next owner
   * begins.
   */
  handOver(): void {
    this.seen.add('a unit was handed over')
    this.commit()
    // Records that the old owner never got are as they were before it.
    for (const id of this.owner.taken) this.#mayHaveBegun.delete(id)
    this.owner.isFenced = true
    this.owner = this.#newOwner()
  }

  /** Lets the next owner begin, which waits no longer, although the present owner is still at work. */
  overtake(): void {
    this.seen.add('an owner was overtaken')
    this.owner.isFenced = true
    this.#beginWithoutMark()
  }

  #beginWithoutMark(): void {
    this.#settled = new Set(this.#committed)
    this.#mayHaveBegun = new Set([...this.log, ...this.parked].map(({ id }) => id))
    this.owner = this.#newOwner()
  }

  /** Runs until everything has ended. From now on, a request that fails succeeds at a later try. */
  async finish(pick: () => number): Promise<void> {
    for (const to of this.destinationIds) this.setState(to, 'on')
    for (let steps = 0; ; steps++) {
      if (steps > 5_000) throw new Error('it comes to no end')
      // oxlint-disable-next-line no-await-in-loop -- one step follows the other
      await this.pause()
      const [request] = this.requests
      const [produce] = this.produces
      const [question] = this.questions
      const [record] = this.toTake
      const [due] = this.toComeDue
      if (steps < 40 && pick() % 10 === 0) this.change(this.users[pick() % this.users.length] ?? 'u')
      else if (this.late.length > 0 && pick() % 10 === 0) this.land(pick())
      else if (question !== undefined) this.rule(question, pick() % 2 === 0)
      else if (produce !== undefined) this.acknowledge(produce)
      else if (request !== undefined)
        this.answer(request, { kind: 'answer', status: pick() % 3 === 0 ? 429 : 200 }, false, 'nothing')
      else if (this.owner.isLeaving) {
        if (this.isLeft) this.handOver()
        else throw new Error('an owner that leaves has nothing under way, and holds records')
      } else if (record !== undefined) this.take(record)
      else if (due !== undefined) this.comeDue(due)
      else break
    }
    // These late effects belong to deliveries that ended in the dead letters.
    while (this.late.length > 0) this.land(pick())
  }

  /** Waits until nothing goes on by itself any more. */
  async pause(): Promise<void> {
    for (let turns = 0; turns < 2; turns++) await turn()
  }

  stop(): void {
    for (const { pipeline } of this.#owners) pipeline.stop()
  }

  /** Returns a text for each fault that is found when everything has ended. */
  faultsAtEnd(): readonly string[] {
    const kept = this.#owners.flatMap(({ pipeline: { held, inFlight, queued }, isDead }) => {
      const isEmpty = held.records + held.bytes + inFlight + queued === 0
      return isDead || isEmpty ? [] : [`a pipeline keeps ${JSON.stringify({ held, inFlight, queued })}`]
    })
    return [...this.#faults, ...kept, ...this.#wrongValues()]
  }

  #wrongValues(): string[] {
    const wrong: string[] = []
    for (const user of this.users) {
      for (const to of this.destinationIds) {
        const stateKey = stateKeyOf(to, user)
        const [applied, present] = [this.applied.get(stateKey), this.state.get(user)]
        const isBehind = this.behind.has(stateKey)
        this.seen.add(isBehind ? 'a destination is behind' : 'a destination is where it should be')
        if (!isBehind && applied !== present) wrong.push(`${stateKey}: ${applied}, not ${present}`)
      }
    }
    return wrong
  }

  #isToTake(id: string): boolean {
    return !this.#settled.has(id) && !this.owner.taken.has(id)
  }

  #lend(id: string, timestampMs: number): HeldRecord & { mayHaveBegun: boolean } {
    const { owner } = this
    owner.taken.add(id)
    const [topic = '', , offset] = id.split('/')
    return {
      topic,
      partition: 0,
      offset: Number(offset),
      timestampMs,
      isLate: false,
      get isAbandoned() {
        return owner.isLeaving
      },
      mayHaveBegun: this.#mayHaveBegun.has(id),
      settle: () => {
        if (!owner.isDead && !owner.isFenced) this.#settled.add(id)
      },
      giveBack() {},
    }
  }

  #write(record: OutboundRecord): void {
    const waitMs = parseWait(record.topic.slice('retry.'.length))
    if (waitMs === undefined) return
    const id = `${record.topic}/0/${this.#parkedEver++}`
    this.parked.push({ id, record, dueMs: this.#nowMs + waitMs })
  }

  #judge({ property, isUncertain, body }: WaitingDelivery): Judgement {
    const user = property?.userId ?? ''
    const value = this.state.get(user) ?? 0
    if (value === Number(property?.since)) return { kind: 'send' }
    if (!isUncertain) return { kind: 'superseded' }
    const { origin } = sentOf(body)
    return {
      kind: 'send_current',
      messageId: `${user}-${value}`,
      body: bodyOf({ user, value, origin }),
      since: String(value),
    }
  }

  #dropped(owner: Owner, delivery: Delivery, why: DropReason): void {
    const { body, destinationId } = delivery
    const { origin, user } = sentOf(body)
    this.seen.add(why)
    this.#forgetFresh(owner, delivery)
    if (this.#verdicts.get(body)?.kind === 'superseded') {
      this.#landAllOf(origin, destinationId)
      return
    }
    this.seen.add('a newer one took the place of one that waited')
    // Only a delivery that was just taken, or that has waited since then, replaces another one.
    const heir = owner.fresh.get(stateKeyOf(destinationId, user))?.at(-1) ?? ''
    const isIts = (one: Late): boolean => one.origin === origin && one.to === destinationId
    this.late = this.late.map((one) => (isIts(one) ? { ...one, origin: heir } : one))
    this.requests = this.requests.map((one) =>
      isIts(one) && one.owner !== owner ? Object.assign(one, { origin: heir }) : one,
    )
  }

  /** Forgets a fresh delivery that has ended, or that goes on elsewhere. */
  #forgetFresh({ fresh }: Owner, { body, destinationId, laneClass }: Delivery): void {
    if (laneClass !== 'fresh') return
    const { origin, user } = sentOf(body)
    const stateKey = stateKeyOf(destinationId, user)
    fresh.set(stateKey, fresh.get(stateKey)?.filter((id) => id !== origin) ?? [])
  }

  /**
   * Applies the late effects of a delivery, and those of its requests at all owners. None of them can come
   * later than now.
   */
  #landAllOf(origin: string, to: string): void {
    const isIts = (one: Late): boolean => one.origin === origin && one.to === to
    for (const one of this.late.filter(isIts)) this.#apply(one)
    this.late = this.late.filter((one) => !isIts(one))
    for (const request of this.requests) {
      if (!isIts(request) || request.isSpent) continue
      this.#apply(request)
      request.isSpent = true
    }
  }

  #apply({ to, user, value }: Late): void {
    this.applied.set(stateKeyOf(to, user), value)
  }

  #newOwner(): Owner {
    const owner = new Owner((self) => this.#newPipeline(self))
    this.#owners.push(owner)
    return owner
  }

  #newPipeline(owner: Owner): Pipeline {
    const { isCramped } = this.#settings
    return createPipeline({
      catalog: () => this.#catalog(),
      sender: {
        post: ({ origin }, body, _signature, exchange) => {
          const to = new URL(origin).hostname.replace('.example', '')
          const sent = sentOf(body)
          const isBusy = this.requests.some(
            (one) => one.owner === owner && one.to === to && one.user === sent.user,
          )
          if (isBusy) this.#faults.push(`two under way: ${stateKeyOf(to, sent.user)}`)
          this.requests.push({ ...sent, owner, to, exchange, isSpent: false })
        },
        async close() {},
      },
      outlet: {
        produce: (record) =>
          new Promise((acknowledge) => {
            const produce = { owner, record, acknowledge }
            this.produces.push(produce)
            if (this.#settings.isPrompt && !owner.isDead) this.acknowledge(produce)
          }),
      },
      observer: {
        attempted() {},
        firstTried() {},
        omitted() {},
        delivered: (delivery) => this.#forgetFresh(owner, delivery),
        parked: (delivery, why) => {
          this.seen.add(`parked: ${why}`)
          this.#forgetFresh(owner, delivery)
        },
        deadLettered: (reason, _detail, _where, delivery) => {
          this.seen.add(`dead: ${reason}`)
          if (delivery !== undefined) this.#forgetFresh(owner, delivery)
        },
        notRouted() {},
        dropped: (delivery, why) => {
          if (!owner.isDead) this.#dropped(owner, delivery, why)
        },
        unknownSource() {},
        repeated() {},
        failed() {},
      },
      ladder: { waitsMs: [60_000, 600_000], thenMs: 600_000, limitMs: 4 * 3_600_000 },
      topics: { events: 'events', retryPrefix: 'retry.', replays: 'replays', deadLetters: 'dead-letters' },
      limits: defaultLimits,
      maxInFlight: 1_000,
      laneWaitMs: 600_000,
      lanePatienceMs: isCramped ? -1 : 600_000,
      bulkhead: roomyBulkhead,
      breaker: { failureShare: 1, minResults: 1_000_000, windowMs: 10_000, openMs: 0, maxOpenMs: 0 },
      buffer: { records: isCramped ? 2 : 1_000, bytes: 10_000_000 },
      onPressure() {},
      onCongested() {},
      judge: (waiting) =>
        new Promise((answer) => {
          this.questions.push({ owner, waiting, asked: this.#judge(waiting), answer })
        }),
      needsBackfill: (to, spaceId) => {
        if (!owner.isDead) this.behind.add(stateKeyOf(to, spaceId.replace('space-', '')))
      },
      now: () => this.#nowMs,
    })
  }

  #catalog() {
    const spaces = this.users.map((user) => `space-${user}`)
    const destinations = this.destinationIds.map((id) =>
      destinationOf(id, {
        state: this.#states.get(id) ?? 'on',
        sources: spaces,
        maxInFlight: this.#settings.maxInFlight,
      }),
    )
    return {
      sources: new Map(spaces.map((id) => [id, { enabled: true, kind: 'audiences' as const }])),
      destinations: new Map(destinations.map((destination) => [destination.id, destination])),
      destinationsBySource: new Map(spaces.map((id) => [id, destinations])),
    }
  }
}

function stateKeyOf(to: string, user: string): string {
  return `${to} ${user}`
}

function bodyOf(sent: Sent): Buffer {
  return Buffer.from(JSON.stringify(sent))
}

function sentOf(body: Uint8Array): Sent {
  const sent: unknown = JSON.parse(Buffer.from(body).toString())
  if (!isSent(sent)) throw new Error('this was not sent here')
  return sent
}

function isSent(value: unknown): value is Sent {
  return (
    typeof value === 'object' && value !== null && 'user' in value && 'value' in value && 'origin' in value
  )
}
