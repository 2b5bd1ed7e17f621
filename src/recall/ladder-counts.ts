import { setTimeout as delay } from 'node:timers/promises'
import type { EarlyPartition } from '../kafka/group/consumer.ts'
import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import type { OutboundRecord, WholeRecord } from '../message/records.ts'
import { headerText } from '../message/record-headers.ts'
import { LadderCodes, LadderIndex, type Room } from './ladder-index.ts'

export type LadderCountsOptions = {
  /** The retry topics that this member reads. */
  readonly topics: readonly string[]
  /** The partitions of them that this member owns now. */
  readonly owned: () => Iterable<{ readonly topic: string; readonly id: number }>
  /** `undefined`: the partition isn't begun. */
  readonly early: (topic: string, id: number) => EarlyPartition | undefined
  readonly reader: Pick<PartitionReader, 'piece' | 'stop'>
  readonly log: Record<'debug', (fields: object, message: string) => void>
}

/** A record of a retry topic that was written, or taken. */
type Place = { readonly topic: string; readonly partition: number; readonly offset: number }

type Counted = {
  readonly topic: string
  readonly id: number
  readonly partition: EarlyPartition
  readonly index: LadderIndex
  /** It isn't read before this time, by `performance.now`, because there was no room for what is there. */
  fullUntilMs: number
}

/** The most destinations that a process counts, and the most blocks of 512 records that it knows. */
const most = { destinations: 200_000, blocks: 8_000 } as const
/** Time between two rounds of reading, in milliseconds. */
const readEveryMs = 1_000
/** What others have written is read at this speed, so that deliveries don't feel it. */
const bytesPerMs = 1_000
/** What a record costs besides its bytes, as if it were so many bytes more. */
const bytesOfRecord = 500
const stallTimeoutMs = 10_000
/** How long a partition isn't read after there was no room for its records, in milliseconds. */
const fullForMs = 60_000

/**
 * Counts the messages of each destination that wait on the retry topics of this member's units. The member
 * writes nearly all of these records itself, and so knows whose they are. What an earlier owner has written
 * is read once, slowly. Nothing is stored.
 */
export class LadderCounts {
  readonly #options: LadderCountsOptions
  readonly #topics: ReadonlySet<string>
  readonly #codes = new LadderCodes(most.destinations)
  readonly #room: Room = { blocks: most.blocks }
  readonly #counted = new Map<string, Counted>()
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined
  #areAllBegun = false

  constructor(options: LadderCountsOptions) {
    this.#options = options
    this.#topics = new Set(options.topics)
  }

  /** Begins to read what earlier owners have written. */
  start(): void {
    this.#running ??= this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the worker stops'))
    await this.#options.reader.stop()
    await this.#running
  }

  /** The destinations of which something waits, as `look` has found. */
  ids(): Iterable<string> {
    return this.#codes.ids()
  }

  /** How many messages of a destination wait, of those that are known. */
  countOf(destinationId: string): number {
    return this.#codes.countOf(destinationId)
  }

  /** How many messages wait, of those that are known. */
  get total(): number {
    return this.#codes.total
  }

  /** How many more records wait, at most. `undefined`: this isn't known yet. */
  get unknown(): number | undefined {
    if (!this.#areAllBegun) return undefined
    let sum = 0
    for (const { index } of this.#counted.values()) sum += index.unknown
    return sum
  }

  isCounted(topic: string): boolean {
    return this.#topics.has(topic)
  }

  /** Notes that this member has written a record. `undefined`: it is delivered, and isn't counted. */
  written({ topic, partition, offset }: Place, destinationId: string | undefined): void {
    this.#countedAt(topic, partition)?.index.learn(offset, destinationId)
  }

  /** Notes that a record was taken before it was due. */
  takenEarly({ topic, partition, offset }: Place): void {
    this.#countedAt(topic, partition)?.index.take(offset)
  }

  /**
   * Finds out which partitions this member has, and what of them waits no more. Call it every few seconds,
   * and before the counts are used.
   */
  look(): void {
    const lost = new Set(this.#counted.keys())
    this.#areAllBegun = true
    for (const { topic, id } of this.#options.owned()) {
      if (!this.#topics.has(topic)) continue
      const partition = this.#options.early(topic, id)
      const end = partition?.end
      if (partition === undefined || partition.isLost || end === undefined) {
        this.#areAllBegun = false
        continue
      }
      const { index } = this.#countedOf(topic, id, partition)
      index.reachesTo(end)
      index.pass(partition.top)
      lost.delete(nameOf(topic, id))
    }
    for (const name of lost) this.#forget(name)
  }

  /** If the partition was lost and has come back, others may have taken its records meanwhile. */
  #countedOf(topic: string, id: number, partition: EarlyPartition): Counted {
    const name = nameOf(topic, id)
    const known = this.#counted.get(name)
    if (known?.partition.isSame(partition) === true) return known
    this.#forget(name)
    const index = new LadderIndex(partition.top, this.#codes, this.#room)
    const counted = { topic, id, partition, index, fullUntilMs: 0 }
    this.#counted.set(name, counted)
    return counted
  }

  #countedAt(topic: string, partition: number): Counted | undefined {
    return this.#counted.get(nameOf(topic, partition))
  }

  #forget(name: string): void {
    this.#counted.get(name)?.index.clear()
    this.#counted.delete(name)
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        for (const counted of this.#counted.values()) await this.#read(counted)
      } catch (error) {
        if (signal.aborted) return
        this.#options.log.debug({ err: error }, 'what waits for a retry can not be counted for now')
      }
      await delay(readEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Reads one piece of what isn't known of a partition. */
  async #read(counted: Counted): Promise<void> {
    const range = counted.index.nextUnknown()
    if (range === undefined || performance.now() < counted.fullUntilMs) return
    const { unknown } = counted.index
    const { signal } = this.#stopping
    const { topic, id: partition } = counted
    const piece = await this.#options.reader.piece({ topic, partition, ...range, signal, stallTimeoutMs })
    // It may have been lost meanwhile.
    if (this.#countedAt(topic, partition) !== counted) return
    let { from } = range
    let bytes = 0
    for (const record of piece.records) {
      while (from < record.offset) counted.index.learn(from++, undefined)
      const waits = !isDelivered(record) && counted.partition.isUntaken(record.offset)
      counted.index.learn(from++, waits ? headerText(record.headers, 'destination-id') : undefined)
      bytes += bytesOfRecord + (record.key?.length ?? 0) + (record.value?.length ?? 0)
    }
    while (from < piece.next) counted.index.learn(from++, undefined)
    if (counted.index.unknown >= unknown) counted.fullUntilMs = performance.now() + fullForMs
    await delay(bytes / bytesPerMs, undefined, { signal }).catch(() => undefined)
  }
}

type Producer = {
  produce(record: OutboundRecord): Promise<'acknowledged' | 'refused'>
  produceAt(record: OutboundRecord): Promise<{ readonly offset: number } | 'refused'>
}

/** Returns an outlet that tells the counts what it has written to the retry topics. */
export function countingOutlet(producer: Producer, counts: LadderCounts): Pick<Producer, 'produce'> {
  async function produceCounted(record: OutboundRecord): ReturnType<Producer['produce']> {
    const { topic, partition, headers } = record
    const result = await producer.produceAt(record)
    if (result === 'refused') return result
    const destinationId = headers['delivered'] === undefined ? headers['destination-id'] : undefined
    counts.written({ topic, partition, offset: result.offset }, destinationId)
    return 'acknowledged'
  }
  return {
    produce: (record) => (counts.isCounted(record.topic) ? produceCounted(record) : producer.produce(record)),
  }
}

/** A message that has arrived only waits until it is known whether it has to be corrected. */
function isDelivered({ headers }: WholeRecord): boolean {
  return headerText(headers, 'delivered') !== undefined
}

function nameOf(topic: string, partition: number): string {
  return `${topic}/${partition}`
}
