import type { PartitionReader } from '../../kafka/read/partition-reader.ts'
import type { WholeRecord } from '../../message/records.ts'
import type { FoundEvent, Judge } from './event-judge.ts'

/** The offsets of a partition that are still to be read. */
type Rest = { readonly from: number; readonly to: number }

/** Where a search goes on: what is left of each partition, and how much there was at its beginning. */
export type SearchPlace = {
  readonly rests: readonly Rest[]
  readonly of: number
  readonly fromMs: number
  readonly toMs: number
}

export type SearchedEvent = FoundEvent & {
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
}

export type SearchPart = {
  readonly found: readonly SearchedEvent[]
  /** Where the next part begins. `undefined`: all was read. */
  readonly next: SearchPlace | undefined
}

/** Limits on one part of a search: records that are read, the time in milliseconds, bytes of an answer. */
const mostRecords = 100_000
const withinMs = 6_000
const mostBytes = 2 * 1_024 ** 2

/** Returns the place at which a search begins. `ranges`: the offsets by partition. */
export function placeOf(
  ranges: readonly { readonly start: number; readonly end: number }[],
  times: Pick<SearchPlace, 'fromMs' | 'toMs'>,
): SearchPlace {
  const rests = ranges.map(({ start, end }) => ({ from: start, to: end }))
  return { rests, of: leftOf(rests), ...times }
}

/** How many records a search has read so far, as far as offsets tell. */
export function readOf({ rests, of }: SearchPlace): number {
  return Math.max(0, of - leftOf(rests))
}

function leftOf(rests: readonly Rest[]): number {
  return rests.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0)
}

/**
 * Reads a part of a search: until so many records are found or read, or the time is over. So each request is
 * bounded, and whoever asks stops the search by asking no more.
 */
export async function searchPart(
  reader: Pick<PartitionReader, 'piece'>,
  judge: Pick<Judge, 'of'>,
  { topic, place, limit }: { topic: string; place: SearchPlace; limit: number },
): Promise<SearchPart> {
  const part = new Part(judge, place, limit)
  for (const [partition, { to }] of place.rests.entries()) {
    while (part.from(partition) < to) {
      if (part.isFull) return { found: part.found, next: part.next }
      const from = part.from(partition)
      const { records, next } = await reader.piece({ topic, partition, from, to, stallTimeoutMs: withinMs })
      await part.take(partition, records, Math.min(next, to))
    }
  }
  return { found: part.found, next: undefined }
}

class Part {
  readonly #judge: Pick<Judge, 'of'>
  readonly #place: SearchPlace
  readonly #limit: number
  readonly #untilMs = performance.now() + withinMs
  readonly #from: number[]
  readonly found: SearchedEvent[] = []
  #read = 0
  #bytes = 0

  constructor(judge: Pick<Judge, 'of'>, place: SearchPlace, limit: number) {
    this.#judge = judge
    this.#place = place
    this.#limit = limit
    this.#from = place.rests.map(({ from }) => from)
  }

  get isFull(): boolean {
    const isOver = this.#read >= mostRecords || performance.now() >= this.#untilMs
    return isOver || this.found.length >= this.#limit || this.#bytes >= mostBytes
  }

  get next(): SearchPlace {
    const rests = this.#place.rests.map(({ to }, partition) => ({ from: this.from(partition), to }))
    return { ...this.#place, rests }
  }

  from(partition: number): number {
    return this.#from[partition] ?? Infinity
  }

  /** Looks at records until the part is full. `next`: the offset after the last of them. */
  async take(partition: number, records: readonly WholeRecord[], next: number): Promise<void> {
    for (const record of records) {
      if (this.isFull) return
      const { offset, timestampMs } = record
      this.#read++
      this.#from[partition] = offset + 1
      // Producers may set the times of records, so those between two offsets aren't all within two times.
      if (timestampMs < this.#place.fromMs || timestampMs >= this.#place.toMs) continue
      const found = await this.#judge.of(partition, record)
      if (found === undefined) continue
      this.found.push({ ...found, partition, offset, timestampMs })
      this.#bytes += found.body.length
    }
    this.#from[partition] = Math.max(next, this.from(partition))
  }
}

/** Writes a place as the cursor of an answer. */
export function cursorOf({ rests, of, fromMs, toMs }: SearchPlace): string {
  const offsets = rests.map(({ from, to }) => (from >= to ? 0 : [from, to]))
  return Buffer.from(JSON.stringify([of, fromMs, toMs, offsets])).toString('base64url')
}

/** Reads a cursor. Returns `undefined` for a text that is none. */
export function placeIn(cursor: string): SearchPlace | undefined {
  const given = parse(Buffer.from(cursor, 'base64url').toString())
  if (!Array.isArray(given)) return undefined
  const [of, fromMs, toMs, offsets]: unknown[] = given
  if (!isCount(of) || !isCount(fromMs) || !isCount(toMs) || !Array.isArray(offsets)) return undefined
  const rests = offsets.map((one: unknown): Rest | undefined => {
    if (one === 0) return { from: 0, to: 0 }
    const [from, to]: unknown[] = Array.isArray(one) ? one : []
    return isCount(from) && isCount(to) ? { from, to } : undefined
  })
  const whole = rests.filter((rest) => rest !== undefined)
  return whole.length === rests.length ? { rests: whole, of, fromMs, toMs } : undefined
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
