import type { LeftOut } from '../wire/went-nowhere-part.ts'

export type PassedOnCommit = {
  readonly topic: string
  readonly partition: number
  /** The topic's id when the offset was committed. */
  readonly topicId: string | undefined
  /** The committed offset, and the leader epoch of the record before it. */
  readonly offset: number
  readonly leaderEpoch: number
  /** The settled offsets above `offset`, ascending, and the leader epoch of the last of them. */
  readonly settledAbove: readonly number[]
  readonly settledEpoch: number
  readonly leftOut: LeftOut
}

/**
 * The records of a partition that its former owners have settled and passed on, by one commit: each was
 * delivered, or is kept in another topic until it is. Holds no record of which this isn't certain.
 */
export class PassedOn {
  readonly topic: string
  readonly partition: number
  readonly topicId: string | undefined
  /** The offset of the first record that may have been passed on. */
  readonly start: number
  /** The offset after the last record that may have been passed on. */
  readonly end: number
  readonly #commit: PassedOnCommit
  readonly #settledAbove: ReadonlySet<number>

  constructor(commit: PassedOnCommit) {
    this.topic = commit.topic
    this.partition = commit.partition
    this.topicId = commit.topicId
    this.start = commit.leftOut.since
    this.end = Math.max(commit.offset, (commit.settledAbove.at(-1) ?? -1) + 1)
    this.#commit = commit
    this.#settledAbove = new Set(commit.settledAbove)
  }

  /**
   * Returns true if this record was settled and passed on. `leaderEpoch` is the epoch of the leader that
   * appended the record which was read at this offset. After an unclean election, other records may be at
   * these offsets, and all of them have a later epoch.
   */
  has(offset: number, leaderEpoch: number): boolean {
    const { offset: position, leaderEpoch: epoch, settledEpoch } = this.#commit
    const isBelow = offset < position
    if (leaderEpoch < 0 || leaderEpoch > (isBelow ? epoch : settledEpoch)) return false
    return offset >= this.start && (isBelow || this.#settledAbove.has(offset)) && !this.#isLeftOut(offset)
  }

  #isLeftOut(offset: number): boolean {
    const { starts, ends } = this.#commit.leftOut
    let [low, high] = [0, ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((ends[middle] ?? Infinity) <= offset) low = middle + 1
      else high = middle
    }
    return offset >= (starts[low] ?? Infinity)
  }
}
