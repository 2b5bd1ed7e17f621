import type { SyncPart } from '../message/audience-change.ts'
import { partitionOf } from '../message/partitioner.ts'
import type { Compared } from './comparison.ts'
import { distinct, spread } from './distinct.ts'
import { Spool } from './spool.ts'

/** The fields that all parts of a sync have in common. */
export type SyncHead = Pick<SyncPart, 'audienceId' | 'audienceName' | 'audienceKey' | 'syncId' | 'snapshotAt'>

export type SyncOptions = {
  readonly head: SyncHead
  readonly partitions: number
  /** The longest value that a part may have, in bytes. */
  readonly maxPartBytes: number
}

/** The users and parts of a sync that go to one partition. */
export type PartitionPlan = {
  readonly partition: number
  /** The number of users. Each user is counted once. */
  readonly users: number
  /** Number of times that a user was added again. */
  readonly repeated: number
  /**
   * The number of parts. It is at least 1. If no user of the partition is in the audience, the owner of the
   * partition must still learn that all users of the partition have left.
   */
  readonly parts: number
}

/** A part for one partition: the value of a record of `audience-changes`. */
export type PlacedPart = { readonly partition: number; readonly users: number; readonly value: string }

/**
 * The least number of buckets of all partitions together. With this number, the users of one bucket can be
 * compared in memory in a few steps, even if the audience has a hundred million users.
 */
const leastBuckets = 256
/** A number with more digits than the fields `part` and `parts` of a record can have. */
const longestNumber = 9_999_999_999

/**
 * Turns a whole audience into records. Every part contains the number of parts that its partition gets, so an
 * incomplete sync can't be taken for a complete one. To find this number, this class first collects the users
 * on disk. So memory doesn't grow with the number of users.
 */
export class Sync {
  readonly #head: SyncHead
  readonly #partitions: number
  readonly #bucketsEach: number
  readonly #spool: Spool
  /** Limit on the bytes of the user ids in a part. */
  readonly #room: number

  constructor({ head, partitions, maxPartBytes }: SyncOptions) {
    this.#head = head
    this.#partitions = partitions
    this.#bucketsEach = Math.ceil(leastBuckets / partitions)
    this.#room = maxPartBytes - Buffer.byteLength(valueOf(head, longestNumber, longestNumber, []))
    this.#spool = new Spool(partitions * this.#bucketsEach)
  }

  /** Adds a user. Returns `undefined`, or the reason why the user can't be added. */
  add(userId: string): string | undefined {
    const text = JSON.stringify(userId)
    if (text.length * 3 > this.#room && Buffer.byteLength(text) > this.#room) {
      return 'has a user id that no part has room for: raise message.maxBytes (SLUICE_MESSAGE_MAX_BYTES)'
    }
    const partition = partitionOf(userId, this.#partitions)
    this.#spool.add(partition * this.#bucketsEach + this.#bucketOf(text), text)
    return undefined
  }

  /**
   * Compares the users of one partition, who were added so far, with the known members of this partition.
   * `known` yields each member once.
   */
  compare(partition: number, known: Iterable<string>): Compared {
    const members = new Spool(this.#bucketsEach)
    const counts = { known: 0, entering: 0, staying: 0 }
    try {
      for (const userId of known) {
        const text = JSON.stringify(userId)
        members.add(this.#bucketOf(text), text)
        counts.known++
      }
      for (let bucket = 0; bucket < this.#bucketsEach; bucket++) {
        const inBucket = new Set([...members.read(bucket)].flat())
        for (const text of distinct(this.#spool, partition * this.#bucketsEach + bucket)) {
          if (inBucket.has(text)) counts.staying++
          else counts.entering++
        }
      }
      return counts
    } finally {
      members.close()
    }
  }

  /** Counts the users and the parts of one partition, for the users who were added so far. */
  plan(partition: number): PartitionPlan {
    let users = 0
    let parts = 0
    for (const texts of this.#cut(partition)) {
      users += texts.length
      parts++
    }
    return { partition, users, repeated: this.#countAdded(partition) - users, parts }
  }

  /** Yields the records of one partition, in the order in which they must be written. */
  *parts({ partition, parts }: PartitionPlan): Generator<PlacedPart> {
    let part = 0
    for (const texts of this.#cut(partition)) {
      part++
      yield { partition, users: texts.length, value: valueOf(this.#head, part, parts, texts) }
    }
  }

  close(): void {
    this.#spool.close()
  }

  #bucketOf(text: string): number {
    return spread(text) % this.#bucketsEach
  }

  #countAdded(partition: number): number {
    let count = 0
    for (const bucket of this.#bucketsOf(partition)) count += this.#spool.count(bucket)
    return count
  }

  /**
   * Yields a list for each part, with as many user ids as the part has room for. The ids are JSON. If there
   * are no users, yields one empty list.
   */
  *#cut(partition: number): Generator<readonly string[]> {
    let texts: string[] = []
    let bytes = 0
    for (const bucket of this.#bucketsOf(partition)) {
      for (const text of distinct(this.#spool, bucket)) {
        const textBytes = Buffer.byteLength(text) + 1
        if (texts.length > 0 && bytes + textBytes > this.#room) {
          yield texts
          texts = []
          bytes = 0
        }
        texts.push(text)
        bytes += textBytes
      }
    }
    yield texts
  }

  *#bucketsOf(partition: number): Generator<number> {
    const first = partition * this.#bucketsEach
    for (let bucket = first; bucket < first + this.#bucketsEach; bucket++) yield bucket
  }
}

function valueOf(
  { audienceId, audienceName, audienceKey, syncId, snapshotAt }: SyncHead,
  part: number,
  parts: number,
  texts: readonly string[],
): string {
  const head = { type: 'sync', audienceId, audienceName, audienceKey, syncId, snapshotAt, part, parts }
  return `${JSON.stringify(head).slice(0, -1)},"userIds":[${texts.join(',')}]}`
}
