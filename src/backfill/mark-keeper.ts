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
  /** The number of units. */
  readonly partitions: number
  /** Reads the records of `backfills` from an offset to the end that the log has at the time of the call. */
  readonly read: (
    from: number,
  ) => AsyncIterable<
    readonly { readonly offset: number; readonly key: Buffer; readonly value: Buffer | null }[]
  >
  /** Writes a record. Resolves once all in-sync replicas have it, and waits for as long as Kafka is away. */
  readonly write: (record: { key: Buffer; value: Buffer }) => Promise<{ offset: number } | 'refused'>
  /** Called when a mark is about to be written. */
  readonly onMark: (destinationId: string, spaceId: string) => void
}

/**
 * Records in `backfills` that destinations have missed values. Writes the first mark of a connection at once.
 * For later misses it reads the log first, and writes only if the log has no valid mark. So it notices a
 * backfill that started in between.
 */
export class MarkKeeper {
  readonly #options: MarkKeeperOptions
  readonly #marks: Marks
  /** The connections that have missed a value since the log was last read. */
  #missed = new Set<Marked>()
  readonly #writing = new Map<Marked, Promise<void>>()
  readonly #telling = new Set<Promise<number>>()
  #position = 0

  constructor(options: MarkKeeperOptions) {
    this.#options = options
    this.#marks = new Marks(options.partitions)
  }

  /** The log as far as it was read, together with the acknowledged marks that were written here. */
  get marks(): Marks {
    return this.#marks
  }

  /** The offset up to which the log was read. */
  get position(): number {
    return this.#position
  }

  /** The destinations that need a backfill, as far as the log was read. */
  get needingBackfill(): readonly Connection[] {
    return this.#marks.needingBackfill
  }

  /** True if `update` may have a mark to write. */
  get hasMissed(): boolean {
    return this.#missed.size > 0
  }

  /**
   * Notes that a destination missed a value of a space, and writes the mark if the log doesn't have it. May
   * be called for every missed value. While the mark is being written, returns a promise that resolves once
   * it is written.
   */
  needsBackfill(destinationId: string, spaceId: string): Promise<void> | undefined {
    const marked = this.#marks.of(destinationId, spaceId)
    this.#missed.add(marked)
    if (!isReported(marked) && !this.#writing.has(marked)) this.#write(marked)
    return this.#writing.get(marked)
  }

  /**
   * Reads the new records of the log, and writes the marks that it lacks. Only one call at a time. Throws
   * what `read` throws.
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
      // A mark that is being written may get a lower offset than the start of a backfill that has read past
      // the missed value.
      if (this.#writing.has(marked)) this.#missed.add(marked)
      else if (!isReported(marked)) this.#write(marked)
    }
  }

  /**
   * Writes a record other than a mark of a missed value, in the order of the calls. Resolves with its offset
   * once the log has it.
   */
  tell(mark: Exclude<Mark, { kind: 'missed' }>): Promise<number> {
    const telling = this.#options.write(encodeMark(mark)).then((result) => {
      this.#telling.delete(telling)
      if (result === 'refused')
        throw new Error('the topic backfills does not accept even a small record: see its max.message.bytes')
      this.#marks.take(mark, result.offset)
      return result.offset
    })
    this.#telling.add(telling)
    return telling
  }

  /** Resolves when no write is under way. */
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
