import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { MarkKeeper } from '../../backfill/mark-keeper.ts'
import { type Connection, marksReadEveryMs } from '../../backfill/marks.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { OneAtATime } from '../../async/one-at-a-time.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import { within } from '../../async/within.ts'
import { refusingOtherLayout } from '../start/growth-journal.ts'
import type { Layout } from '../../growth/plan.ts'

/**
 * The marks of the destinations that need a backfill. All members of the group share the marks. The marks are
 * kept on Kafka, so they outlast every process.
 */
export type BackfillMarks = {
  /**
   * Writes a mark because a destination has missed a value of a space. Call this for every missed value,
   * because repeated calls cost little. Returns a promise that resolves when the mark is written. Returns
   * `undefined` if the mark is written already.
   */
  needsBackfill(destinationId: string, spaceId: string): Promise<void> | undefined
  /**
   * The destinations that need a backfill, each with the space whose values it lacks. A mark that another
   * member writes appears here some seconds later.
   */
  readonly behind: readonly Connection[]
  readonly keeper: Pick<MarkKeeper, 'marks' | 'position' | 'tell' | 'needsBackfill'>
  /** Reads all marks that the topic has at the time of the call. Rejects when Kafka doesn't answer. */
  read(): Promise<void>
  /** Writes the marks that aren't written yet. Gives up after half a second. */
  stop(): Promise<void>
}

const readStallMs = 10_000
const stopWithinMs = 500

/** Opens the marks that are kept in the topic `backfills`. */
export function openBackfillMarks({
  kafka,
  topic,
  layout,
  producer,
  log,
  onFatal,
}: {
  kafka: ReturnType<typeof createKafka>
  topic: string
  layout: Layout
  producer: Pick<RecordProducer, 'produceAt'>
  log: Logger
  /**
   * Called if the log that was read is replaced by another log. Also called if the installation gets another
   * layout than the configured layout.
   */
  onFatal: (error: Error) => void
}): BackfillMarks {
  const reader = createPartitionReader(kafka)
  const stopping = new AbortController()
  const read = reader.follow({ topic, partition: 0, stallTimeoutMs: readStallMs }, onFatal)
  const keeper = new MarkKeeper({
    partitions: layout.partitions,
    read: (from) => refusingOtherLayout(read(from), layout, onFatal),
    write: (record) => producer.produceAt({ ...record, topic, partition: 0, headers: {} }),
    onMark: (destination, space) => log.warn({ destination, space }, 'the destination needs a backfill'),
  })
  const reads = new OneAtATime(() => keeper.update())
  const following = follow(reads, log, stopping.signal)

  async function finish(): Promise<void> {
    await following
    if (keeper.hasMissed) await reads.run()
    await keeper.written()
  }

  return {
    needsBackfill: (destinationId, spaceId) => keeper.needsBackfill(destinationId, spaceId),
    get behind() {
      return keeper.needingBackfill
    },
    keeper,
    read: () => reads.run(),
    async stop() {
      stopping.abort()
      const over = finish()
        .catch(() => undefined)
        .then(() => reader.stop())
      await within(stopWithinMs, over)
      // If a broker hangs, closing the connections to it would hang too, so nobody waits for the close.
      void reader.stop()
    },
  }
}

/** Reads the marks again and again, until the signal fires. */
async function follow(reads: OneAtATime, log: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await reads.run().catch((error: unknown) => {
      if (!signal.aborted)
        log.warn(
          { err: error },
          'the topic backfills can not be read: it is unknown which destinations need a backfill',
        )
    })
    await delay(marksReadEveryMs, undefined, { signal }).catch(() => undefined)
  }
}
