/**
 * The reason why Kafka takes no records of a partition. `partition` is `undefined` if the reason holds for
 * the whole topic.
 */
export type Obstacle = {
  readonly topic: string
  readonly partition: number | undefined
  readonly reason: string
}

/**
 * A topic, and how many of its partitions take no records (`refused`). `reason`: why the first refused
 * partition takes no records; '' if all partitions take records.
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
  /** The number of partitions of each topic. */
  readonly partitions: number
  /** Returns what keeps Kafka from taking records. Never rejects. */
  readonly check: () => Promise<readonly Obstacle[]>
  /**
   * Called when a topic changes between three states: all of its partitions take records, some take records,
   * or none takes records.
   */
  readonly onChange: (change: TopicAvailability) => void
  /** Returns milliseconds of a monotonic clock. */
  readonly now: () => number
}

const everyMs = 500
/**
 * How long Kafka must have given no sign of life before the gateway asks Kafka, in milliseconds. Without
 * traffic, only asking shows that Kafka is down.
 */
const silentMs = 5_000
/**
 * The time that a failing partition has for accepting records again, in milliseconds. A change of its leader
 * takes less than this time. During this time, records for the partition wait, and no request for the
 * partition is refused.
 */
export const patienceMs = 1_000

/**
 * How long ago a partition's last failed send must be, in milliseconds. Only then does a check without an
 * obstacle clear the partition.
 */
const forgetMs = 5_000

type Failing = {
  readonly sinceMs: number
  readonly reason: string
  /**
   * The time of the last failed send. -Infinity if no send has failed and only the check has found an
   * obstacle.
   */
  readonly failedMs: number
  /**
   * True after a check in which Kafka reports no obstacle, although a send has failed recently. Then records
   * are sent again, and the next failure makes the partition refused at once.
   */
  readonly isOnTrial: boolean
}

/**
 * Tracks which partitions take records. Requests report successes and failures. Once the gateway refuses
 * messages for a partition, no request can report on that partition any more. So a timer asks Kafka about
 * failing partitions. Otherwise they would be refused forever.
 */
export class Availability {
  readonly #options: AvailabilityOptions
  readonly #failing: ReadonlyMap<string, Map<number, Failing>>
  /** The last reported state of each topic: none, some or all of its partitions are refused. */
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

  /**
   * Returns true if a record may be sent to a partition: the partition takes records, is on trial, or began
   * to fail less than `patienceMs` ago.
   */
  takes(topic: string, partition: number): boolean {
    const failing = this.#failing.get(topic)?.get(partition)
    return failing === undefined || !this.#isRefused(failing)
  }

  /** Returns true if any partition of a topic takes records. */
  isAvailable(topic: string): boolean {
    return this.refused(topic) < this.#options.partitions
  }

  /** Returns how many partitions of a topic take no records. */
  refused(topic: string): number {
    let count = 0
    for (const failing of this.#failing.get(topic)?.values() ?? []) if (this.#isRefused(failing)) count++
    return count
  }

  /** Returns the reason why a topic doesn't take all records, or '' if it takes all records. */
  reason(topic: string): string {
    for (const failing of this.#failing.get(topic)?.values() ?? []) {
      if (this.#isRefused(failing)) return failing.reason
    }
    return ''
  }

  /** Notes that Kafka took records of a partition. */
  worked(topic: string, partition: number): void {
    this.#lastSignMs = this.#options.now()
    if (this.#failing.get(topic)?.delete(partition) === true) this.#tell(topic)
  }

  /** Notes that Kafka did not take records of a partition that were sent at `sinceMs`. */
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
   * Clears a partition for which Kafka reports no obstacle. Kafka may not know yet that a broker has died, so
   * a partition whose last failed send is recent is only put on trial.
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
