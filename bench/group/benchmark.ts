import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, Kafka, RequestEvent } from 'kafkajs'
import { startKafka } from '../../src/development/kafka.ts'
import { createKafka } from '../../src/kafka/cluster/client.ts'
import { startConsumer } from '../../src/kafka/group/consumer.ts'
import { plainKafka } from '../support/plain-kafka.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { removeTopics } from '../support/topics.ts'
import type { GroupConsumer } from '../../src/kafka/group/consumer.ts'
import type { HeldRecord } from '../../src/message/held-record.ts'

export type GroupSettings = {
  /** Number of members in the group. If it is set, only sizes with this number are measured. */
  members?: number
  /** Number of partitions of each topic. If it is set, only sizes with this number are measured. */
  units?: number
}

/** The costs of a group of one size. */
type Measured = {
  members: number
  units: number
  /** Time from the start of the first member until all members had joined and all partitions had started. */
  startMs: number
  /**
   * The longest time from a record's append to its arrival at a member while one more member joins, over
   * the units that keep their owner.
   */
  joinStopMs: number
  /**
   * The longest time from a record's append to its arrival at a member, over the units that get another
   * owner: while that member joins, and while it leaves in order.
   */
  joinMoveMs: number
  leaveMoveMs: number
  idleCpuMsPerMember: number
  coordinatorRequestsPerMember: number
}

const sizes = [
  [1, 12],
  [10, 12],
  [1, 200],
  [10, 200],
  [50, 200],
  [1, 1_000],
  [10, 1_000],
  [50, 1_000],
] as const
const periodMs = 250
/** Pause before a measurement, in which the members finish the work that follows a start. */
const settleMs = 5_000

/**
 * Measures what a group costs at different sizes. All members run in this process. The group reads one
 * topic without a wait, and one topic whose records wait.
 */
export async function runGroupBenchmark(settings: Settings & GroupSettings): Promise<BenchmarkResult> {
  const { seconds = 10, members, units } = settings
  const kafka = await startKafka({ heapMb: 1024, report: say })
  const measured: Measured[] = []
  try {
    const chosen = sizes.filter((size) => (members ?? size[0]) === size[0] && (units ?? size[1]) === size[1])
    for (const [memberCount, unitCount] of chosen) {
      const one = await measure(kafka.brokers, memberCount, unitCount, seconds)
      measured.push(one)
      say(JSON.stringify(one))
    }
  } finally {
    await kafka.stop()
  }
  return {
    table: tableOf(measured),
    figures: {
      join_stop_ms: Math.max(...measured.map(({ joinStopMs }) => joinStopMs)),
      sizes: measured,
      period_ms: periodMs,
      node: process.version,
    },
  }
}

function tableOf(measured: readonly Measured[]): string {
  return [
    '',
    `a group of that many members in one process, Node ${process.version}; a member`,
    '',
    rowOf('members, units', [
      'start ms',
      'join stop ms',
      'join move ms',
      'leave move ms',
      'idle CPU ms/s',
      'requests/s',
    ]),
    ...measured.map((one) =>
      rowOf(`${one.members}, ${one.units}`, [
        String(one.startMs),
        String(one.joinStopMs),
        String(one.joinMoveMs),
        String(one.leaveMoveMs),
        one.idleCpuMsPerMember.toFixed(1),
        one.coordinatorRequestsPerMember.toFixed(2),
      ]),
    ),
  ].join('\n')
}

async function measure(
  brokers: readonly string[],
  memberCount: number,
  units: number,
  seconds: number,
): Promise<Measured> {
  const prefix = `bench-${randomBytes(3).toString('hex')}.`
  const topics = [`${prefix}events`, `${prefix}retry.1h`] as const
  await createTopics(brokers, topics, units)
  const group = new Group(brokers, prefix, topics, units)
  try {
    const startedMs = performance.now()
    for (let count = 0; count < memberCount; count++) await group.add()
    await group.settled()
    const startMs = Math.round(performance.now() - startedMs)
    await delay(settleMs)
    const idle = await group.idle(seconds)
    return { members: memberCount, units, startMs, ...(await group.stops()), ...idle }
  } finally {
    await group.stop()
    await removeTopics(brokers, prefix)
  }
}

async function createTopics(
  brokers: readonly string[],
  topics: readonly string[],
  partitions: number,
): Promise<void> {
  const admin = plainKafka(brokers).admin()
  await admin.connect()
  try {
    // The broker sets the timestamps, so that the time for writing a record doesn't count.
    const configEntries = [{ name: 'message.timestamp.type', value: 'LogAppendTime' }]
    for (const topic of topics)
      await admin.createTopics({
        waitForLeaders: false,
        topics: [{ topic, numPartitions: partitions, configEntries }],
      })
    // The wait that kafkajs offers fails if a broker doesn't know its own new topic yet.
    for (const topic of topics) while (!(await isServed(admin, topic))) await delay(50)
  } finally {
    await admin.disconnect()
  }
}

async function isServed(admin: Admin, topic: string): Promise<boolean> {
  try {
    return (await admin.fetchTopicOffsets(topic)).length > 0
  } catch {
    return false
  }
}

/** Names of the requests to a group's coordinator, which the benchmark counts. Source: the Kafka protocol. */
const ofCoordinator: ReadonlySet<string> = new Set([
  'FindCoordinator',
  'JoinGroup',
  'SyncGroup',
  'Heartbeat',
  'LeaveGroup',
  'DescribeGroups',
  'OffsetCommit',
  'OffsetFetch',
])

const quiet = { info() {}, warn() {}, error() {}, debug() {} }

type Arrivals = { owner: number; longestMs: number; hasMoved: boolean }

class Group {
  readonly #brokers: readonly string[]
  readonly #prefix: string
  readonly #topics: readonly [string, string]
  readonly #units: number
  readonly #members: GroupConsumer[] = []
  readonly #arrivals = new Map<number, Arrivals>()
  #requests = 0

  constructor(brokers: readonly string[], prefix: string, topics: readonly [string, string], units: number) {
    this.#brokers = brokers
    this.#prefix = prefix
    this.#topics = topics
    this.#units = units
  }

  async add(): Promise<void> {
    const number = this.#members.length
    const member = await startConsumer({
      kafka: this.#kafka(),
      groupId: `${this.#prefix}group`,
      sessionTimeoutMs: 30_000,
      commitIntervalMs: 1_000,
      handoverMs: 8_000,
      partitions: this.#units,
      onTruncation: 'earliest',
      topics: [
        { topic: this.#topics[0], waitMs: 0 },
        { topic: this.#topics[1], waitMs: 3_600_000 },
      ],
      onRecord: (record) => {
        this.#arrived(number, record)
        record.settle()
      },
      onAssigned() {},
      onFatal(error) {
        throw error
      },
      log: quiet,
    })
    this.#members.push(member)
  }

  /** Waits until all members have joined and have started all partitions. */
  async settled(): Promise<void> {
    for (;;) {
      const owned = this.#members.reduce((sum, { partitions }) => sum + [...partitions].length, 0)
      if (owned === this.#topics.length * this.#units && this.#members.every(({ isJoined }) => isJoined))
        return
      await delay(50)
    }
  }

  async idle(
    seconds: number,
  ): Promise<Pick<Measured, 'idleCpuMsPerMember' | 'coordinatorRequestsPerMember'>> {
    const before = { cpu: process.cpuUsage(), requests: this.#requests }
    await delay(seconds * 1_000)
    const { user, system } = process.cpuUsage(before.cpu)
    const each = seconds * this.#members.length
    return {
      idleCpuMsPerMember: round((user + system) / 1_000 / each, 2),
      coordinatorRequestsPerMember: round((this.#requests - before.requests) / each, 2),
    }
  }

  async stops(): Promise<Pick<Measured, 'joinStopMs' | 'joinMoveMs' | 'leaveMoveMs'>> {
    const producing = await this.#produce()
    try {
      await delay(settleMs)
      const join = await this.#longest(() => this.add())
      const leave = await this.#longest(async () => this.#members.pop()?.stop())
      return { joinStopMs: join.stayedMs, joinMoveMs: join.movedMs, leaveMoveMs: leave.movedMs }
    } finally {
      await producing.stop()
    }
  }

  /**
   * Returns the longest time from a record's append to its arrival while the members change. `stayedMs`:
   * over the units that keep their owner. `movedMs`: over the units that get another owner.
   */
  async #longest(change: () => Promise<unknown>): Promise<{ stayedMs: number; movedMs: number }> {
    for (const arrivals of this.#arrivals.values()) Object.assign(arrivals, { longestMs: 0, hasMoved: false })
    await change()
    await this.settled()
    // A move of a unit is noticed only at the unit's next record.
    await delay(4 * periodMs)
    const longest = (isMoved: boolean): number => {
      const all = [...this.#arrivals.values()].filter(({ hasMoved }) => hasMoved === isMoved)
      return Math.round(Math.max(0, ...all.map(({ longestMs }) => longestMs)))
    }
    return { stayedMs: longest(false), movedMs: longest(true) }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()))
  }

  #arrived(owner: number, { partition, timestampMs }: HeldRecord): void {
    const afterMs = Date.now() - timestampMs
    const arrivals = this.#arrivals.get(partition)
    if (arrivals === undefined) {
      this.#arrivals.set(partition, { owner, longestMs: afterMs, hasMoved: false })
      return
    }
    arrivals.longestMs = Math.max(arrivals.longestMs, afterMs)
    arrivals.hasMoved ||= owner !== arrivals.owner
    arrivals.owner = owner
  }

  /** Creates a client that counts the requests of its consumers to the coordinator. */
  #kafka(): Kafka {
    const kafka = createKafka(
      {
        brokers: this.#brokers,
        clientId: 'bench',
        ssl: false,
        saslMechanism: 'none',
        saslUsername: undefined,
        saslPassword: undefined,
      },
      quiet,
    )
    const make = kafka.consumer.bind(kafka)
    kafka.consumer = (config) => {
      const consumer = make(config)
      consumer.on(consumer.events.REQUEST, ({ payload: { apiName } }: RequestEvent) => {
        if (ofCoordinator.has(apiName)) this.#requests++
      })
      return consumer
    }
    return kafka
  }

  /** Writes a record to each unit every `periodMs` milliseconds, until it is stopped. */
  async #produce(): Promise<{ stop(): Promise<void> }> {
    const producer = plainKafka(this.#brokers).producer()
    await producer.connect()
    let isSending: Promise<unknown> = Promise.resolve()
    const timer = setInterval(() => {
      const messages = Array.from({ length: this.#units }, (_, partition) => ({ partition, value: 'x' }))
      isSending = producer.send({ topic: this.#topics[0], messages })
    }, periodMs)
    return {
      async stop() {
        clearInterval(timer)
        await isSending
        await producer.disconnect()
      },
    }
  }
}
