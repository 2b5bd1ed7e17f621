import type { HeldRecord, RecordContent } from '../../../src/message/held-record.ts'
import { type AudienceUnits, createAudienceUnits } from '../../../src/audience/unit/units.ts'
import type {
  AudienceObserver,
  AudiencePorts,
  Identify,
  LoggedState,
} from '../../../src/audience/audience-ports.ts'
import { defaultLimits } from '../../../src/message/limits.ts'
import { partitionOf } from '../../../src/message/partitioner.ts'
import { levelStores, type Stores } from '../../../src/audience/store/store.ts'
import { type Disks, MemoryStores } from './memory-stores.ts'

export const partitions = 2
export const topics = { changes: 'audience-changes', states: 'memberships', deletions: 'deletions' } as const
type Topic = (typeof topics)[keyof typeof topics] | `retry.${string}` | 'waiting' | 'dead-letters'

export type LogRecord = {
  readonly offset: number
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Record<string, string>
  readonly leaderEpoch: number
}

/** A record to be appended, and the function that tells its writer the offset. */
type PendingWrite = {
  readonly topic: Topic
  readonly partition: number
  readonly record: Pick<LogRecord, 'key' | 'value' | 'headers'>
  readonly acknowledge: (offset: number) => void
}

export type Delivered = { readonly identify: Identify; readonly offset: number; readonly ownerNumber: number }

/** The broker, the disks and the commits of the group. All of them outlive a program. */
export class SimulatedLog {
  readonly disks: Disks = new Map()
  readonly #records = new Map<string, LogRecord[]>()
  /** Offsets that an owner settled while it was the owner, by topic and partition. */
  readonly settled = new Map<string, Set<number>>()
  readonly committed = new Map<string, number>()
  nowMs = 1_700_000_000_000
  readonly delivered: Delivered[] = []
  readonly deletes: { userId: string; sources: readonly string[]; messageIds: readonly string[] }[] = []
  readonly dead: {
    topic: string
    partition: number
    offset: number
    reason: string
    value: Buffer | null
  }[] = []
  owners = 0
  /** The epoch of the leader, which is the same for all partitions. */
  leaderEpoch = 0
  /** Records of `memberships` that compaction has removed, as `unit/offset`. */
  readonly #compacted = new Set<string>()

  /**
   * Compacts `memberships` of a unit, as a broker does some time later. Below the watermark, only the last
   * record of each key stays. Records that aren't settled are never old enough for compaction.
   */
  compact(unit: number): void {
    const end = this.commit(topics.states, unit)
    const seen = new Set<string>()
    for (const { offset, key } of this.records(topics.states, unit).slice(0, end).toReversed()) {
      const name = key?.toString() ?? ''
      if (seen.has(name)) this.#compacted.add(`${unit}/${offset}`)
      seen.add(name)
    }
  }

  /** Returns the records of `memberships` that compaction has left. */
  left(unit: number): LogRecord[] {
    return this.records(topics.states, unit).filter(({ offset }) => !this.#compacted.has(`${unit}/${offset}`))
  }

  records(topic: Topic, partition: number): LogRecord[] {
    const name = `${topic}/${partition}`
    const records = this.#records.get(name) ?? []
    this.#records.set(name, records)
    return records
  }

  append(topic: Topic, partition: number, record: Partial<Omit<LogRecord, 'offset'>>): LogRecord {
    const records = this.records(topic, partition)
    const appended = {
      key: null,
      value: null,
      headers: {},
      timestampMs: this.nowMs,
      leaderEpoch: this.leaderEpoch,
      ...record,
      offset: records.length,
    }
    records.push(appended)
    return appended
  }

  /** Makes another replica the leader. This replica lacks the records of `memberships` from `end` on. */
  electUnclean(unit: number, end: number): void {
    this.records(topics.states, unit).splice(end)
    this.leaderEpoch++
  }

  /** Returns true if this epoch of a leader ends below the offset in a unit's `memberships`. */
  hasDiverged(unit: number, offset: number, leaderEpoch: number): boolean {
    const below = this.records(topics.states, unit).slice(0, offset)
    return below.some((record) => record.leaderEpoch > leaderEpoch)
  }

  settle(topic: string, partition: number, offset: number): void {
    const name = `${topic}/${partition}`
    const settled = this.settled.get(name) ?? new Set()
    settled.add(offset)
    this.settled.set(name, settled)
  }

  /** Commits the watermark and returns it. All records below it are settled. */
  commit(topic: string, partition: number): number {
    const name = `${topic}/${partition}`
    const settled = this.settled.get(name)
    let position = this.committed.get(name) ?? 0
    while (settled?.has(position) === true) position++
    this.committed.set(name, position)
    return position
  }
}

/** A program that owns all units, or that owned them before. */
export class SimulatedOwner {
  readonly log: SimulatedLog
  readonly number: number
  readonly units: AudienceUnits
  readonly pending: PendingWrite[] = []
  readonly full = new Map<string, boolean>()
  readonly outcomes = new Map<string, number>()
  readonly synced: Parameters<AudienceObserver['synced']>[0][] = []
  readonly restored: Parameters<AudienceObserver['restored']>[0][] = []
  readonly notSent: string[] = []
  readonly faults: Error[] = []
  /** Records that were handed over, and that are neither settled nor given back. */
  readonly out = new Set<string>()
  readonly givenBack: string[] = []
  /**
   * True if the group has another owner. This program may still be running, but what it settles doesn't
   * count.
   */
  isZombie = false
  /** True for a zombie that doesn't know that the group has another owner. */
  isUnaware = false
  /** True while the units go to another owner. What this owner has begun still ends here, and counts. */
  isLeaving = false
  /**
   * The time at which a fetch last showed that this owner was at the end of the changes, in epoch
   * milliseconds. 0 means that no fetch has shown this.
   */
  endSeenMs = 0
  readonly #next = new Map<string, number>()
  /**
   * The states of each unit that were settled when this owner began, as offsets. Others may settle more of
   * them, and this owner isn't told.
   */
  readonly #settledBefore = new Map<number, ReadonlySet<number>>()
  readonly #stores: MemoryStores
  /** An offset for each topic and unit. Earlier owners may have begun with the records below it. */
  readonly #begunBelow: ReadonlyMap<string, number>
  isKilled = false

  constructor(
    log: SimulatedLog,
    {
      machine = 1,
      ports = {},
      onDisk,
      stores = levelStores,
      begunBelow = new Map(),
    }: {
      machine?: number
      ports?: Partial<AudiencePorts>
      onDisk?: string
      stores?: Stores
      begunBelow?: ReadonlyMap<string, number>
    } = {},
  ) {
    this.log = log
    this.#begunBelow = begunBelow
    this.#stores = new MemoryStores(log.disks)
    this.number = ++log.owners
    const count = (what: string): void => {
      this.outcomes.set(what, (this.outcomes.get(what) ?? 0) + 1)
    }
    this.units = createAudienceUnits({
      folder: onDisk ?? `machine-${machine}`,
      partitions,
      limits: defaultLimits,
      logId: 'simulated',
      trustedForMs: 30 * 86_400_000,
      stores: onDisk === undefined ? this.#stores : stores,
      tickEveryMs: 2,
      ports: {
        spaceOf: (sourceId) => {
          if (sourceId === 'off') return 'disabled'
          if (sourceId === 'website') return 'no_space'
          return sourceId.startsWith('space') ? 'enabled' : 'unknown'
        },
        writeState: ({ partition, key, value }) =>
          this.write(topics.states, partition, { key, value, headers: {} }),
        move: async ({ topic, partition, key, value, headers }) => {
          const to = topic === topics.deletions ? topics.deletions : topics.changes
          await this.write(to, partition, { key, value, headers: { ...headers } })
          return 'acknowledged'
        },
        readStates: (unit, from) => statesOf(log, unit, from),
        haveStatesDiverged: async (...asked) => log.hasDiverged(...asked),
        firstStateMs: (unit) => Promise.resolve(log.records(topics.states, unit)[0]?.timestampMs),
        rangeOfStates: (unit) => Promise.resolve({ start: 0, end: log.records(topics.states, unit).length }),
        deliver: (record, identify) => {
          if (!this.isZombie) {
            log.delivered.push({ identify, offset: record.offset, ownerNumber: this.number })
          }
          record.settle()
        },
        deliverDelete: (record, { userId, deletes }) => {
          const sources = deletes.map(({ sourceId }) => sourceId)
          log.deletes.push({ userId, sources, messageIds: deletes.map(({ messageId }) => messageId) })
          record.settle()
        },
        refuse: (record, { value }, reason) => {
          const { topic, partition, offset } = record
          log.dead.push({ topic, partition, offset, reason, value })
          record.settle()
        },
        setUnitFull: (topic, unit, isFull) => this.full.set(`${topic}/${unit}`, isFull),
        endSeenMs: () => this.endSeenMs,
        fatal: (error) => {
          if (!this.isKilled) this.faults.push(error)
        },
        now: () => log.nowMs,
        monotonicMs: () => log.nowMs,
        observer: {
          changed: (outcome) => count(outcome),
          synced: (report) => this.synced.push(report),
          syncRefused: (_sync, reason) => count(reason),
          restored: (report) => this.restored.push(report),
          notSent: (why) => this.notSent.push(why),
        },
        ...ports,
      },
    })
  }

  async begin(): Promise<void> {
    for (let unit = 0; unit < partitions; unit++) {
      for (const topic of Object.values(topics)) {
        this.#next.set(`${topic}/${unit}`, this.log.commit(topic, unit))
      }
      this.#settledBefore.set(unit, new Set(this.log.settled.get(`${topics.states}/${unit}`)))
    }
    for (let unit = 0; unit < partitions; unit++) await this.units.prepare(unit)
  }

  left(topic: Topic, unit: number): number {
    return this.log.records(topic, unit).length - (this.#next.get(`${topic}/${unit}`) ?? 0)
  }

  /** Hands the next records of a partition to the units. */
  deliver(topic: Topic, unit: number, count = Infinity): void {
    const name = `${topic}/${unit}`
    const from = this.#next.get(name) ?? 0
    const records = this.log.records(topic, unit).slice(from, from + count)
    for (const record of records) {
      this.#next.set(name, record.offset + 1)
      if (topic === topics.states && this.#settledBefore.get(unit)?.has(record.offset) === true) continue
      const content: RecordContent = {
        key: record.key,
        value: record.value,
        headers: record.headers,
        leaderEpoch: record.leaderEpoch,
      }
      const held = this.hold(topic, unit, record)
      if (topic === topics.changes) this.units.acceptChange(held, content)
      else if (topic === topics.states) this.units.acceptState(held, content)
      else this.units.acceptDeletion(held, content)
    }
  }

  hold(topic: Topic, partition: number, { offset, timestampMs }: LogRecord): HeldRecord {
    const name = `${topic}/${partition}/${offset}`
    this.out.add(name)
    const end = (): void => {
      if (!this.out.delete(name) && !this.isKilled) throw new Error(`${name} came to its end twice`)
    }
    const { log } = this
    const isLost = (): boolean => this.isZombie || this.isKilled
    const isUnaware = (): boolean => this.isUnaware && !this.isKilled
    const isLeaving = (): boolean => this.isLeaving
    return {
      topic,
      partition,
      offset,
      timestampMs,
      isLate: false,
      get isAbandoned() {
        return isLeaving() || (isLost() && !isUnaware())
      },
      mayHaveBegun: offset < (this.#begunBelow.get(`${topic}/${partition}`) ?? 0),
      settle: () => {
        end()
        if (!isLost()) log.settle(topic, partition, offset)
      },
      giveBack: () => {
        end()
        this.givenBack.push(name)
      },
    }
  }

  /** Lets the broker take a write. If the write isn't acknowledged, the owner hears of it later, or never. */
  land(index: number, { isAcknowledged = true } = {}): void {
    const [write] = this.pending.splice(index, 1)
    if (write === undefined) return
    const { offset } = this.log.append(write.topic, write.partition, write.record)
    if (isAcknowledged) write.acknowledge(offset)
    else this.unacknowledged.push(() => write.acknowledge(offset))
  }

  readonly unacknowledged: (() => void)[] = []

  /** Lets the broker take all writes, and all writes that follow from them, until there are none. */
  async landAll(): Promise<void> {
    for (let quiet = 0; quiet < 3;) {
      const isQuiet = this.pending.length === 0 && this.unacknowledged.length === 0
      quiet = isQuiet ? quiet + 1 : 0
      while (this.pending.length > 0) this.land(0)
      for (const acknowledge of this.unacknowledged.splice(0)) acknowledge()
      await turns()
    }
  }

  /** Ends the process. `isWritten` returns true for each write under way that the broker got. */
  kill(isWritten: (index: number) => boolean): void {
    this.isKilled = true
    this.#stores.kill()
    for (const [index, write] of this.pending.splice(0).entries()) {
      if (isWritten(index)) this.log.append(write.topic, write.partition, write.record)
    }
    this.unacknowledged.splice(0)
    void this.units.stop().catch(() => undefined)
  }

  /**
   * Writes a record, and resolves with its offset when the write is acknowledged. Never resolves after
   * `kill`.
   */
  write(
    topic: Topic,
    partition: number,
    record: Pick<LogRecord, 'key' | 'value' | 'headers'>,
  ): Promise<number> {
    return new Promise((resolve) => {
      if (this.isKilled) return
      this.pending.push({ topic, partition, record, acknowledge: resolve })
    })
  }
}

/** Lets all work under way go on, as far as it doesn't wait for the log. */
export async function turns(count = 12): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

async function* statesOf(
  log: SimulatedLog,
  unit: number,
  from: number,
): AsyncGenerator<readonly LoggedState[]> {
  const records = log
    .left(unit)
    .flatMap(({ key, ...record }) => (key === null || record.offset < from ? [] : [{ ...record, key }]))
  // Batches are small and large in turn, so that they end at many places.
  for (let size = 1 + (from % 3); records.length > 0; size = size === 3 ? 50 : 3) {
    await Promise.resolve()
    yield records.splice(0, size)
  }
}

/** Returns `count` users that belong to this unit. */
export function usersOf(unit: number, count: number): string[] {
  const users: string[] = []
  for (let number = 0; users.length < count; number++) {
    const user = `user-${number}`
    if (partitionOf(user, partitions) === unit) users.push(user)
  }
  return users
}

export function iso(ms: number): string {
  return new Date(ms).toISOString()
}
