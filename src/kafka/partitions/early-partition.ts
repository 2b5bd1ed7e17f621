import type { Feed, Gate } from './feed.ts'
import type { HeldRecord } from '../../message/held-record.ts'
import { LoanedRecord } from './loaned-record.ts'
import type { Partition } from './partition.ts'

/** A partition of a retry topic, whose records may be taken before their wait is over. */
export class EarlyPartition {
  readonly #partition: Partition
  readonly #feed: Feed
  readonly #gate: Gate

  constructor(partition: Partition, feed: Feed, gate: Gate) {
    this.#partition = partition
    this.#feed = feed
    this.#gate = gate
  }

  /** The id of the topic whose log this member reads, if it is known. */
  get topicId(): string | undefined {
    return this.#feed.topicId
  }

  /**
   * The offset after the last record that this member has fetched. Records before it can't be taken early.
   */
  get top(): number {
    return this.#partition.watermark.top
  }

  /** True once the partition belongs to another member, or begins again with another log. */
  get isLost(): boolean {
    return this.#partition.isLost
  }

  /** True while records may be taken: the buffer isn't full, and the member doesn't stop. */
  get mayTake(): boolean {
    return !this.#gate.isShut && !this.#partition.isFull && !this.#partition.isLost
  }

  /**
   * Takes a record once. Returns `taken` if it is settled, or if this member has it already. Returns `beyond`
   * if commits couldn't remember that it is settled, because too many records before it still wait.
   */
  take({
    offset,
    timestampMs,
    leaderEpoch = -1,
  }: {
    readonly offset: number
    readonly timestampMs: number
    readonly leaderEpoch?: number
  }): HeldRecord | 'taken' | 'beyond' {
    const receipt = this.#partition.takeEarly(offset, leaderEpoch)
    if (receipt === 'new') return new LoanedRecord(this.#partition, offset, timestampMs, false)
    return receipt === 'beyond' ? receipt : 'taken'
  }
}
