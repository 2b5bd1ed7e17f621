import {
  type CommitMemory,
  decodeCommitMetadata,
  encodeCommitMetadata,
  maxRememberedOffsets,
} from './commit-metadata.ts'
import { Watermark } from './watermark.ts'

/** What the group has for a partition; offset -1 where it has nothing. */
export type StoredCommit = { readonly offset: number; readonly metadata: string | null }

export const noCommit: StoredCommit = { offset: -1, metadata: null }

/** What of a partition a commit says. */
export type Standing = { position: number; settledCount: number; isFinal: boolean }

const nowhere: Standing = { position: 0, settledCount: 0, isFinal: false }

/** One partition that this member owns: what it has taken, what it may commit, and why it doesn't fetch. */
export class Partition {
  readonly topic: string
  readonly id: number
  /** How long a record of this topic waits after its append, in milliseconds; 0 for topics that don't wait. */
  readonly waitMs: number
  watermark = new Watermark(0)
  /** Its owner before may not be done with it: nothing is fetched until `begin`. */
  isWaiting = true
  /** It belongs to another member now; what is in flight ends here, what waits is let go. */
  isLost = false
  /** The last record taken was long there to be taken: this partition has a backlog. */
  isBehind = false
  lostAtMs = 0
  /** When in each period a busy retry topic's head is looked at, 0 to 1. */
  turn = 0
  /** When the head of a retry topic is due, in epoch milliseconds; 0 while nothing waits. */
  headDueMs = 0
  /** One past the partition's last record, as far as known. */
  endOffset = 0
  /** What is told to the client: the desired state is `wantsPause`. */
  isPaused = false
  dueTimer: NodeJS.Timeout | undefined
  /** Told when the last record that was out has come back. */
  onIdle: (() => void) | undefined
  /** Which owner this is; of two that commit, the later one is right. */
  #epoch = 0
  /** Records that were handed out, and have neither settled nor been given back. */
  #lent = 0
  /** Grows with each record that settles. */
  #settledCount = 0
  /** All up to this offset were there at that time. */
  #seen = { offset: -1, atMs: 0 }
  #committed = nowhere

  constructor(topic: string, id: number, waitMs: number) {
    this.topic = topic
    this.id = id
    this.waitMs = waitMs
  }

  /** Goes on where the group stands, as its next owner. Commit once before anything is fetched: that ends the mark of the owner before. */
  begin(stored: StoredCommit): void {
    const memory = memoryOf(stored)
    this.watermark = new Watermark(stored.offset, memory?.settledAbove)
    this.#epoch = (memory?.epoch ?? 0) + 1
    this.#committed = nowhere
  }

  /** Invariant: span stays within what a commit can remember, plus one fetch. */
  get wantsPause(): boolean {
    return this.isWaiting || this.headDueMs > 0 || this.watermark.span >= maxRememberedOffsets
  }

  /**
   * When a record may be taken, in epoch milliseconds: so long after its append as this topic waits. An append in the future
   * is another clock's, or a producer's own idea of time: it counts from when the record is known to have been there, so
   * that nothing waits for longer, nor what is behind it.
   */
  dueMsOf(offset: number, timestampMs: number, nowMs: number): number {
    if (timestampMs <= nowMs) return timestampMs + this.waitMs
    if (offset > this.#seen.offset) this.#seen = { offset: Math.max(offset, this.endOffset - 1), atMs: nowMs }
    return this.#seen.atMs + this.waitMs
  }

  /** A record came; whether it is new, and so handed out. */
  take(offset: number): boolean {
    if (this.watermark.receive(offset) !== 'new') return false
    this.#lent++
    return true
  }

  settle(offset: number): void {
    this.watermark.settle(offset)
    this.#settledCount++
    this.#returned()
  }

  /** A record comes back unsettled: it is for the next owner. */
  giveBack(): void {
    this.#returned()
  }

  /** Nothing of it is out. */
  get isIdle(): boolean {
    return this.#lent === 0
  }

  /** Where it stands. Once nothing more is begun, the first commit with nothing out is the final one. */
  standing(isEnding: boolean): Standing {
    const isFinal = (isEnding || this.isLost) && this.isIdle
    return { position: this.watermark.position, settledCount: this.#settledCount, isFinal }
  }

  /** Whether the group doesn't know yet. */
  isNews({ position, settledCount, isFinal }: Standing): boolean {
    const known = this.#committed
    return position !== known.position || settledCount !== known.settledCount || isFinal !== known.isFinal
  }

  commitOf({ position, isFinal }: Standing): StoredCommit {
    const settledAbove = this.watermark.settledAbove(maxRememberedOffsets)
    return {
      offset: position,
      metadata: encodeCommitMetadata(position, settledAbove, { isFinal, epoch: this.#epoch }),
    }
  }

  committed(standing: Standing): void {
    this.#committed = standing
  }

  /** A later owner has begun: a commit of this one would put the group back. */
  isOvertaken(stored: StoredCommit | undefined): boolean {
    return stored !== undefined && (memoryOf(stored)?.epoch ?? 0) > this.#epoch
  }

  /** Records that the group has still to settle, as far as known. */
  get lag(): number {
    return Math.max(0, this.endOffset - this.watermark.position)
  }

  #returned(): void {
    this.#lent--
    if (this.#lent === 0) this.onIdle?.()
  }
}

/** What an owner has left with its commit; `undefined` where there is none, or another program wrote it. */
export function memoryOf(stored: StoredCommit): CommitMemory | undefined {
  return stored.offset < 0 ? undefined : decodeCommitMetadata(stored.offset, stored.metadata)
}
