import type { OutgoingRecord, Part } from './parcel.ts'

const minBackoffMs = 50
const maxBackoffMs = 400

/** What one produce has room for still. */
export type Room = { records: number; bytes: number }

/** What a produce writes to one partition. */
export type Produce = {
  readonly topic: string
  readonly partition: number
  readonly records: readonly OutgoingRecord[]
  readonly queue: PartitionQueue
  readonly parts: readonly Part[]
  readonly sentMs: number
}

/**
 * What waits for one partition. Of a partition one produce is under way at a time, and what it didn't take is
 * first in the next: so the records of a partition are written in the order of their coming.
 */
export class PartitionQueue {
  readonly topic: string
  readonly partition: number
  isSending = false
  /** The most of one produce, in bytes: what the topic takes at once. */
  readonly #batchBytes: number
  /** In the order of their coming; from `#head` on. */
  #waiting: Part[] = []
  #head = 0
  #failures = 0

  constructor(topic: string, partition: number, batchBytes: number) {
    this.#batchBytes = batchBytes
    this.topic = topic
    this.partition = partition
  }

  get isEmpty(): boolean {
    return this.#head === this.#waiting.length
  }

  /** Its last produce has failed: what is sent next must not hold up that of other partitions. */
  get isSick(): boolean {
    return this.#failures > 0
  }

  /** How long it rests after its last failure. */
  get backoffMs(): number {
    return Math.min(maxBackoffMs, minBackoffMs * 2 ** (this.#failures - 1))
  }

  push(part: Part): void {
    this.#waiting.push(part)
  }

  /**
   * From the head, as many parts as there is room for; the first in any case where `isFirst`. Takes the room
   * that they need.
   */
  take(room: Room, isFirst: boolean): readonly Part[] {
    const from = this.#head
    let bytes = 0
    for (let part = this.#waiting[from]; part !== undefined; part = this.#waiting[this.#head]) {
      const isTooMuch =
        part.records.length > room.records || part.bytes > room.bytes || bytes + part.bytes > this.#batchBytes
      if (isTooMuch && !(isFirst && this.#head === from)) break
      room.records -= part.records.length
      room.bytes -= part.bytes
      bytes += part.bytes
      this.#head++
    }
    return this.#taken(from)
  }

  worked(): void {
    this.isSending = false
    this.#failures = 0
  }

  /** `parts`, which were sent, go back to the head. */
  failed(parts: readonly Part[]): void {
    this.isSending = false
    this.#failures++
    this.#waiting = [...parts, ...this.#waiting.slice(this.#head)]
    this.#head = 0
  }

  /**
   * Takes out those at the head that nobody waits for any more: times run out in the order of their coming.
   */
  takeUnwanted(): readonly Part[] {
    const from = this.#head
    for (let part = this.#waiting[from]; part !== undefined; part = this.#waiting[this.#head]) {
      if (!isUnwanted(part)) break
      this.#head++
    }
    return this.#taken(from)
  }

  #taken(from: number): readonly Part[] {
    const taken = this.#waiting.slice(from, this.#head)
    if (this.#head >= 1_000 || this.#head === this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head)
      this.#head = 0
    }
    return taken
  }
}

export function isUnwanted({ tickets }: Part): boolean {
  return tickets.every(({ delivered }) => delivered !== undefined)
}
