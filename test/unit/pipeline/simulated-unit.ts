import { setImmediate as turn } from 'node:timers/promises'
import type { DestinationDefinition } from '../../../src/delivery/endpoint.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import type { Judgement, WaitingDelivery } from '../../../src/message/judgement.ts'
import type { PipelineOptions, OutboundRecord } from '../../../src/pipeline/pipeline-ports.ts'
import { parseWait } from '../../../src/retry/duration.ts'
import { bodyOf, type Effect, sentOf, SimulatedCustomers, stateKeyOf } from './simulated-customers.ts'
import { Owner, type Produce, type Question } from './simulated-owner.ts'
import type { Queued, ToQueue } from './simulated-queue.ts'
import { destinationOf } from './stage.ts'

/**
 * A model of one unit of the group: its records of `memberships` and of the retry topics, the owners that
 * follow one another, and the customers. Only the pipelines are real.
 */

type Logged = { readonly id: string; readonly user: string; readonly value: number }

type Parked = { readonly id: string; readonly record: OutboundRecord; readonly dueMs: number }

type Settings = {
  users: number
  destinations: number
  /** The limit on requests in flight of each destination. */
  maxInFlight: number
  /** True if Kafka answers at once. */
  isPrompt: boolean
  /** True if the buffer is so small that lanes overflow at once. */
  isCramped: boolean
  /** True if what only waits for its turn joins a queue. */
  hasQueue: boolean
  /** How many messages are sent together, at most. */
  batch: number
}

const startMs = 1_700_000_000_000

export class SimulatedUnit {
  /** The present value of each user's property. */
  readonly state = new Map<string, number>()
  readonly log: Logged[] = []
  readonly parked: Parked[] = []
  /** The records of `waiting`, and those of `deletions`. */
  readonly queued: Queued[] = []
  readonly deletionLog: Logged[] = []
  isQueueOpen = true
  /** The keys (`stateKeyOf`) of the properties for which a destination needs a backfill. */
  readonly behind = new Set<string>()
  produces: Produce[] = []
  questions: Question[] = []
  owner: Owner
  /** The kinds of events that have happened. */
  readonly seen = new Set<string>()
  readonly customers = new SimulatedCustomers(this.seen)
  readonly users: readonly string[]
  readonly destinationIds: readonly string[]
  readonly settings: Settings
  /** The last judgement about each delivery that waited. The key is the body of the delivery. */
  readonly verdicts = new WeakMap<Buffer, Judgement>()
  nowMs = startMs
  readonly #states = new Map<string, DestinationDefinition['state']>()
  readonly #owners: Owner[] = []
  #settled = new Set<string>()
  #committed = new Set<string>()
  #mayHaveBegun = new Set<string>()
  #changes = 0
  #parkedEver = 0

  constructor(settings: Settings) {
    this.settings = settings
    this.users = ['u', 'v', 'w'].slice(0, settings.users)
    this.destinationIds = ['crm', 'ads'].slice(0, settings.destinations)
    this.owner = this.#newOwner()
  }

  // Events outside of Sluice.

  change(user: string): void {
    if (this.isDeleted(user)) return
    const value = ++this.#changes
    this.state.set(user, value)
    this.log.push({ id: `memberships/0/${this.log.length}`, user, value })
  }

  /** Asks for the deletion of a user, who has no values any more from then on. */
  delete(user: string): void {
    const value = -++this.#changes
    this.state.set(user, value)
    this.deletionLog.push({ id: `deletions/0/${this.deletionLog.length}`, user, value })
    this.seen.add('a user was deleted')
  }

  isDeleted(user: string): boolean {
    return (this.state.get(user) ?? 0) < 0
  }

  get deletions(): number {
    return this.deletionLog.length
  }

  setState(to: string, state: DestinationDefinition['state']): void {
    this.#states.set(to, state)
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
    const isSuperseded = this.state.get(user) !== value
    if (isSuperseded && !record.mayHaveBegun) {
      record.settle()
      return
    }
    if (isSuperseded) this.seen.add('a superseded one may have been begun')
    else {
      for (const to of this.destinationIds) this.owner.noteFresh(to, user, id)
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

  get toDelete(): readonly Logged[] {
    return this.deletionLog.filter(({ id }) => this.#isToTake(id)).slice(0, 1)
  }

  takeDeletion({ id, user, value }: Logged): void {
    const body = bodyOf({ user, value, origin: id })
    for (const [to, state] of this.#states) if (state === 'off') this.behind.add(stateKeyOf(to, user))
    this.owner.pipeline.acceptDelete(this.#lend(id, startMs), {
      userId: user,
      deletes: [{ sourceId: `space-${user}`, messageId: `${user}${value}`, body }],
    })
  }

  /** The records of the retry topics that may be taken early. */
  get toRecall(): readonly Parked[] {
    return this.parked.filter(
      ({ id, record }) => this.#isToTake(id) && record.headers['uncertain'] === undefined,
    )
  }

  recall({ id, record }: Parked): void {
    this.owner.pipeline.acceptRecalled(this.#lend(id, this.nowMs), record)
  }

  /** Returns the records of the queue that aren't done. */
  waiting(): readonly Queued[] {
    return this.queued.filter(({ id }) => !this.#settled.has(id))
  }

  lendQueued(owner: Owner, { id }: Queued, giveBack: () => void): HeldRecord {
    this.seen.add('pulled')
    return this.#lendTo(owner, id, startMs, giveBack)
  }

  comeDue({ id, record, dueMs }: Parked): void {
    this.nowMs = Math.max(this.nowMs, dueMs)
    const { delivered, 'destination-id': to = '' } = record.headers
    if (delivered !== undefined) {
      this.seen.add('a delivered one was outlasted')
      this.customers.landAllOf(sentOf(record.value ?? Buffer.alloc(0)).origin, to)
    }
    this.owner.pipeline.accept(this.#lend(id, dueMs), record)
  }

  // Writes and questions of the owners, and the answers of Kafka and of the judge.

  /** Takes a write for Kafka. */
  produce(produce: Produce): void {
    this.produces.push(produce)
    if (this.settings.isPrompt && !produce.owner.isDead) this.acknowledge(produce)
  }

  acknowledge(produce: Produce): void {
    this.produces.splice(this.produces.indexOf(produce), 1)
    this.#write(produce)
    produce.acknowledge('acknowledged')
  }

  /** Takes a question for the judge. */
  ask(question: Omit<Question, 'asked'>): void {
    this.questions.push({ ...question, asked: this.#judge(question.waiting) })
  }

  /**
   * Lets the judge answer a question. The judge looks at the state now if `isLate` is true. Otherwise it has
   * looked at the state when it was asked.
   */
  rule(question: Question, isLate: boolean): void {
    this.questions.splice(this.questions.indexOf(question), 1)
    const judgement = isLate ? this.#judge(question.waiting) : question.asked
    this.seen.add(`judged: ${judgement.kind}`)
    this.verdicts.set(question.waiting.body, judgement)
    question.answer(judgement)
  }

  // Changes of the owner.

  get hasNews(): boolean {
    return this.#settled.size !== this.#committed.size
  }

  /** Commits what was settled, or only what is done in the queue, or all but this. */
  commit(what: 'all' | 'waiting' | 'others' = 'all'): void {
    for (const id of this.#settled) {
      if (what === 'all' || id.startsWith('waiting/') === (what === 'waiting')) this.#committed.add(id)
    }
  }

  /**
   * Ends the process of the owner. Its requests may have had an effect, and its writes may have reached the
   * broker.
   */
  crash(effects: readonly Effect[], isWritten: readonly boolean[]): void {
    const { owner } = this
    owner.isDead = true
    this.customers.abandon(owner, effects)
    const produces = this.produces.filter((one) => one.owner === owner)
    produces.forEach((produce, index) => {
      if (isWritten[index % isWritten.length] === true) this.#write(produce)
    })
    this.produces = this.produces.filter((one) => one.owner !== owner)
    this.questions = this.questions.filter((one) => one.owner !== owner)
    this.seen.add('an owner crashed')
    this.#beginWithoutMark()
  }

  /** Lets the unit go to another member. The present owner begins nothing more. */
  leave(): void {
    this.owner.isLeaving = true
    this.owner.queue?.leave()
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
    // The old owner began only with records that it got. So nothing changes for all other records.
    for (const id of this.owner.taken) this.#mayHaveBegun.delete(id)
    this.owner.isFenced = true
    this.owner = this.#newOwner()
  }

  /** Lets the next owner begin because its wait is over. The present owner is still at work. */
  overtake(): void {
    this.seen.add('an owner was overtaken')
    this.owner.isFenced = true
    this.#beginWithoutMark()
  }

  #beginWithoutMark(): void {
    this.#settled = new Set(this.#committed)
    const all = [...this.log, ...this.parked, ...this.deletionLog, ...this.queued]
    this.#mayHaveBegun = new Set(all.map(({ id }) => id))
    this.owner = this.#newOwner()
  }

  /** Runs until everything has ended. From now on, a request that fails succeeds at a later try. */
  async finish(pick: () => number): Promise<void> {
    const { customers } = this
    for (const to of this.destinationIds) this.setState(to, 'on')
    for (let steps = 0; ; steps++) {
      if (steps > 5_000) throw new Error('it comes to no end')
      await this.pause()
      const [request] = customers.requests
      const [produce] = this.produces
      const [question] = this.questions
      const [record] = this.toTake
      const [due] = this.toComeDue
      const [deletion] = this.toDelete
      const { queue } = this.owner
      const lane = this.destinationIds.find((to) => (queue?.countOf(to) ?? 0) > 0)
      if (steps < 40 && pick() % 10 === 0) this.change(this.users[pick() % this.users.length] ?? 'u')
      else if (customers.late.length > 0 && pick() % 10 === 0) customers.land(pick())
      else if (question !== undefined) this.rule(question, pick() % 2 === 0)
      else if (produce !== undefined) this.acknowledge(produce)
      else if (request !== undefined)
        customers.answer(request, { kind: 'answer', status: pick() % 3 === 0 ? 429 : 200 }, false, 'nothing')
      else if (this.owner.isLeaving) {
        if (this.isLeft) this.handOver()
        else throw new Error('an owner that leaves has nothing under way, and holds records')
      } else if (record !== undefined) this.take(record)
      else if (deletion !== undefined) this.takeDeletion(deletion)
      else if (queue !== undefined && queue.wanted > 0) queue.hand(1 + (pick() % 3))
      else if (lane !== undefined && pick() % 3 > 0) this.owner.pipeline.refill(lane)
      else if (due !== undefined) this.comeDue(due)
      else if (lane !== undefined) this.owner.pipeline.refill(lane)
      else break
    }
    // These late effects belong to deliveries that ended in the dead letters.
    while (customers.late.length > 0) customers.land(pick())
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
    return [...this.customers.faults, ...kept, ...this.#wrongValues()]
  }

  #wrongValues(): string[] {
    const wrong: string[] = []
    for (const user of this.users) {
      for (const to of this.destinationIds) {
        const stateKey = stateKeyOf(to, user)
        const [applied, present] = [this.customers.applied.get(stateKey), this.state.get(user)]
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
    return this.#lendTo(this.owner, id, timestampMs)
  }

  #lendTo(
    owner: Owner,
    id: string,
    timestampMs: number,
    giveBack = (): void => undefined,
  ): HeldRecord & { mayHaveBegun: boolean } {
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
      giveBack,
    }
  }

  #write({ owner, record }: Produce): void {
    if ('queueClass' in record) this.#queue(owner, record)
    else this.#park(record)
  }

  #queue(owner: Owner, record: ToQueue): void {
    // The next owner finds the half of what an earlier owner appends late void, and the others in the queue.
    if (owner.isFenced && this.queued.length % 2 === 0) return
    const id = `waiting/0/${this.queued.length}`
    this.queued.push({ ...record, id })
    this.seen.add(`queued: ${record.queueClass}`)
  }

  #park(record: OutboundRecord): void {
    const waitMs = parseWait(record.topic.slice('retry.'.length))
    if (waitMs === undefined) return
    const id = `${record.topic}/0/${this.#parkedEver++}`
    this.parked.push({ id, record, dueMs: this.nowMs + waitMs })
  }

  #judge({ property, isUncertain, body }: WaitingDelivery): Judgement {
    const user = property?.userId ?? ''
    const value = this.state.get(user) ?? 0
    if (value === Number(property?.since)) return { kind: 'send' }
    if (!isUncertain) return { kind: value < 0 ? 'suppressed' : 'superseded' }
    const { origin } = sentOf(body)
    return {
      kind: 'send_current',
      messageId: `${user}-${value}`,
      body: bodyOf({ user, value, origin }),
      // A `delete` is sent in the place of a value, which it doesn't replace.
      since: value < 0 ? (property?.since ?? '') : String(value),
    }
  }

  #newOwner(): Owner {
    const owner = new Owner(this)
    this.#owners.push(owner)
    return owner
  }

  /** Returns the catalog, in which each destination gets the messages of all spaces. */
  catalog(): ReturnType<PipelineOptions['catalog']> {
    const spaces = this.users.map((user) => `space-${user}`)
    const destinations = this.destinationIds.map((id) =>
      destinationOf(id, {
        state: this.#states.get(id) ?? 'on',
        sources: spaces,
        maxInFlight: this.settings.maxInFlight,
        ...(this.settings.batch > 1 && {
          batch: { maxMessages: this.settings.batch, maxBytes: 100_000, maxWaitMs: 0, format: 'ndjson' },
        }),
      }),
    )
    return {
      sources: new Map(spaces.map((id) => [id, { enabled: true, kind: 'audiences' as const }])),
      destinations: new Map(destinations.map((destination) => [destination.id, destination])),
      destinationsBySource: new Map(spaces.map((id) => [id, destinations])),
    }
  }
}
