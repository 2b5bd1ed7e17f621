import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Listeners } from '../../async/listeners.ts'
import { within } from '../../async/within.ts'
import type { Config } from '../../config/schema.ts'
import { createPartitionReader, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import { OtherLogError } from '../../kafka/wire/errors.ts'
import type { KeyedRecord } from '../../message/records.ts'
import type { KafkaClient } from '../operations/replay-jobs.ts'
import { noticesReadEveryMs, topicNames } from '../start/settings.ts'

/** The time after which the topic `notices` is read again if it can't be read, in milliseconds. */
const againAfterMs = 15_000
const stallTimeoutMs = 10_000
/** A worker starts without knowing the pauses if it can't read them within this time, in milliseconds. */
const knownWithinMs = 5_000

type FeedOptions = {
  readonly reader: Pick<PartitionReader, 'follow' | 'stop'>
  readonly topic: string
  readonly log: Pick<Logger, 'debug'>
}

/**
 * Reads the topic `notices` each second, for what each worker has to know soon: which destinations are
 * paused, which hooks are gone, and orders to try messages now. The topic is optional. Without it, nobody is
 * told anything.
 */
export class NoticesFeed {
  readonly #options: FeedOptions
  readonly #records = new Listeners<[record: KeyedRecord]>()
  readonly #rounds = new Listeners<[]>()
  readonly #resets = new Listeners<[]>()
  readonly #stopping = new AbortController()
  readonly #first = Promise.withResolvers<void>()
  #loop: Promise<void> | undefined
  #hasRead = false

  constructor(options: FeedOptions) {
    this.#options = options
  }

  /** Calls `listener` with each record, from the first one in the topic on. */
  onRecord(listener: (record: KeyedRecord) => void): void {
    this.#records.add(listener)
  }

  /** Calls `listener` after each reading, also if nothing could be read. */
  onRound(listener: () => void): void {
    this.#rounds.add(listener)
  }

  /** Calls `listener` when another log has taken the place of the one that was read. It is read anew. */
  onReset(listener: () => void): void {
    this.#resets.add(listener)
  }

  /**
   * True once the topic was read to its end. Records that come from then on are new, whatever their times.
   */
  get hasRead(): boolean {
    return this.#hasRead
  }

  /** Starts to read. Resolves once the topic was read to its end, or can't be read. */
  async start(): Promise<void> {
    this.#loop ??= this.#run()
    await within(knownWithinMs, this.#first.promise)
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the worker stops'))
    await Promise.all([this.#loop, this.#options.reader.stop()])
  }

  async #run(): Promise<void> {
    const { reader, topic, log } = this.#options
    const { signal } = this.#stopping
    const where = { topic, partition: 0, stallTimeoutMs, signal }
    let read = reader.follow(where)
    let position = 0
    while (!signal.aborted) {
      let restMs = noticesReadEveryMs
      try {
        for await (const records of read(position)) {
          for (const record of records) {
            position = record.offset + 1
            this.#records.tell(record)
          }
        }
        this.#hasRead = true
      } catch (error) {
        if (signal.aborted) break
        log.debug({ err: error }, 'pauses and orders can not be read, trying again')
        restMs = againAfterMs
        if (error instanceof OtherLogError) {
          read = reader.follow(where)
          this.#hasRead = false
          position = 0
          restMs = noticesReadEveryMs
          this.#resets.tell()
        }
      }
      this.#rounds.tell()
      this.#first.resolve()
      await delay(restMs, undefined, { signal }).catch(() => undefined)
    }
    this.#first.resolve()
  }
}

/** Opens the feed. It has connections of its own to Kafka. */
export function openNoticesFeed({
  config,
  kafka,
  log,
}: {
  readonly config: Config
  readonly kafka: KafkaClient
  readonly log: Logger
}): NoticesFeed {
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  return new NoticesFeed({ reader, topic: topicNames(config).notices, log })
}
