import type { Feed } from './feed.ts'
import { partitionName } from '../wire/partition-name.ts'
import { Partition } from './partition.ts'
import { type PartitionState, stateOf } from './partition-state.ts'
import type { TopicSubscription } from './topic-subscription.ts'

/** The partitions that a member owns now, and the feeds of the partitions that were started. */
export class OwnedPartitions {
  readonly #subscriptions: readonly TopicSubscription[]
  readonly #partitions = new Map<string, Partition>()
  readonly #feeds = new Map<Partition, Feed>()
  /** The number of partitions that this member has been given since its start. */
  #taken = 0

  readonly #notesPassedOn: boolean

  /** @param notesPassedOn false if no partition notes what was passed on, whatever its subscription says */
  constructor(subscriptions: readonly TopicSubscription[], notesPassedOn: boolean) {
    this.#subscriptions = subscriptions
    this.#notesPassedOn = notesPassedOn
  }

  get all(): readonly Partition[] {
    return [...this.#partitions.values()]
  }

  get waiting(): readonly Partition[] {
    return this.all.filter(({ isWaiting }) => isWaiting)
  }

  get begun(): readonly Partition[] {
    return this.all.filter(({ isWaiting }) => !isWaiting)
  }

  /**
   * True if all partitions are started. A partition that can't be read now counts as started, but a stopped
   * partition doesn't.
   */
  get isStarted(): boolean {
    return this.all.every(
      ({ isWaiting, trouble, isStopped }) => !isWaiting || (trouble !== undefined && !isStopped),
    )
  }

  get feeds(): Iterable<Feed> {
    return this.#feeds.values()
  }

  /** Facts about all partitions, for metrics and probes. */
  get states(): readonly PartitionState[] {
    return this.all.map((partition) => stateOf(partition, this.#feeds.get(partition)))
  }

  get(topic: string, id: number): Partition | undefined {
    return this.#partitions.get(partitionName({ topic, partition: id }))
  }

  feedOf(partition: Partition): Feed | undefined {
    return this.#feeds.get(partition)
  }

  /**
   * Returns the partition if this member owns it already. Otherwise adds it as a new partition, which isn't
   * started yet.
   */
  add(topic: string, id: number): Partition {
    const known = this.get(topic, id)
    if (known !== undefined) return known
    const subscription = this.#subscriptions.find((one) => one.topic === topic)
    const turn = turnOf(this.#taken++)
    const partition = new Partition(topic, id, subscription?.waitMs ?? 0, {
      ...subscription,
      notesPassedOn: this.#notesPassedOn && subscription?.notesPassedOn === true,
      turn,
    })
    this.#partitions.set(partitionName({ topic, partition: id }), partition)
    return partition
  }

  begin(partition: Partition, feed: Feed): void {
    this.#feeds.set(partition, feed)
    feed.open()
  }

  /** Removes a partition, and closes its feed. */
  remove(partition: Partition): void {
    this.#partitions.delete(partitionName({ topic: partition.topic, partition: partition.id }))
    this.#feeds.get(partition)?.close()
    this.#feeds.delete(partition)
  }

  /** The number of partitions that can't be read now, by topic. */
  get troubled(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const partition of this.#partitions.values()) {
      const trouble = this.#feeds.get(partition)?.trouble ?? partition.trouble
      counts.set(partition.topic, (counts.get(partition.topic) ?? 0) + (trouble === undefined ? 0 : 1))
    }
    return counts
  }
}

/**
 * Returns the n-th number of a sequence of numbers between 0 and 1. Any count of consecutive numbers of the
 * sequence is spread evenly. This is done by the golden ratio, as in Fibonacci hashing.
 */
function turnOf(n: number): number {
  return (n * 0.618_033_988_749_895) % 1
}
