import type { HeldRecord } from '../../../src/message/held-record.ts'
import type { Outcome } from '../../../src/delivery/outcome.ts'
import type { Exchange } from '../../../src/delivery/sender.ts'
import type { Identify } from '../../../src/audience/audience-ports.ts'
import { roomyBulkhead } from '../../support/bulkhead.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import type { Delivery } from '../../../src/pipeline/delivery.ts'
import type { Judgement, WaitingDelivery } from '../../../src/message/judgement.ts'
import type { DropReason } from '../../../src/pipeline/identify.ts'
import { createPipeline } from '../../../src/pipeline/pipeline.ts'
import type { Pipeline } from '../../../src/pipeline/pipeline-ports.ts'
import { formatWait } from '../../../src/retry/duration.ts'
import { type Ladder, tiersOf } from '../../../src/retry/ladder.ts'
import { destinationOf } from '../pipeline/stage.ts'
import { isOutOfTime, referenceOf } from './reference.ts'
import { iso, type LogRecord, partitions, SimulatedLog, SimulatedOwner, topics } from './simulated-log.ts'

/**
 * A model of the units with the states of audiences, and of the deliveries of these states. Units and
 * pipelines are real, and joined as a worker joins them. Several programs run one after the other, or at
 * once. The broker, the clock, the disks and the customers are simulated. Each customer has one hook, and may
 * act on a request late.
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

/**
 * How a customer acts on a request without a good answer: not at all, at once, or late. Either the customer
 * gives no good answer, or its good answer is lost.
 */
export type Effect = 'nothing' | 'at once' | 'late'

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
  readonly member: Member
  readonly exchange: Exchange
  /**
   * True if the request has no effect any more, because its effect happened before the last retry of its
   * delivery.
   */
  isSpent: boolean
}

/** A program with the units and the pipeline of a worker. */
class Member {
  readonly owner: SimulatedOwner
  readonly pipeline: Pipeline
  readonly machine: number
  /** The retry records that the program was given. */
  readonly taken = new Set<LogRecord>()
  /** The origin of the last value that the program has taken as the newest, by state key. */
  readonly newest = new Map<string, number>()
  /**
   * Offsets at which the program lost the units, by topic and unit; undefined while it owns them. The program
   * doesn't deliver records of `memberships` from these offsets on.
   */
  seenBelow: ReadonlyMap<string, number> | undefined

  constructor(machine: number, make: (member: Member) => readonly [SimulatedOwner, Pipeline]) {
    const [owner, pipeline] = make(this)
    this.machine = machine
    this.owner = owner
    this.pipeline = pipeline
  }

  /** Ends the process. `isWritten` tells which of the writes under way the broker got. */
  kill(isWritten: (index: number) => boolean): void {
    this.owner.kill(isWritten)
    this.pipeline.stop()
  }

  /** Begins nothing more, and lets go of everything that waits. */
  letGo(): void {
    this.owner.units.letGoAbandoned()
    this.pipeline.letGoAbandoned()
  }

  get isIdle(): boolean {
    const { pending, unacknowledged, out } = this.owner
    return pending.length + unacknowledged.length + out.size + this.pipeline.held.records === 0
  }
}

const ladder: Ladder = { waitsMs: [10_000, 60_000], thenMs: 60_000, limitMs: 4 * 3_600_000 }
const tiers = tiersOf(ladder).map((waitMs) => ({ topic: `retry.${formatWait(waitMs)}` as const, waitMs }))
const needState = [topics.states, ...tiers.map(({ topic }) => topic)]

/** A log in which no two records have the same time. */
class StampedLog extends SimulatedLog {
  override append(...[topic, partition, record]: Parameters<SimulatedLog['append']>): LogRecord {
    this.nowMs++
    return super.append(topic, partition, record)
  }
}

type Due = {
  readonly topic: `retry.${string}`
  readonly unit: number
  readonly record: LogRecord
  readonly dueMs: number
}

export class WholeWorld {
  readonly log = new StampedLog()
  readonly destinationIds: readonly string[]
  readonly users: readonly string[]
  readonly audiences: readonly string[]
  member: Member
  /** The program that owned the units before, and is still running. */
  zombie: Member | undefined
  requests: Request[] = []
  late: Sent[] = []
  /** Parts of syncs that weren't sent yet. */
  readonly unsent: (() => void)[] = []
  /** The kinds of events that have happened. */
  readonly seen = new Set<string>()
  /** The last value that each customer applied, by state key. */
  readonly #applied = new Map<string, string>()
  /** Destinations that need a backfill of a space, as `destination space`. */
  readonly #behind = new Set<string>()
  readonly #faults: string[] = []
  readonly #origins = new WeakMap<Uint8Array, number>()
  readonly #verdicts = new WeakMap<Uint8Array, Judgement['kind']>()
  /** Deliveries that have ended at the present owner, by origin and destination. */
  readonly #ended = new Set<string>()
  /** The origin of the delivery that replaced a delivery, by origin and destination of the replaced one. */
  readonly #heirs = new Map<string, number>()
  readonly #begunBelow = new Map<string, number>()
  #committed = new Map<string, Set<number>>()
  #syncs = 0
  readonly #snapshots = new Set<number>()

  constructor({ users, audiences, destinations }: Settings) {
    this.users = users
    this.audiences = audiences
    this.destinationIds = ['crm', 'ads'].slice(0, destinations)
    this.member = this.#newMember(1)
  }

  // Actions of producers.

  change(userId: string, audience: string, member: boolean, agoMs: number, partition: number): void {
    const { nowMs } = this.log
    const fields = { type: 'membership', userId, member, changedAt: iso(nowMs - agoMs) }
    this.#tell(audience, partition, { ...fields, audienceId: audience, audienceName: audience })
  }

  /** Prepares the parts of one sync, which are to be sent one by one. */
  sync(audience: string, members: readonly string[], parts: number, agoMs: number, unit: number): void {
    const syncId = `sync-${++this.#syncs}`
    // No two syncs have the same time. After the loss of a disk, a repeat of one of them would be taken for
    // newer than the other.
    while (this.#snapshots.has(this.log.nowMs - agoMs)) this.log.nowMs++
    const snapshotMs = this.log.nowMs - agoMs
    this.#snapshots.add(snapshotMs)
    const fields = { type: 'sync', audienceId: audience, audienceName: audience, syncId, parts }
    for (let part = 1; part <= parts; part++) {
      const userIds = members.filter((_, index) => index % parts === part - 1)
      const value = { ...fields, snapshotAt: iso(snapshotMs), part, userIds }
      this.unsent.push(() => this.#tell(audience, unit, value))
    }
  }

  repeat(unit: number, pick: number): void {
    const records = this.log.records(topics.changes, unit)
    const record = records[pick % records.length]
    if (record === undefined || isOutOfTime(this.log, unit, record)) return
    const { key, value, headers } = record
    this.log.append(topics.changes, unit, { key, value, headers })
  }

  #tell(audience: string, partition: number, value: object): void {
    const headers = { 'source-id': spaceOf(audience) }
    this.log.append(topics.changes, partition, { value: Buffer.from(JSON.stringify(value)), headers })
  }

  // Actions of customers.

  /** Applies one of the late effects. */
  landEffect(pick: number): void {
    const [landing] = this.late.splice(pick % this.late.length, 1)
    if (landing === undefined) return
    this.seen.add('an effect came late')
    this.#apply(landing)
  }

  answer(request: Request, outcome: Outcome, mayHaveArrived: boolean, effect: Effect): void {
    this.requests.splice(this.requests.indexOf(request), 1)
    const isTaken = outcome.kind === 'answer' && outcome.status === 200
    if (isTaken && request.member === this.member) this.#end(request.originMs, request.to)
    if (!request.isSpent) this.#have(request, isTaken ? 'at once' : effect)
    // The late effect belongs to the request that was lost before this one.
    if (isTaken && mayHaveArrived && effect === 'late') this.#have(request, effect)
    request.exchange.answered(outcome, mayHaveArrived)
    request.exchange.released()
  }

  // Records that the owner reads.

  /** Reads all records, and lets the broker take all writes that follow from them. */
  async goOn(): Promise<void> {
    while (!this.member.owner.isLeaving && !this.#readAll()) await this.member.owner.landAll()
  }

  /** The first record of each retry topic and unit that the owner wasn't given yet. */
  get toComeDue(): readonly Due[] {
    const { member, log } = this
    if (member.owner.isLeaving) return []
    const heads: Due[] = []
    for (let unit = 0; unit < partitions; unit++) {
      for (const { topic, waitMs } of tiers) {
        const settled = log.settled.get(`${topic}/${unit}`)
        const record = log
          .records(topic, unit)
          .find((one) => settled?.has(one.offset) !== true && !member.taken.has(one))
        if (record !== undefined) heads.push({ topic, unit, record, dueMs: record.timestampMs + waitMs })
      }
    }
    return heads
  }

  comeDue({ topic, unit, record, dueMs }: Due): void {
    const { member, log } = this
    const { key, value, headers } = record
    log.nowMs = Math.max(log.nowMs, dueMs)
    member.taken.add(record)
    const [originMs, to] = [Number(headers['first-seen']), headers['destination-id'] ?? '']
    if (headers['delivered'] !== undefined) {
      this.seen.add('a delivered one was outlasted')
      this.#end(originMs, to)
    }
    this.#reopen(originMs, to)
    member.pipeline.accept(member.owner.hold(topic, unit, record), { key, value, headers })
  }

  // Changes of the owner.

  /** Commits what is settled so far. A commit survives every crash and takeover. */
  commit(): void {
    this.#committed = new Map([...this.log.settled].map(([name, offsets]) => [name, new Set(offsets)]))
  }

  /** Kills the program, and starts a new one on the same machine. */
  async crash({ effects, isWritten, ...how }: Crash): Promise<void> {
    this.seen.add('an owner crashed')
    this.#abandon(this.member, effects)
    this.member.kill((index) => isWritten[index % isWritten.length] === true)
    if (how.isDiskLost) this.log.disks.clear()
    await this.#takeOver(this.member.machine, how)
  }

  /**
   * Lets another program on another machine take over without a handover. The former program may not know of
   * the takeover.
   */
  async overtake({ isUnaware, isDiskLost, isCommitLost }: TakeOver & { isUnaware: boolean }): Promise<void> {
    this.seen.add(isUnaware ? 'an owner was overtaken, unreported' : 'an owner was overtaken')
    this.#bury(['late'])
    const { member } = this
    this.zombie = member
    member.owner.isZombie = true
    member.owner.isUnaware = isUnaware && !member.owner.isLeaving
    if (!isUnaware) member.letGo()
    await this.#takeOver(this.#otherMachine(isDiskLost), { isDiskLost, isCommitLost })
    member.seenBelow = new Map(this.#begunBelow)
  }

  leave(): void {
    this.member.owner.isLeaving = true
    this.member.letGo()
  }

  get isLeft(): boolean {
    return this.member.owner.isLeaving && this.member.isIdle
  }

  /**
   * Hands the units over. Everything that the owner had begun has ended, and is committed before the next
   * owner begins.
   */
  async handOver(isDiskLost: boolean): Promise<void> {
    this.seen.add('units were handed over')
    this.commit()
    const { owner, pipeline } = this.member
    await owner.units.stop()
    pipeline.stop()
    await this.#begin(this.#otherMachine(isDiskLost))
  }

  /**
   * Stops the program cleanly, and starts a new one on the same machine. Requests under way get `outcome` as
   * their answer.
   */
  async restart(outcome: Outcome, effect: Effect): Promise<void> {
    this.seen.add('a restart')
    const { member } = this
    const over = new Set<string>()
    const stopping = Promise.all([
      member.pipeline.drain().then(() => over.add('pipeline')),
      member.owner.units.stop().then(() => over.add('units')),
    ])
    while (over.size < 2) {
      for (const request of this.#requestsOf(member))
        this.answer(request, outcome, outcome.kind === 'timeout', effect)
      await member.owner.landAll()
    }
    await stopping
    if (!member.isIdle) throw new Error(`a clean stop leaves behind ${[...member.owner.out].join()}`)
    member.pipeline.stop()
    this.commit()
    await this.#begin(this.member.machine)
  }

  stop(): void {
    for (const member of [this.member, this.zombie]) member?.kill(() => false)
  }

  /** Runs until everything has ended. From now on, a request that fails succeeds at a later try. */
  async finish(pick: () => number): Promise<void> {
    while (this.member.owner.isLeaving) {
      await this.#drain(pick)
      if (this.isLeft) await this.handOver(false)
      else throw new Error(`an owner that leaves keeps ${[...this.member.owner.out].join()}`)
    }
    await this.#drain(pick)
    await this.zombie?.owner.landAll()
    this.#bury([pick() % 2 === 0 ? 'late' : 'at once'])
    await this.#drain(pick)
    const { owner } = this.member
    this.log.nowMs += 700_000
    owner.endSeenMs = this.log.nowMs
    const deadline = performance.now() + 1_000
    while (owner.out.size > 0 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      await this.#drain(pick)
    }
    // These late effects belong to deliveries that ended in the dead letters.
    while (this.late.length > 0) this.landEffect(pick())
  }

  /** Runs until the owner has read all records, and everything that it does has ended. */
  async #drain(pick: () => number): Promise<void> {
    const { member } = this
    const { owner } = member
    for (let steps = 0; ; steps++) {
      if (steps > 2_000) throw new Error('it comes to no end')
      if (this.late.length > 0 && pick() % 8 === 0) this.landEffect(pick())
      const isRead = owner.isLeaving || this.#readAll()
      await owner.landAll()
      const requests = this.#requestsOf(member)
      const [due] = this.toComeDue
      for (const request of requests) {
        const status = pick() % 4 === 0 ? 429 : 200
        this.answer(request, { kind: 'answer', status }, false, 'nothing')
      }
      if (requests.length > 0) continue
      if (due !== undefined) this.comeDue(due)
      else if (isRead && owner.pending.length === 0) return
    }
  }

  /** Reads all records. Returns true if there were none. */
  #readAll(): boolean {
    const { owner } = this.member
    let left = 0
    for (let unit = 0; unit < partitions; unit++) {
      for (const topic of [topics.changes, topics.states]) {
        left += owner.left(topic, unit)
        owner.deliver(topic, unit)
      }
    }
    return left === 0
  }

  /** Returns a text for each fault that is found when everything has ended. */
  faultsAtEnd(): readonly string[] {
    const { owner, pipeline } = this.member
    const { held, inFlight, queued } = pipeline
    const faults = [...this.#faults, ...owner.faults.map(String), ...owner.out]
    if (held.records + held.bytes + inFlight + queued > 0)
      faults.push(`the pipeline keeps ${JSON.stringify({ held, inFlight, queued })}`)
    for (let unit = 0; unit < partitions; unit++) {
      for (const topic of [topics.changes, ...needState]) {
        const [settled, all] = [this.log.commit(topic, unit), this.log.records(topic, unit).length]
        if (settled !== all) faults.push(`${topic}/${unit} is settled up to ${settled} of ${all}`)
      }
    }
    return [...faults, ...this.#wrongValues()]
  }

  #wrongValues(): string[] {
    const wrong: string[] = []
    const wanted = new Map<string, string>()
    for (let unit = 0; unit < partitions; unit++) {
      for (const [name, { value }] of referenceOf(this.log, unit, new Map())) wanted.set(name, value)
    }
    for (const to of this.destinationIds) {
      for (const audience of this.audiences) {
        const isBehind = this.#behind.has(`${to} ${spaceOf(audience)}`)
        this.seen.add(isBehind ? 'a destination is behind' : 'a destination is where it should be')
        for (const userId of this.users) {
          const stateKey = stateKeyOf({ to, userId, spaceId: spaceOf(audience) })
          const [applied, want] = [this.#applied.get(stateKey), wanted.get(`${userId}/${audience}`)]
          if (!isBehind && applied !== want) wrong.push(`${stateKey}: ${applied}, not ${want}`)
        }
      }
    }
    return wrong
  }

  // Knowledge about deliveries, in whichever program they are.

  #requestsOf(member: Member): readonly Request[] {
    return this.requests.filter((one) => one.member === member)
  }

  #have(sent: Sent, effect: Effect): void {
    if (effect === 'at once') this.#apply(sent)
    else if (effect === 'late') this.late.push(sent)
  }

  #apply(sent: Sent): void {
    this.#applied.set(stateKeyOf(sent), sent.value)
  }

  /**
   * Ends a delivery with its last retry. The requests of the delivery in other programs can't take effect
   * later than now.
   */
  #end(originMs: number, to: string): void {
    const isIts = (one: Sent): boolean => one.originMs === originMs && one.to === to
    for (const one of this.late.filter(isIts)) this.#apply(one)
    this.late = this.late.filter((one) => !isIts(one))
    for (const request of this.requests) {
      if (!isIts(request) || request.isSpent || request.member === this.member) continue
      this.#apply(request)
      request.isSpent = true
    }
    this.#ended.add(`${originMs} ${to}`)
  }

  /** Notes that another delivery replaces this one at the present owner. */
  #passOn(originMs: number, to: string, heirMs: number): void {
    const isIts = (one: Sent): boolean => one.originMs === originMs && one.to === to
    const pass = <S extends Sent>(one: S): S => (isIts(one) ? Object.assign(one, { originMs: heirMs }) : one)
    this.late = this.late.map((one) => pass({ ...one }))
    for (const request of this.requests) if (request.member !== this.member) pass(request)
    if (heirMs !== originMs) this.#heirs.set(`${originMs} ${to}`, heirMs)
  }

  /** Notes that the owner has the delivery in its hands, perhaps once more. */
  #reopen(originMs: number, to: string): void {
    this.#ended.delete(`${originMs} ${to}`)
    this.#heirs.delete(`${originMs} ${to}`)
  }

  #heirOf(originMs: number, to: string): number {
    const heir = this.#heirs.get(`${originMs} ${to}`)
    return heir === undefined ? originMs : this.#heirOf(heir, to)
  }

  // Starts and ends of programs.

  /** Ends all requests of a program that is gone, with these effects. */
  #abandon(member: Member, effects: readonly Effect[]): void {
    this.#requestsOf(member).forEach((request, index) => {
      if (!request.isSpent) this.#have(request, effects[index % effects.length] ?? 'nothing')
    })
    this.requests = this.requests.filter((one) => one.member !== member)
  }

  /** Ends the zombie, if there is one. */
  #bury(effects: readonly Effect[]): void {
    const { zombie } = this
    if (zombie === undefined) return
    this.#abandon(zombie, effects)
    zombie.kill(() => true)
    this.zombie = undefined
  }

  /**
   * Returns a machine that neither the owner nor the zombie uses. The disk of a zombie is locked. The disk of
   * the other machine may still have stores from an earlier use.
   */
  #otherMachine(isDiskLost: boolean): number {
    const next = [1, 2, 3].find((one) => one !== this.member.machine && one !== this.zombie?.machine) ?? 0
    for (const name of this.log.disks.keys())
      if (isDiskLost && name.startsWith(`machine-${next}/`)) this.log.disks.delete(name)
    return next
  }

  /** Starts an owner on a machine without a final commit of the owner before. */
  async #takeOver(machine: number, { isCommitLost }: TakeOver): Promise<void> {
    const { log } = this
    if (isCommitLost) {
      log.settled.clear()
      log.committed.clear()
      for (const [name, offsets] of this.#committed) log.settled.set(name, new Set(offsets))
    }
    for (let unit = 0; unit < partitions; unit++)
      for (const topic of needState) this.#begunBelow.set(`${topic}/${unit}`, log.records(topic, unit).length)
    await this.#begin(machine)
  }

  async #begin(machine: number): Promise<void> {
    this.member = this.#newMember(machine)
    await this.member.owner.begin()
    this.commit()
  }

  #newMember(machine: number): Member {
    return new Member(machine, (member) => [this.#newOwner(member, machine), this.#newPipeline(member)])
  }

  #newOwner(member: Member, machine: number): SimulatedOwner {
    return new SimulatedOwner(this.log, {
      machine,
      begunBelow: new Map(this.#begunBelow),
      ports: { deliver: (record, identify) => this.#deliver(member, record, identify) },
    })
  }

  /** Passes an Identify from the units to the pipeline. */
  #deliver(member: Member, record: HeldRecord, identify: Identify): void {
    const { timestampMs: originMs, topic, partition, offset } = record
    if (offset >= (member.seenBelow?.get(`${topic}/${partition}`) ?? Infinity)) {
      record.settle()
      return
    }
    this.#origins.set(identify.body, originMs)
    for (const to of this.destinationIds) {
      if (member === this.member) this.#reopen(originMs, to)
      if (!identify.isSuperseded) member.newest.set(stateKeyOf({ to, ...identify }), originMs)
    }
    member.pipeline.acceptIdentify(record, identify)
  }

  #newPipeline(member: Member): Pipeline {
    const { log } = this
    return createPipeline({
      catalog: () => this.#catalog(),
      sender: {
        post: ({ origin }, body, _signature, exchange) =>
          this.#post(member, new URL(origin).hostname.replace('.example', ''), body, exchange),
        async close() {},
      },
      outlet: {
        async produce({ topic, partition, key, value, headers }) {
          await member.owner.write(nameOf(topic), partition, { key, value, headers })
          return 'acknowledged'
        },
      },
      observer: {
        firstTried() {},
        attempted() {},
        omitted() {},
        delivered() {},
        parked: (_delivery, why) => this.seen.add(`parked: ${why}`),
        deadLettered: (reason) => this.seen.add(`dead: ${reason}`),
        notRouted() {},
        dropped: (delivery, why) => this.#dropped(member, delivery, why),
        unknownSource() {},
        repeated() {},
        failed() {},
      },
      ladder,
      topics: { events: 'events', retryPrefix: 'retry.', replays: 'replays', deadLetters: 'dead-letters' },
      limits: defaultLimits,
      maxInFlight: 1_000,
      laneWaitMs: 600_000,
      lanePatienceMs: 600_000,
      bulkhead: roomyBulkhead,
      breaker: { failureShare: 1, minResults: 1_000_000, windowMs: 10_000, openMs: 0, maxOpenMs: 0 },
      buffer: { records: 1_000, bytes: 10_000_000 },
      onPressure() {},
      onCongested() {},
      judge: (waiting) => this.#judge(member, waiting),
      needsBackfill: (to, spaceId) => {
        if (!member.owner.isKilled) this.#behind.add(`${to} ${spaceId}`)
      },
      now: () => log.nowMs,
    })
  }

  #post(member: Member, to: string, body: Uint8Array, exchange: Exchange): void {
    if (member.owner.isKilled) return
    const originMs = this.#origins.get(body)
    if (originMs === undefined) throw new Error('nobody knows where this comes from')
    const heirMs = member === this.member ? originMs : this.#heirOf(originMs, to)
    const sent: Sent = { to, ...readIdentify(body), originMs: heirMs }
    const isBusy = this.#requestsOf(member).some((one) => stateKeyOf(one) === stateKeyOf(sent))
    if (isBusy) this.#faults.push(`two under way: ${stateKeyOf(sent)}`)
    const isSpent = member !== this.member && this.#ended.has(`${heirMs} ${to}`)
    this.requests.push({ ...sent, member, exchange, isSpent })
  }

  async #judge(member: Member, waiting: WaitingDelivery): Promise<Judgement> {
    this.#origins.set(waiting.body, waiting.firstSeenMs)
    const judgement = await member.owner.units.judge(waiting)
    this.seen.add(`judged: ${judgement.kind}`)
    this.#verdicts.set(waiting.body, judgement.kind)
    if (judgement.kind === 'send_current') this.#origins.set(judgement.body, waiting.firstSeenMs)
    return judgement
  }

  #dropped(member: Member, { body, destinationId, firstSeenMs, property }: Delivery, why: DropReason): void {
    if (member !== this.member || property === undefined) return
    this.seen.add(why)
    if (this.#verdicts.get(body) === 'superseded') {
      this.#end(firstSeenMs, destinationId)
      return
    }
    this.seen.add('a newer one took the place of one that waited')
    const heirMs = member.newest.get(stateKeyOf({ to: destinationId, ...property }))
    if (heirMs !== undefined) this.#passOn(firstSeenMs, destinationId, heirMs)
  }

  #catalog() {
    const spaces = this.audiences.map(spaceOf)
    const destinations = this.destinationIds.map((id) => destinationOf(id, { sources: spaces }))
    return {
      sources: new Map(spaces.map((id) => [id, { enabled: true, kind: 'audiences' as const }])),
      destinations: new Map(destinations.map((destination) => [destination.id, destination])),
      destinationsBySource: new Map(spaces.map((id) => [id, destinations])),
    }
  }
}

type Settings = {
  readonly users: readonly string[]
  readonly audiences: readonly string[]
  readonly destinations: number
}

/** `isCommitLost` means that the group doesn't know what was settled since the last commit. */
type TakeOver = { readonly isDiskLost: boolean; readonly isCommitLost: boolean }

/**
 * A crash. `effects` are those of the requests under way. `isWritten` tells which of the writes under way the
 * broker got.
 */
type Crash = TakeOver & { readonly effects: readonly Effect[]; readonly isWritten: readonly boolean[] }

/**
 * Returns the space of an audience. Each audience has a separate space, so that a mark of one says nothing
 * about the others.
 */
function spaceOf(audience: string): string {
  return `space-${audience}`
}

function stateKeyOf({ to, userId, spaceId }: Pick<Sent, 'to' | 'userId' | 'spaceId'>): string {
  return `${to} ${userId} ${spaceId}`
}

function nameOf(topic: string): `retry.${string}` | 'dead-letters' {
  return topic === 'dead-letters' ? topic : `retry.${topic.slice('retry.'.length)}`
}

function readIdentify(body: Uint8Array): { userId: string; spaceId: string; value: string } {
  const { userId, traits, context } = JSON.parse(Buffer.from(body).toString())
  return { userId, spaceId: context.personas.space_id, value: String(Object.values(traits)[0]) }
}
