import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { plain, timeOf } from '../../delivery-log/lines.ts'
import {
  createPartitionReader,
  offsetRanges,
  type PartitionReader,
} from '../../kafka/read/partition-reader.ts'
import { parseJson } from '../../message/json/json.ts'
import type { WholeRecord } from '../../message/records.ts'
import type { BodyCondition } from '../../roles/content/body-condition.ts'
import { type FoundEvent, type Judge, openJudge } from '../../roles/content/event-judge.ts'
import { askKafka, openKafka } from '../../roles/start/ask-kafka.ts'
import { grouped, Progress, type Screen } from '../../roles/start/progress.ts'
import { topicNames } from '../../roles/start/settings.ts'
import { WrongUseError } from '../../roles/start/start-error.ts'

export type ScanOptions = {
  /** The times between which the messages were written to Kafka, in epoch milliseconds. */
  readonly fromMs: number
  readonly toMs: number | undefined
  /** All of them must be met. */
  readonly conditions: readonly BodyCondition[]
  readonly source: string | undefined
  /** A text that the message must have somewhere. */
  readonly text: string | undefined
  /** The scan ends once it has found so many messages, or has read so many. */
  readonly mostFound: number
  readonly mostRead: number
  readonly isJson: boolean
  /** Writes a line about a message that was found. */
  readonly write: (line: string) => void
  readonly screen: Screen
  readonly signal: AbortSignal
}

export type Scanned = { readonly found: number; readonly isComplete: boolean }

/** How many partitions are read at the same time. */
const atATime = 4

/**
 * Reads the messages that upstream services wrote to Kafka in a range of time, and shows those that meet the
 * conditions. It reads the topic itself, so it also finds what the delivery log doesn't index, as long as
 * Kafka keeps it.
 */
export async function scanEvents(config: Config, log: Logger, options: ScanOptions): Promise<Scanned> {
  const { fromMs, toMs } = options
  if (toMs !== undefined && fromMs >= toMs) throw new WrongUseError('--from has to be before --to.')
  const kafka = await openKafka(config, log, 'log find')
  const topic = topicNames(config).events
  const ranges = await askKafka(config, offsetRanges(kafka, topic, options))
  const reader = createPartitionReader(kafka)
  const { conditions, text, source } = options
  const isSource = (id: string): boolean => source === undefined || id === source
  const judge = await openJudge(config, topic, { conditions, text, isSource })
  try {
    return await new Scan({ topic, ranges, reader, judge, options }).run()
  } finally {
    judge.stop()
    await reader.stop()
  }
}

/** The offsets of a partition that are read. */
type LogRange = Awaited<ReturnType<typeof offsetRanges>>[number]

type ScanParts = {
  readonly topic: string
  readonly ranges: readonly LogRange[]
  readonly reader: PartitionReader
  readonly judge: Judge
  readonly options: ScanOptions
}

/** Reads the ranges of a topic, a few partitions at the same time. */
class Scan {
  readonly #parts: ScanParts
  readonly #progress: Progress
  readonly #total: number
  #read = 0
  #found = 0
  #next = 0
  /** The time of the oldest record that wasn't read because a limit was reached; `undefined`: none. */
  #leftFromMs: number | undefined

  constructor(parts: ScanParts) {
    this.#parts = parts
    this.#total = parts.ranges.reduce((sum, { start, end }) => sum + (end - start), 0)
    this.#progress = new Progress(parts.options.screen, 'reading', this.#total)
  }

  async run(): Promise<Scanned> {
    const { options } = this.#parts
    try {
      await Promise.all(Array.from({ length: atATime }, () => this.#work()))
    } finally {
      this.#progress.abandon()
    }
    const isComplete = this.#leftFromMs === undefined && !options.signal.aborted
    options.screen.write(`${this.#summary()}\n`)
    return { found: this.#found, isComplete }
  }

  get #isOver(): boolean {
    const { mostFound, mostRead, signal } = this.#parts.options
    return this.#found >= mostFound || this.#read >= mostRead || signal.aborted
  }

  async #work(): Promise<void> {
    const { ranges } = this.#parts
    while (this.#next < ranges.length) {
      const partition = this.#next++
      const range = ranges[partition]
      if (range !== undefined) await this.#readPartition(partition, range)
    }
  }

  async #readPartition(partition: number, { start, end }: LogRange): Promise<void> {
    const { topic, reader } = this.#parts
    for (let from = start; from < end;) {
      if (this.#isOver) {
        this.#leave(this.#parts.options.fromMs)
        return
      }
      const { records, next } = await reader.piece({ topic, partition, from, to: end })
      if (!(await this.#look(partition, records))) return
      from = next
      this.#progress.at(this.#read, () => `${grouped(this.#found)} found`)
    }
  }

  /** Returns false if a limit was reached before the last of the records. */
  async #look(partition: number, records: readonly WholeRecord[]): Promise<boolean> {
    for (const record of records) {
      if (this.#isOver) {
        this.#leave(record.timestampMs)
        return false
      }
      this.#read++
      // Producers may set the times of records, so those between two offsets aren't all within two times.
      if (!this.#isInTime(record)) continue
      const found = await this.#parts.judge.of(partition, record)
      if (found !== undefined && !this.#isOver) this.#tell(partition, record, found)
    }
    return true
  }

  #isInTime({ timestampMs }: WholeRecord): boolean {
    const { fromMs, toMs = Infinity } = this.#parts.options
    return timestampMs >= fromMs && timestampMs < toMs
  }

  #leave(timestampMs: number): void {
    this.#leftFromMs = Math.min(this.#leftFromMs ?? Infinity, timestampMs)
  }

  #tell(partition: number, { offset, timestampMs }: WholeRecord, found: FoundEvent): void {
    const { topic, options } = this.#parts
    this.#found++
    const at = timeOf(timestampMs)
    if (options.isJson) {
      const { body, ...names } = found
      options.write(
        JSON.stringify({ at, ...names, origin: { topic, partition, offset }, body: jsonOf(body) }),
      )
      return
    }
    const { messageId, type, source, body } = found
    this.#progress.abandon()
    options.write(plain(`${at}  ${source}  ${type}  ${messageId}`))
    options.write(plain(`  ${body}`))
  }

  #summary(): string {
    const read = `${grouped(this.#read)} of ${grouped(this.#total)} messages were read`
    if (this.#parts.options.signal.aborted) return `interrupted: ${read}.`
    if (this.#leftFromMs === undefined) return `${read}; ${grouped(this.#found)} found.`
    const limit = this.#found >= this.#parts.options.mostFound ? '--limit' : '--max-read'
    return `${read}, up to ${limit}. To read on: --from ${timeOf(this.#leftFromMs)}, or raise ${limit}.`
  }
}

function jsonOf(body: string): unknown {
  const parsed = parseJson(body)
  return parsed.ok ? parsed.value : body
}
