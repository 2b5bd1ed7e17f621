import type { PartitionReader } from '../../kafka/read/partition-reader.ts'
import { sourceIdOf } from '../../message/record-headers.ts'
import type { WholeRecord } from '../../message/records.ts'

/** A record of a source, as its producer wrote it. */
export type SourceEvent = Pick<WholeRecord, 'offset' | 'timestampMs' | 'value'> & {
  readonly partition: number
}

export type LatestEvents = {
  /** Newest first. */
  readonly events: readonly SourceEvent[]
  /** How many records were looked at, of all sources. */
  readonly lookedAt: number
  /** False if earlier records of the source may be there. */
  readonly isAll: boolean
}

type LogRange = { readonly start: number; readonly end: number }

/** How many offsets of each partition are read first. Each further window is four times as long. */
const firstWindow = 100
/** Limits on one reading: records that are looked at, and the time in milliseconds. */
const mostRecords = 200_000
const withinMs = 8_000
/** Limit on the values of an answer, in bytes. */
const mostBytes = 2 * 1_024 ** 2

/**
 * Reads the last records of a source from the ends of the partitions of `events` backwards: `ranges` by
 * partition. Gives up after `mostRecords` or `withinMs`, and then returns what it has found.
 */
export async function latestEvents(
  reader: Pick<PartitionReader, 'piece'>,
  {
    topic,
    ranges,
    sourceId,
    limit,
  }: { topic: string; ranges: readonly LogRange[]; sourceId: string; limit: number },
): Promise<LatestEvents> {
  const untilMs = performance.now() + withinMs
  const latest = new Latest(limit)
  const parts = ranges.map((range, partition) => ({
    ...range,
    partition,
    from: range.end,
    oldestMs: Infinity,
  }))
  let lookedAt = 0
  for (let window = firstWindow; ; window *= 4) {
    // A partition whose records are all older than the last event of the answer has nothing to add.
    const wanted = parts.filter(({ from, start, oldestMs }) => from > start && latest.mayTake(oldestMs))
    if (wanted.length === 0) {
      const isAll = latest.isWhole && parts.every(({ from, start }) => from <= start)
      return { events: latest.events, lookedAt, isAll }
    }
    for (const part of wanted) {
      const { partition, from: to, start } = part
      part.from = Math.max(start, to - window)
      for (let next = part.from; next < to;) {
        if (lookedAt >= mostRecords || performance.now() >= untilMs)
          return { events: latest.events, lookedAt, isAll: false }
        const piece = await reader.piece({ topic, partition, from: next, to, stallTimeoutMs: withinMs })
        lookedAt += piece.records.length
        next = piece.next
        for (const record of piece.records) {
          part.oldestMs = Math.min(part.oldestMs, record.timestampMs)
          if (sourceIdOf(record.headers) === sourceId) latest.add(record, partition)
        }
      }
    }
  }
}

/** The newest records of those that were added. */
class Latest {
  readonly #limit: number
  #events: SourceEvent[] = []
  isWhole = true

  constructor(limit: number) {
    this.#limit = limit
  }

  get events(): readonly SourceEvent[] {
    return this.#events
  }

  /** Returns true if a record of this time would be among the newest. */
  mayTake(timestampMs: number): boolean {
    if (this.isWhole && this.#events.length < this.#limit) return true
    return timestampMs > (this.#events.at(-1)?.timestampMs ?? -Infinity)
  }

  add({ offset, timestampMs, value }: WholeRecord, partition: number): void {
    // The value is a slice of the answer to a fetch.
    const event = { offset, timestampMs, partition, value: value === null ? null : Buffer.from(value) }
    const before = this.#events.findIndex((one) => isNewer(event, one))
    this.#events.splice(before < 0 ? this.#events.length : before, 0, event)
    let bytes = 0
    const fitting = this.#events.findIndex(
      (one, at) => at >= this.#limit || (at > 0 && (bytes += one.value?.length ?? 0) > mostBytes),
    )
    if (fitting < 0) return
    this.#events.length = fitting
    this.isWhole = false
  }
}

function isNewer(one: SourceEvent, other: SourceEvent): boolean {
  if (one.timestampMs !== other.timestampMs) return one.timestampMs > other.timestampMs
  return one.partition === other.partition && one.offset > other.offset
}
