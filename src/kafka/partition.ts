import { maxRememberedOffsets } from './commit-metadata.ts'
import { Watermark } from './watermark.ts'

/** One partition that this member owns: what it has taken, what it may commit, and why it doesn't fetch. */
export class Partition {
  readonly topic: string
  readonly id: number
  /** How long a record of this topic waits after its append, in milliseconds; 0 for topics that don't wait. */
  readonly waitMs: number
  watermark = new Watermark(0)
  /** Its commit is being read: nothing may be fetched before that is known. */
  isLoading = true
  /** It belongs to another member now; what is in flight ends here, what waits is let go. */
  isLost = false
  /** The last record taken was long there to be taken: this partition has a backlog. */
  isBehind = false
  lostAtMs = 0
  /** When the head of a retry topic is due, in epoch milliseconds; 0 while nothing waits. */
  headDueMs = 0
  /** One past the partition's last record, as far as known. */
  endOffset = 0
  /** What is told to the client: the desired state is `wantsPause`. */
  isPaused = false
  dueTimer: NodeJS.Timeout | undefined
  /** Grows with each record that settles. */
  settledCount = 0
  committed = { position: 0, settledCount: 0 }

  constructor(topic: string, id: number, waitMs: number) {
    this.topic = topic
    this.id = id
    this.waitMs = waitMs
  }

  /** Invariant: span stays within what a commit can remember, plus one fetch. */
  get wantsPause(): boolean {
    return this.isLoading || this.headDueMs > 0 || this.watermark.span >= maxRememberedOffsets
  }

  get isDirty(): boolean {
    return (
      this.watermark.position !== this.committed.position || this.settledCount !== this.committed.settledCount
    )
  }

  settle(offset: number): void {
    this.watermark.settle(offset)
    this.settledCount++
  }

  /** Records that the group has still to settle, as far as known. */
  get lag(): number {
    return Math.max(0, this.endOffset - this.watermark.position)
  }
}
