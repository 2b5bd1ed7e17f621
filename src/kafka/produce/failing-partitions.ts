import { partitionName } from '../wire/partition-name.ts'
import { describeReasons } from '../wire/errors.ts'

/**
 * A partition that takes no records. While the partitions of a topic are unknown, `partition` is
 * `unknownPartition`.
 */
export type FailingPartition = { readonly topic: string; readonly partition: number; readonly reason: string }

export type FailingPartitionsOptions = {
  /**
   * How long a partition has to fail before it is reported, in milliseconds. In this time the producer can
   * find the new leader of the partition.
   */
  readonly patienceMs: number
  /**
   * Called with `isFailing` true when a partition has failed for `patienceMs`. Called with `isFailing` false
   * when this partition takes records again.
   */
  readonly onFailing: (failing: FailingPartition, isFailing: boolean) => void
  /**
   * Called with true when no partition takes records any more, and with false when a partition takes records
   * again.
   */
  readonly onStalled: (isStalled: boolean, reason: string) => void
  /**
   * Returns true if at least one partition can take records. Doesn't look at the partitions for which
   * `isFailing` returns true. Called if partitions are reported as failing, and no partition has taken
   * records for `patienceMs`. Must not reject.
   */
  readonly isAnyOpen: (isFailing: (topic: string, partition: number) => boolean) => Promise<boolean>
}

/** The partition number for records that have no partition yet. */
export const unknownPartition = -1

type Failing = { failing: FailingPartition; isReported: boolean; readonly timer: NodeJS.Timeout }

/**
 * Keeps track of the partitions that don't take the records written to them, and reports each of these
 * partitions. Kafka as a whole counts as stalled only when no partition takes records. If nothing is written
 * to a partition, it isn't known whether the partition takes records. `isAnyOpen` asks the brokers about such
 * partitions.
 */
export class FailingPartitions {
  readonly #options: FailingPartitionsOptions
  readonly #failing = new Map<string, Failing>()
  #lastTakenMs = -Infinity
  #isStalled = false
  #lookTimer: NodeJS.Timeout | undefined
  #isLooking = false
  #isStopped = false

  constructor(options: FailingPartitionsOptions) {
    this.#options = options
  }

  /** The number of reported partitions of each topic. */
  get reported(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { topic } of this.#reported()) counts.set(topic, (counts.get(topic) ?? 0) + 1)
    return counts
  }

  took(topic: string, partition: number): void {
    this.#lastTakenMs = performance.now()
    if (this.#failing.size > 0) this.#clear(topic, partition)
    if (this.#isStalled) this.#setStalled(false)
  }

  /** Notes that a record got a partition. This shows that the number of the topic's partitions is known. */
  placed(topic: string): void {
    if (this.#failing.size > 0) this.#clear(topic, unknownPartition)
  }

  /**
   * Notes that a partition has not taken records. If `isOverdue` is true, the partition has already failed
   * for `patienceMs`, and is reported at once.
   */
  failed(failing: FailingPartition, isOverdue = false): void {
    if (this.#isStopped) return
    const name = partitionName(failing)
    let known = this.#failing.get(name)
    if (known === undefined) {
      const timer = setTimeout(() => this.#report(name), this.#options.patienceMs)
      known = { failing, isReported: false, timer }
      this.#failing.set(name, known)
    }
    known.failing = failing
    if (isOverdue) this.#report(name)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#lookTimer)
    for (const { timer } of this.#failing.values()) clearTimeout(timer)
  }

  #report(name: string): void {
    const known = this.#failing.get(name)
    if (known === undefined || known.isReported) return
    clearTimeout(known.timer)
    known.isReported = true
    this.#options.onFailing(known.failing, true)
    void this.#look()
  }

  #clear(topic: string, partition: number): void {
    const name = partitionName({ topic, partition })
    const known = this.#failing.get(name)
    if (known === undefined) return
    clearTimeout(known.timer)
    this.#failing.delete(name)
    if (known.isReported) this.#options.onFailing(known.failing, false)
  }

  /**
   * Finds out whether any partition takes records, and reports a change to `onStalled`. While a partition is
   * reported as failing, repeats this every `patienceMs`.
   */
  async #look(): Promise<void> {
    if (this.#isLooking || this.#isOver) return
    this.#isLooking = true
    clearTimeout(this.#lookTimer)
    const { patienceMs, isAnyOpen } = this.#options
    const sinceMs = performance.now()
    const isOpen =
      sinceMs - this.#lastTakenMs < patienceMs ||
      (await isAnyOpen((topic, partition) => this.#failing.has(partitionName({ topic, partition }))))
    this.#isLooking = false
    if (this.#isOver) return
    if (this.#lastTakenMs < sinceMs) this.#setStalled(!isOpen)
    this.#lookTimer = setTimeout(() => void this.#look(), patienceMs)
  }

  get #isOver(): boolean {
    return this.#isStopped || this.#reported().length === 0
  }

  #setStalled(isStalled: boolean): void {
    if (isStalled === this.#isStalled) return
    this.#isStalled = isStalled
    this.#options.onStalled(isStalled, isStalled ? this.#describe() : '')
  }

  /** Lists the first reasons why partitions don't take records. */
  #describe(): string {
    return describeReasons([...this.#failing.values()].map(({ failing }) => failing.reason))
  }

  #reported(): readonly FailingPartition[] {
    return [...this.#failing.values()].flatMap(({ failing, isReported }) => (isReported ? failing : []))
  }
}
