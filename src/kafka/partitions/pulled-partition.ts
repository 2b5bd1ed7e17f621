import type { Partition } from './partition.ts'
import type { Truncation } from '../fetch/positions.ts'
import { memoryOf } from '../wire/stored-commit.ts'

/**
 * A partition that the worker reads itself. The group assigns it, waits for the records that are lent before
 * it hands the partition over, and commits the offset before which all is done.
 */
export class PulledPartition {
  readonly #partition: Partition

  readonly #onOtherLog: (truncation: Truncation) => void

  constructor(partition: Partition, onOtherLog: (truncation: Truncation) => void) {
    this.#partition = partition
    this.#onOtherLog = onOtherLog
  }

  /**
   * What the commit of the previous owner says. `offset` is -1 if there is none. `isForeign` is true if
   * somebody else wrote or moved the commit, for example with a tool of Kafka. `topicId` is the id of the
   * topic whose log the commit describes, if it is known. `epoch` grows with each owner. From `otherFrom` on,
   * the log is known to have other records than this owner knew in its former tenure. It is Infinity if no
   * such offset is known.
   */
  get found(): {
    readonly offset: number
    readonly isForeign: boolean
    readonly topicId: string | undefined
    readonly epoch: number
    readonly otherFrom: number
  } {
    const { found, otherFrom } = this.#partition
    // A tool of kafkajs resets a commit to -2, which stands for the start of the log.
    if (found === undefined || found.offset < 0)
      return { offset: -1, isForeign: (found?.offset ?? -1) < -1, topicId: undefined, epoch: 0, otherFrom }
    const memory = memoryOf(found)
    const isForeign = found.moved !== undefined || memory === undefined
    return { offset: found.offset, isForeign, topicId: memory?.topicId, epoch: memory?.epoch ?? 0, otherFrom }
  }

  /** True once this member may start deliveries of the partition's records. */
  get isBegun(): boolean {
    return !this.#partition.isWaiting && !this.#partition.isLost
  }

  /** True once the partition belongs to another member. */
  get isLost(): boolean {
    return this.#partition.isLost
  }

  /** True if the group has removed this member, so that the next owner didn't wait for it. */
  get isElsewhere(): boolean {
    return this.#partition.isElsewhere
  }

  /** Below this offset, an owner that left no final mark may have begun to deliver records. */
  get begunBelow(): number {
    return this.#partition.begunBelow
  }

  /** The offset that this member has committed; 0 before its first commit. */
  get committedOffset(): number {
    return this.#partition.committedOffset
  }

  /** Notes that a record is taken. Until it is given back, no next owner begins the partition. */
  lend(): void {
    this.#partition.lend()
  }

  /** Notes that a taken record is done and its mark is written, or that it was left to the next owner. */
  giveBack(): void {
    this.#partition.giveBack()
  }

  /** Notes that all records before `offset` are done. The next commit has this offset. */
  moveTo(offset: number): void {
    this.#partition.passOver(offset)
  }

  /**
   * Notes before the partition begins that its log has other records from `offset` on than the previous owner
   * knew. The next commit then isn't higher than `offset`.
   */
  isOtherFrom(offset: number): void {
    this.#partition.isOtherFrom(offset)
  }

  /**
   * Notes that the log isn't the log that was read before. The partition is then lost, and begins again by
   * `kafka.onTruncation`.
   */
  isOtherLog(truncation: Truncation): void {
    if (!this.#partition.isLost) this.#onOtherLog(truncation)
  }
}
