import {
  type Connection,
  decodeMark,
  encodeMark,
  isReported,
  type Mark,
  type Marked,
  Marks,
} from './marks.ts'
import type { KeyedRecord } from '../message/records.ts'

export type MarkKeeperOptions = {
  /** The number of units. */
  readonly partitions: number
  /**
   * Reads the records of `backfills` from an offset to the end that the topic has at the time of the call.
   */
  readonly read: (from: number) => AsyncIterable<readonly Pick<KeyedRecord, 'offset' | 'key' | 'value'>[]>
  /**
   * Writes a record. Resolves once all in-sync replicas have the record. While Kafka is unavailable, waits
   * without a limit.
   */
  readonly write: (record: { key: Buffer; value: Buffer }) => Promise<{ offset: number } | 'refused'>
  /** Called when a mark is about to be written. */
  readonly onMark: (destinationId: string, spaceId: string) => void
}

/**
 * Writes marks to `backfills`. A mark says that a destination has missed a value. The first mark of a
 * connection is written at once. When a later value is missed, the topic is read first, because a backfill
 * may have started in between. A mark is written only if the topic has no valid mark.
 */
export class MarkKeeper {
  readonly #options: MarkKeeperOptions
  readonly #marks: Marks
  /** The connections that have missed a value since the topic was last read. */
  #missed = new Set<Marked>()
  readonly #writing = new Map<Marked, Promise<void>>()
  readonly #telling = new Set<Promise<number>>()
  #position = 0

  constructor(options: MarkKeeperOptions) {
    this.#options = options
    this.#marks = new Marks(options.partitions)
  }

  /**
   * The content of `backfills` that was read, together with the acknowledged marks that this process has
   * written.
   */
  get marks(): Marks {
    return this.#marks
  }

  /** The offset up to which `backfills` was read. */
  get position(): number {
    return this.#position
  }

  /**
   * The destinations that need a backfill according to the records that were read, each with the space whose
   * values it lacks.
   */
  get needingBackfill(): readonly Connection[] {
    return this.#marks.needingBackfill
  }

  /** True if `update` may have a mark to write. */
  get hasMissed(): boolean {
    return this.#missed.size > 0
  }

  /**
   * Remembers that a destination missed a value of a space, and writes the mark if the topic doesn't have a
   * valid one. This method may be called for every missed value. While the mark is being written, returns a
   * promise that resolves once the mark is written.
   */
  needsBackfill(destinationId: string, spaceId: string): Promise<void> | undefined {
    const marked = this.#marks.of(destinationId, spaceId)
    this.#missed.add(marked)
    if (!isReported(marked) && !this.#writing.has(marked)) this.#write(marked)
    return this.#writing.get(marked)
  }

  /**
   * Reads the new records of `backfills`, and writes the marks that the topic lacks. Don't call this method
   * again before the promise has settled. Rejects with the errors of `read`.
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
      // If this mark is being written, the next call decides whether to write it again. The mark may get a
      // lower offset than the start of a backfill that has already read past the missed value. In that case,
      // the mark isn't valid.
      if (this.#writing.has(marked)) this.#missed.add(marked)
      else if (!isReported(marked)) this.#write(marked)
    }
  }

  /**
   * Writes a record that isn't a mark of a missed value. Records are written in the order of the calls.
   * Resolves with the record's offset once the topic has the record.
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
