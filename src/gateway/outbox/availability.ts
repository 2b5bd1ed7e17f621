/**
 * The reason why Kafka accepts no records for a partition. `partition` is `undefined` if the reason concerns
 * the whole topic.
 */
export type Obstacle = {
  readonly topic: string
  readonly partition: number | undefined
  readonly reason: string
}

/**
 * The availability of a topic. `refused`: the number of its partitions that accept no records. `reason`: the
 * reason of the first of these partitions; '' if all partitions accept records.
 */
export type TopicAvailability = {
  readonly topic: string
  readonly refused: number
  readonly partitions: number
  readonly reason: string
}

export type AvailabilityOptions = {
  /** The topics that the gateway writes to. */
  readonly topics: readonly string[]
  readonly partitions: number
  /** Asks Kafka which partitions accept no records, and returns the reasons. Never rejects. */
  readonly check: () => Promise<readonly Obstacle[]>
  /**
   * Called when a topic changes between three states: all of its partitions accept records, some partitions
   * accept records, or no partition accepts records.
   */
  readonly onChange: (change: TopicAvailability) => void
  /** Returns milliseconds of a monotonic clock. */
  readonly now: () => number
}

const everyMs = 500
/**
 * If Kafka has acknowledged or answered nothing for this time (in milliseconds), the gateway calls `check`.
 * While no messages come in, the gateway has no other way to find out that Kafka is down.
 */
const silentMs = 5_000
/**
 * A partition isn't refused until it has failed for this time, in milliseconds. Until then, records for the
 * partition wait. This time is longer than a change of the partition's leader takes.
 */
export const patienceMs = 1_000

/**
 * A check makes a partition fully available again only if its last failed send was at least this time ago, in
 * milliseconds.
 */
const forgetMs = 5_000

type Failing = {
  readonly sinceMs: number
  readonly reason: string
  /**
   * The time of the last failed send. It is -Infinity if no send has failed, because only a check has found
   * an obstacle.
   */
  readonly failedMs: number
  /**
   * True if a check found no obstacle, although a send has failed recently. Records are then sent to the
   * partition again. If a send fails again, the partition is refused at once.
   */
  readonly isOnTrial: boolean
}

/**
 * Tracks which partitions accept records. The outbox reports each successful and each failed send. A refused
 * partition gets no more sends, so it would be refused forever. To prevent this, a timer asks Kafka about
 * failing partitions.
 */
export class Availability {
  readonly #options: AvailabilityOptions
  readonly #failing: ReadonlyMap<string, Map<number, Failing>>
  /**
   * The state that was last reported for each topic: whether none, some or all of its partitions are refused.
   */
  readonly #said = new Map<string, 'none' | 'some' | 'all'>()
  /**
   * The time until which the broker of each partition accepts nothing, because a quota is used up. Such a
   * partition doesn't fail: its broker has said when it goes on.
   */
  readonly #throttledUntilMs: ReadonlyMap<string, Map<number, number>>
  #lastSignMs: number
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: AvailabilityOptions) {
    this.#options = options
    this.#failing = new Map(options.topics.map((topic) => [topic, new Map()]))
    this.#throttledUntilMs = new Map(options.topics.map((topic) => [topic, new Map()]))
    this.#lastSignMs = options.now()
    this.#lookLater()
  }

  /**
   * Returns true if a record may be sent to a partition: the partition accepts records, is on trial
   * (`isOnTrial`), or began to fail less than `patienceMs` ago.
   */
  takes(topic: string, partition: number): boolean {
    const failing = this.#failing.get(topic)?.get(partition)
    return failing === undefined || !this.#isRefused(failing)
  }

  /** Returns true if at least one partition of a topic isn't refused. */
  isAvailable(topic: string): boolean {
    return this.refused(topic) < this.#options.partitions
  }

  /** Returns how many partitions of a topic are refused. */
  refused(topic: string): number {
    let count = 0
    for (const failing of this.#failing.get(topic)?.values() ?? []) if (this.#isRefused(failing)) count++
    return count
  }

  /**
   * Returns the reason why the first refused partition of a topic is refused, or '' if no partition is
   * refused.
   */
  reason(topic: string): string {
    for (const failing of this.#failing.get(topic)?.values() ?? []) {
      if (this.#isRefused(failing)) return failing.reason
    }
    return ''
  }

  /** Call this when the broker of a partition has announced that it accepts nothing for a while. */
  throttled(topic: string, partition: number, throttleMs: number): void {
    this.#lastSignMs = this.#options.now()
    this.#throttledUntilMs.get(topic)?.set(partition, this.#options.now() + throttleMs)
  }

  /**
   * Returns for how long the broker of a partition accepts nothing, in milliseconds. Without `partition`,
   * returns the longest such time of the topic's partitions.
   */
  throttleMs(topic: string, partition?: number): number {
    const until = this.#throttledUntilMs.get(topic)
    const untilMs =
      partition === undefined ? Math.max(0, ...(until?.values() ?? [])) : (until?.get(partition) ?? 0)
    return Math.max(0, untilMs - this.#options.now())
  }

  /** Returns true if the brokers of all partitions of a topic accept nothing for a while. */
  isThrottled(topic: string): boolean {
    const until = this.#throttledUntilMs.get(topic)
    if (until === undefined || until.size < this.#options.partitions) return false
    const nowMs = this.#options.now()
    return [...until.values()].every((untilMs) => untilMs > nowMs)
  }

  /** Call this when Kafka has accepted records for a partition. */
  worked(topic: string, partition: number): void {
    this.#lastSignMs = this.#options.now()
    if (this.#failing.get(topic)?.delete(partition) === true) this.#tell(topic)
  }

  /** Call this when Kafka did not accept records for a partition. `sinceMs`: the time when they were sent. */
  failed(topic: string, partition: number, reason: string, sinceMs: number): void {
    const failing = this.#failing.get(topic)
    const before = failing?.get(partition)
    const failedMs = this.#options.now()
    failing?.set(partition, { sinceMs: before?.sinceMs ?? sinceMs, reason, failedMs, isOnTrial: false })
    this.#tell(topic)
  }

  /** Stops the checks. After this call, nothing is reported. */
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
   * Makes a partition available again, because Kafka reports no obstacle for it. If its last failed send is
   * recent, only puts it on trial (`isOnTrial`), because Kafka may not know yet that a broker has died.
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
