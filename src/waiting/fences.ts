import { keyIn, type SourcedMessage } from './queued-message.ts'

/** The most messages of a topic that are remembered until the fence of the topic is known. */
const most = 8_192

type Fence = {
  /** The ids of the messages that this owner has begun, by record and destination. */
  readonly begun: Map<string, string>
  /** Infinity while it isn't known. */
  at: number
}

/**
 * Tells which records of `waiting` another process has appended too late, for example because it was
 * suspended and the group gave its unit to this owner.
 *
 * This owner has committed before it begins a topic of the unit. From then on, no other process can commit
 * that it has queued a message of this topic. So this owner has such a message too, and what others append
 * from then on is void. The _fence_ of a topic is an offset of `waiting`: all records from it on were
 * appended after the topic had begun. Until the fence is known, and for records before it, a record is void
 * if this owner has begun its message.
 */
export class Fences {
  readonly #unit: number
  readonly #fences = new Map<string, Fence>()
  #areAllKnown = true

  constructor(unit: number) {
    this.#unit = unit
  }

  /**
   * Notes that this owner has begun a message. `end` is the offset after the last record of `waiting` that it
   * knows. Returns true for the first message of a topic.
   */
  begin(message: SourcedMessage, end: number): boolean {
    const { source, messageId } = message
    const known = this.#fences.get(source.topic)
    if (known !== undefined && known.at <= end) {
      if (known.begun.size > 0) known.begun.clear()
      return false
    }
    const { begun } = known ?? this.#open(source.topic)
    begun.set(keyIn(message, source), messageId)
    for (const key of begun.keys()) {
      if (begun.size <= most) break
      begun.delete(key)
    }
    return known === undefined
  }

  /**
   * Call this before a record is appended, or the end of the log is asked for. Call the returned function
   * with the offset after the record, or with the end of the log.
   */
  ahead(): (offset: number) => void {
    if (this.#areAllKnown) return () => undefined
    const unknown = [...this.#fences.values()].filter(({ at }) => at === Infinity)
    return (offset) => {
      for (const fence of unknown) fence.at = Math.min(fence.at, offset)
      this.#areAllKnown = [...this.#fences.values()].every(({ at }) => at < Infinity)
    }
  }

  /** Returns true if another process has appended this record too late. */
  isVoid(offset: number, message: SourcedMessage): boolean {
    const { source, messageId } = message
    const fence = source.partition === this.#unit ? this.#fences.get(source.topic) : undefined
    if (fence === undefined) return false
    return offset >= fence.at || fence.begun.get(keyIn(message, source)) === messageId
  }

  #open(topic: string): Fence {
    const fence: Fence = { begun: new Map(), at: Infinity }
    this.#fences.set(topic, fence)
    this.#areAllKnown = false
    return fence
  }
}
