import {
  type Connection,
  decodeMark,
  encodeMark,
  isReported,
  type Mark,
  type Marked,
  Marks,
} from './marks.ts'

export type MarkKeeperOptions = {
  /** How many units there are. */
  readonly partitions: number
  /** The records of `backfills` from an offset to the end as of the call. */
  readonly read: (
    from: number,
  ) => AsyncIterable<
    readonly { readonly offset: number; readonly key: Buffer; readonly value: Buffer | null }[]
  >
  /** Resolves once all in-sync replicas have the record; waits for as long as Kafka is away. */
  readonly write: (record: { key: Buffer; value: Buffer }) => Promise<{ offset: number } | 'refused'>
  /** Told when a mark is written. */
  readonly onMark: (destinationId: string, spaceId: string) => void
}

/**
 * Sees to it that the log says of every value that a destination missed. The first is written at once. Later
 * ones only where the log doesn't say so by then: it is read first, so that a backfill which began in between
 * is seen.
 */
export class MarkKeeper {
  readonly #options: MarkKeeperOptions
  readonly #marks: Marks
  /** Have missed something since the log was read last. */
  #missed = new Set<Marked>()
  readonly #writing = new Map<Marked, Promise<void>>()
  readonly #telling = new Set<Promise<number>>()
  #position = 0

  constructor(options: MarkKeeperOptions) {
    this.#options = options
    this.#marks = new Marks(options.partitions)
  }

  /** The log as far as it was read, and as what was written here has been acknowledged. */
  get marks(): Marks {
    return this.#marks
  }

  /** Up to where the log was read. */
  get position(): number {
    return this.#position
  }

  /** Destinations that need a backfill, as far as the log was read. */
  get needingBackfill(): readonly Connection[] {
    return this.#marks.needingBackfill
  }

  /** Whether `update` may have something to write. */
  get hasMissed(): boolean {
    return this.#missed.size > 0
  }

  /**
   * A destination missed a value of a space: writes the mark where the log hasn't got it. May be called as
   * often as something is missed. Gives, while the mark is being written, when it is.
   */
  needsBackfill(destinationId: string, spaceId: string): Promise<void> | undefined {
    const marked = this.#marks.of(destinationId, spaceId)
    this.#missed.add(marked)
    if (!isReported(marked) && !this.#writing.has(marked)) this.#write(marked)
    return this.#writing.get(marked)
  }

  /**
   * Reads what is new in the log, and writes what it doesn't say. One call at a time. Throws what `read`
   * throws.
   */
  async update(): Promise<void> {
    const since = this.#missed
    this.#missed = new Set()
    try {
      for await (const records of this.#options.read(this.#position)) {
        for (const { offset, key, value } of records) {
          const mark = decodeMark(key, value)
          if (mark !== undefined) this.#marks.take(mark, offset)
          this.#position = offset + 1
        }
      }
    } catch (error) {
      for (const marked of since) this.#missed.add(marked)
      throw error
    }
    for (const marked of since) {
      // What is on its way may land before a backfill began that has read past what was missed.
      if (this.#writing.has(marked)) this.#missed.add(marked)
      else if (!isReported(marked)) this.#write(marked)
    }
  }

  /** Writes what is so, in the order of the calls. Gives the offset at which it is, once the log has it. */
  tell(mark: Exclude<Mark, { kind: 'missed' }>): Promise<number> {
    const telling = this.#options.write(encodeMark(mark)).then((result) => {
      this.#telling.delete(telling)
      if (result === 'refused')
        throw new Error('the topic backfills does not even accept a small record: see its max.message.bytes')
      this.#marks.take(mark, result.offset)
      return result.offset
    })
    this.#telling.add(telling)
    return telling
  }

  /** Resolves when nothing is being written. */
  async written(): Promise<void> {
    await Promise.all([...this.#writing.values(), ...this.#telling])
  }

  #write(marked: Marked): void {
    const { destinationId, spaceId } = marked
    const mark = { kind: 'missed', destinationId, spaceId } as const
    this.#options.onMark(destinationId, spaceId)
    const written = this.#options.write(encodeMark(mark)).then((result) => {
      this.#writing.delete(marked)
      if (result !== 'refused') this.#marks.take(mark, result.offset)
    })
    this.#writing.set(marked, written)
  }
}
