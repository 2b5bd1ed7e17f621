import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import type { PipelineOptions } from '../../../src/pipeline/pipeline-ports.ts'
import type { Effect } from '../pipeline/simulated-customers.ts'
import { destinationOf } from '../pipeline/stage.ts'
import { isOutOfTime, referenceOf } from './unit/reference.ts'
import { iso, type LogRecord, partitions, SimulatedLog, topics } from './simulated-log.ts'
import { stateKeyOf, WholeCustomers } from './whole-customers.ts'
import { Member, tiers } from './whole-member.ts'

/**
 * A model of the units with the states of audiences, and of the deliveries of these states. Units and
 * pipelines are real, and joined as a worker joins them. Several programs run one after the other, or at
 * once. The broker, the clock, the disks and the customers are simulated.
 */

const needState = [topics.states, 'waiting' as const, ...tiers.map(({ topic }) => topic)]

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
  readonly hasQueue: boolean
  readonly isCramped: boolean
  readonly isPrompt: boolean
  readonly maxInFlight: number
  /** The destinations that are paused. */
  readonly paused = new Set<string>()
  member: Member
  /** The program that owned the units before, and is still running. */
  zombie: Member | undefined
  /** Parts of syncs that weren't sent yet. */
  readonly unsent: (() => void)[] = []
  /** The kinds of events that have happened. */
  readonly seen = new Set<string>()
  readonly customers = new WholeCustomers({ present: () => this.member, seen: this.seen })
  /** Destinations that need a backfill of a space, as `destination space`. */
  readonly behind = new Set<string>()
  readonly #begunBelow = new Map<string, number>()
  #committed = new Map<string, Set<number>>()
  #syncs = 0
  readonly #snapshots = new Set<number>()

  constructor({ users, audiences, destinations, hasQueue, isCramped, isPrompt, maxInFlight }: Settings) {
    this.hasQueue = hasQueue
    this.isCramped = isCramped
    this.isPrompt = isPrompt
    this.maxInFlight = maxInFlight
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

  // Records that the owner reads.

  /** Reads all records, and lets the broker take all writes that follow from them. */
  async goOn(): Promise<void> {
    while (!this.member.owner.isLeaving && !this.#readAll()) await this.member.owner.landAll()
  }

  /** For each retry topic and unit, the first record that the owner hasn't been given yet. */
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
    const { member, log, customers } = this
    const { key, value, headers } = record
    log.nowMs = Math.max(log.nowMs, dueMs)
    member.taken.add(record)
    const [originMs, to] = [Number(headers['first-seen']), headers['destination-id'] ?? '']
    if (headers['delivered'] !== undefined) {
      this.seen.add('a delivered one was outlasted')
      customers.end(originMs, to)
    }
    customers.reopen(originMs, to)
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
    this.customers.abandon(this.member, effects)
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
    const { member, customers } = this
    member.queue?.leave()
    const over = new Set<string>()
    const stopping = Promise.all([
      member.pipeline.drain().then(() => over.add('pipeline')),
      member.owner.units.stop().then(() => over.add('units')),
    ])
    while (over.size < 2) {
      for (const request of customers.requestsOf(member))
        customers.answer(request, outcome, outcome.kind === 'timeout', effect)
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
    this.paused.clear()
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
    while (this.customers.late.length > 0) this.customers.landEffect(pick())
  }

  /** Runs until the owner has read all records, and everything that it does has ended. */
  async #drain(pick: () => number): Promise<void> {
    const { member, customers } = this
    const { owner } = member
    for (let steps = 0; ; steps++) {
      if (steps > 2_000) throw new Error('it comes to no end')
      if (customers.late.length > 0 && pick() % 8 === 0) customers.landEffect(pick())
      const isRead = owner.isLeaving || this.#readAll()
      await owner.landAll()
      const requests = customers.requestsOf(member)
      const [due] = this.toComeDue
      for (const request of requests) {
        const status = pick() % 4 === 0 ? 429 : 200
        customers.answer(request, { kind: 'answer', status }, false, 'nothing')
      }
      if (requests.length > 0) continue
      if (this.#pull(pick)) continue
      if (due !== undefined) this.comeDue(due)
      else if (isRead && owner.pending.length === 0) return
    }
  }

  /** Lets what waits in a queue come. Returns false if nothing waits. */
  #pull(pick: () => number): boolean {
    const { queue, pipeline } = this.member
    if (queue === undefined || this.member.owner.isLeaving) return false
    if (queue.wanted > 0) queue.hand(1 + (pick() % 3))
    else {
      const [to] = queue.waiting()
      if (to === undefined) return false
      pipeline.refill(to)
    }
    return true
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
    const faults = [...this.customers.faults, ...owner.faults.map(String), ...owner.out]
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
        const isBehind = this.behind.has(`${to} ${spaceOf(audience)}`)
        this.seen.add(isBehind ? 'a destination is behind' : 'a destination is where it should be')
        for (const userId of this.users) {
          const stateKey = stateKeyOf({ to, userId, spaceId: spaceOf(audience) })
          const [applied, want] = [this.customers.applied.get(stateKey), wanted.get(`${userId}/${audience}`)]
          if (!isBehind && applied !== want) wrong.push(`${stateKey}: ${applied}, not ${want}`)
        }
      }
    }
    return wrong
  }

  // Starts and ends of programs.

  /** Ends the zombie, if there is one. */
  #bury(effects: readonly Effect[]): void {
    const { zombie } = this
    if (zombie === undefined) return
    this.customers.abandon(zombie, effects)
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
    return new Member(this, machine, new Map(this.#begunBelow))
  }

  /** Returns the catalog, in which each destination gets the messages of all spaces. */
  catalog(): ReturnType<PipelineOptions['catalog']> {
    const spaces = this.audiences.map(spaceOf)
    const destinations = this.destinationIds.map((id) =>
      destinationOf(id, {
        sources: spaces,
        maxInFlight: this.maxInFlight,
        state: this.paused.has(id) ? 'paused' : 'on',
      }),
    )
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
  /** True if what only waits for its turn joins a queue. */
  readonly hasQueue: boolean
  /** True if lanes overflow at once. */
  readonly isCramped: boolean
  /** True if what was pulled from a queue comes at once. */
  readonly isPrompt: boolean
  /** The limit on requests in flight of each destination. */
  readonly maxInFlight: number
}

/** `isCommitLost` means that the group doesn't know what was settled since the last commit. */
type TakeOver = { readonly isDiskLost: boolean; readonly isCommitLost: boolean }

/**
 * A crash. `effects` are those of the requests under way. `isWritten` says for each write under way whether
 * the broker got it.
 */
type Crash = TakeOver & { readonly effects: readonly Effect[]; readonly isWritten: readonly boolean[] }

/**
 * Returns the space of an audience. Each audience has a separate space, so that a mark of one says nothing
 * about the others.
 */
function spaceOf(audience: string): string {
  return `space-${audience}`
}
