/** What keeps Kafka from taking records of a partition; `partition` is `undefined` for all of its topic. */
export type Obstacle = {
  readonly topic: string
  readonly partition: number | undefined
  readonly reason: string
}

/**
 * `refused`: partitions of the topic that take no records. `reason`: of the first of them; '' when there is
 * none.
 */
export type TopicAvailability = {
  readonly topic: string
  readonly refused: number
  readonly partitions: number
  readonly reason: string
}

export type AvailabilityOptions = {
  /** Those that records are written to. */
  readonly topics: readonly string[]
  /** Of each of them. */
  readonly partitions: number
  /** Gives what keeps Kafka from taking records. Never rejects. */
  readonly check: () => Promise<readonly Obstacle[]>
  /** Called when a topic no longer takes all records, when it takes none, and when it takes all again. */
  readonly onChange: (change: TopicAvailability) => void
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

const everyMs = 500
/** Without traffic nothing shows that Kafka has gone: it is asked this long after the last sign of life. */
const silentMs = 5_000
/**
 * A partition that changes its leader takes records again within this: until then they wait, and nobody is
 * refused.
 */
export const patienceMs = 1_000

/**
 * What was refused because of a send may be tried again, though nothing seems to be in the way, this long
 * after it.
 */
const forgetMs = 5_000

type Failing = {
  readonly sinceMs: number
  readonly reason: string
  /** When a send was last seen to fail; -Infinity where only the check has found something. */
  readonly failedMs: number
  /** Kafka says that nothing is in the way: records are sent, and a failure is believed at once. */
  readonly isOnTrial: boolean
}

/**
 * Which partitions take records. Requests find out, and while they can't, since what would be written to a
 * sick partition is refused, it is looked for: else one that has become sick would stay so for ever.
 */
export class Availability {
  readonly #options: AvailabilityOptions
  readonly #failing: ReadonlyMap<string, Map<number, Failing>>
  /** What was last said of a topic: how many partitions it refuses, none, all, or a number between. */
  readonly #said = new Map<string, 'none' | 'some' | 'all'>()
  #lastSignMs: number
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: AvailabilityOptions) {
    this.#options = options
    this.#failing = new Map(options.topics.map((topic) => [topic, new Map()]))
    this.#lastSignMs = options.now()
    this.#lookLater()
  }

  /** Whether a record of this partition may be sent: it takes them, or has failed only now. */
  takes(topic: string, partition: number): boolean {
    const failing = this.#failing.get(topic)?.get(partition)
    return failing === undefined || !this.#isRefused(failing)
  }

  /** Whether any partition of a topic takes records. */
  isAvailable(topic: string): boolean {
    return this.refused(topic) < this.#options.partitions
  }

  /** How many partitions of a topic take no records. */
  refused(topic: string): number {
    let count = 0
    for (const failing of this.#failing.get(topic)?.values() ?? []) if (this.#isRefused(failing)) count++
    return count
  }

  /** Why records of a topic aren't taken; '' when all are. */
  reason(topic: string): string {
    for (const failing of this.#failing.get(topic)?.values() ?? []) {
      if (this.#isRefused(failing)) return failing.reason
    }
    return ''
  }

  /** Records of a partition were taken. */
  worked(topic: string, partition: number): void {
    this.#lastSignMs = this.#options.now()
    if (this.#failing.get(topic)?.delete(partition) === true) this.#tell(topic)
  }

  /** Records of a partition, which were sent at `sinceMs`, were not taken. */
  failed(topic: string, partition: number, reason: string, sinceMs: number): void {
    const failing = this.#failing.get(topic)
    const before = failing?.get(partition)
    const failedMs = this.#options.now()
    failing?.set(partition, { sinceMs: before?.sinceMs ?? sinceMs, reason, failedMs, isOnTrial: false })
    this.#tell(topic)
  }

  /** Nothing changes after it. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #isRefused({ sinceMs, isOnTrial }: Failing): boolean {
    return !isOnTrial && this.#options.now() - sinceMs >= patienceMs
  }

  #lookLater(): void {
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#look(), everyMs)
  }

  async #look(): Promise<void> {
    const { check, now } = this.#options
    const isFailing = [...this.#failing.values()].some(({ size }) => size > 0)
    if (isFailing || now() - this.#lastSignMs >= silentMs) {
      const obstacles = await check()
      if (this.#isStopped) return
      this.#found(obstacles)
    }
    this.#lookLater()
  }

  #found(obstacles: readonly Obstacle[]): void {
    this.#lastSignMs = this.#options.now()
    const byTopic = Map.groupBy(obstacles, ({ topic }) => topic)
    for (const [topic, failing] of this.#failing) {
      const reasons = this.#reasonsOf(byTopic.get(topic) ?? [])
      for (const [partition, before] of failing)
        if (!reasons.has(partition)) this.#clear(failing, partition, before)
      for (const [partition, reason] of reasons) {
        const { sinceMs = this.#lastSignMs, failedMs = -Infinity } = failing.get(partition) ?? {}
        failing.set(partition, { sinceMs, reason, failedMs, isOnTrial: false })
      }
      this.#tell(topic)
    }
  }

  /**
   * Nothing is in the way of this partition, as far as Kafka says: it may not know yet that a broker has
   * died.
   */
  #clear(failing: Map<number, Failing>, partition: number, before: Failing): void {
    const agoMs = this.#options.now() - before.failedMs
    if (agoMs >= forgetMs) failing.delete(partition)
    else if (agoMs >= patienceMs) failing.set(partition, { ...before, isOnTrial: true })
  }

  #reasonsOf(obstacles: readonly Obstacle[]): Map<number, string> {
    const reasons = new Map<number, string>()
    for (const { partition, reason } of obstacles) {
      if (partition !== undefined) reasons.set(partition, reason)
      else for (const each of this.#allPartitions()) reasons.set(each, reason)
    }
    return reasons
  }

  #allPartitions(): Iterable<number> {
    return Array.from({ length: this.#options.partitions }).keys()
  }

  #tell(topic: string): void {
    if (this.#isStopped) return
    const { partitions, onChange } = this.#options
    const refused = this.refused(topic)
    const state = refused === 0 ? 'none' : refused < partitions ? 'some' : 'all'
    if (state === (this.#said.get(topic) ?? 'none')) return
    this.#said.set(topic, state)
    onChange({ topic, refused, partitions, reason: this.reason(topic) })
  }
}
