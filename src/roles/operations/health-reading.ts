import type { Config } from '../../config/schema.ts'
import { OneAtATime } from '../../async/one-at-a-time.ts'
import { HealthBoard } from '../../health/health-board.ts'
import { wordLastsMs } from '../../health/reporter.ts'
import { offsetRanges, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import { OtherLogError } from '../../kafka/wire/errors.ts'
import { countPartitions } from '../../topics/topic-partitions.ts'
import { topicNames } from '../start/settings.ts'
import type { KafkaClient } from './replay-jobs.ts'

/**
 * What the workers know of destinations, at a time in epoch milliseconds. Without a board, nothing is known.
 */
export type KnownHealth = { readonly board: HealthBoard | undefined; readonly nowMs: number }

/** Reads what the workers know of destinations. */
export type HealthReading = {
  /**
   * Reads up to the present end, and returns what is known. `undefined`: nothing can be known, because the
   * topic doesn't exist or can't be read.
   */
  read(): Promise<HealthBoard | undefined>
}

const stallTimeoutMs = 10_000
/** The clocks of brokers may be behind that of this process by this time, in milliseconds. */
const clocksDifferMs = 5 * 60_000
/** If the last reading was longer ago than this, in milliseconds, the ages of records are taken from them. */
const followedMs = 15_000

/** Opens a reading of the topic `health`. `onTrouble` is called when it can't be read. */
export function openHealthReading(
  config: Config,
  kafka: KafkaClient,
  reader: Pick<PartitionReader, 'follow'>,
  onTrouble: (error: unknown) => void,
): HealthReading {
  const where = { topic: topicNames(config).health, partition: 0, stallTimeoutMs }
  let opened:
    | { readonly board: HealthBoard; readonly read: ReturnType<PartitionReader['follow']> }
    | undefined
  let position = 0
  let readMs = -Infinity
  let result: HealthBoard | undefined

  async function open(): Promise<typeof opened> {
    if ((await countPartitions(kafka, where.topic)) === undefined) return undefined
    const fromMs = Date.now() - wordLastsMs - clocksDifferMs
    const [range] = await offsetRanges(kafka, where.topic, { fromMs, toMs: undefined })
    position = range?.start ?? 0
    return { board: new HealthBoard(), read: reader.follow(where) }
  }

  async function update(): Promise<HealthBoard | undefined> {
    opened ??= await open()
    if (opened === undefined) return undefined
    const { board, read } = opened
    const isFollowed = Date.now() - readMs < followedMs
    for await (const records of read(Math.max(position, board.position)))
      for (const record of records)
        board.take(record, isFollowed ? Date.now() : Math.min(record.timestampMs, Date.now()))
    readMs = Date.now()
    board.forgetDead(readMs)
    return board
  }

  const updates = new OneAtATime(async () => {
    try {
      result = await update()
    } catch (error) {
      if (error instanceof OtherLogError) opened = undefined
      result = undefined
      onTrouble(error)
    }
  })
  return {
    async read() {
      await updates.run()
      return result
    },
  }
}
