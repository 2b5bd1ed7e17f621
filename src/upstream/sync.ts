import type { SyncPart } from '../message/audience-change.ts'
import { partitionOf } from '../message/partitioner.ts'
import { distinct, spread } from './distinct.ts'
import { Spool } from './spool.ts'

/** What all parts of a sync have in common. */
export type SyncHead = Pick<SyncPart, 'audienceId' | 'audienceName' | 'audienceKey' | 'syncId' | 'snapshotAt'>

export type SyncOptions = {
  readonly head: SyncHead
  /** Of the topic. */
  readonly partitions: number
  /** The most that the value of a part may be. */
  readonly maxPartBytes: number
}

/** What a partition gets. */
export type PartitionPlan = {
  readonly partition: number
  /** Each counted once. */
  readonly users: number
  /** Those that were named again. */
  readonly repeated: number
  /** At least one: users of whom there is none in it have left. */
  readonly parts: number
}

/** The value of a record of `audience-changes`, for this partition. */
export type PlacedPart = { readonly partition: number; readonly users: number; readonly value: string }

/** So few users of a hundred million are in one bucket that they can be compared in memory. */
const leastBuckets = 256
/** Longer than the two numbers of a part that are in the record will be. */
const longestNumber = 9_999_999_999

/**
 * A whole audience as records. Users are collected first, on disk: every part says how many there are of its
 * partition, so that a set that is not whole is never taken for one. Memory is flat, whatever the number of
 * users.
 */
export class Sync {
  readonly #head: SyncHead
  readonly #partitions: number
  readonly #bucketsEach: number
  readonly #spool: Spool
  /** The bytes that the user ids of a part may take. */
  readonly #room: number

  constructor({ head, partitions, maxPartBytes }: SyncOptions) {
    this.#head = head
    this.#partitions = partitions
    this.#bucketsEach = Math.ceil(leastBuckets / partitions)
    this.#room = maxPartBytes - Buffer.byteLength(valueOf(head, longestNumber, longestNumber, []))
    this.#spool = new Spool(partitions * this.#bucketsEach)
  }

  /** Takes a user, or gives a reason why not. */
  add(userId: string): string | undefined {
    const text = JSON.stringify(userId)
    if (text.length * 3 > this.#room && Buffer.byteLength(text) > this.#room) {
      return 'has a user id that no part has room for: raise message.maxBytes (SLUICE_MESSAGE_MAX_BYTES)'
    }
    const partition = partitionOf(userId, this.#partitions)
    this.#spool.add(partition * this.#bucketsEach + (spread(text) % this.#bucketsEach), text)
    return undefined
  }

  /** What one partition gets, of those who were added so far. */
  plan(partition: number): PartitionPlan {
    let users = 0
    let parts = 0
    for (const texts of this.#cut(partition)) {
      users += texts.length
      parts++
    }
    return { partition, users, repeated: this.#countAdded(partition) - users, parts }
  }

  /** The records of one partition, in the order in which they are to be written. */
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

  #countAdded(partition: number): number {
    let count = 0
    for (const bucket of this.#bucketsOf(partition)) count += this.#spool.count(bucket)
    return count
  }

  /** User ids as JSON, so many at a time as a part has room for. Where there are none, once none. */
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
