import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { MarkKeeper } from '../backfill/mark-keeper.ts'
import { type Connection, marksReadEveryMs } from '../backfill/marks.ts'
import type { createKafka } from '../kafka/client.ts'
import { createPartitionReader } from '../kafka/partition-reader.ts'
import type { RecordProducer } from '../kafka/producer.ts'
import { within } from '../kafka/within.ts'

/**
 * Which destinations need a backfill: the same for all members of the group, and for those that come after
 * them.
 */
export type BackfillMarks = {
  /**
   * A destination has missed a value of a space. May be told as often as that happens, which costs little.
   * Gives a promise where that isn't written yet, and would be lost with this process.
   */
  needsBackfill(destinationId: string, spaceId: string): Promise<void> | undefined
  /**
   * Destinations that need a backfill, each with the space, by what all members have written until some
   * seconds ago.
   */
  readonly behind: readonly Connection[]
  readonly keeper: Pick<MarkKeeper, 'marks' | 'position' | 'tell' | 'needsBackfill'>
  /** Reads what is in the log as of the call. Throws where Kafka doesn't answer. */
  read(): Promise<void>
  /** Writes what has still to be told, for half a second at the most. */
  stop(): Promise<void>
}

const readStallMs = 10_000
const stopWithinMs = 500

/** Keeps the marks in the topic `backfills`. */
export function openBackfillMarks({
  kafka,
  topic,
  partitions,
  producer,
  log,
}: {
  kafka: ReturnType<typeof createKafka>
  topic: string
  /** How many units there are. */
  partitions: number
  producer: Pick<RecordProducer, 'produceAt'>
  log: Logger
}): BackfillMarks {
  const reader = createPartitionReader(kafka)
  const stopping = new AbortController()
  const keeper = new MarkKeeper({
    partitions,
    read: (from) => reader.read({ topic, partition: 0, from, stallTimeoutMs: readStallMs }),
    write: (record) => producer.produceAt({ ...record, topic, partition: 0, headers: {} }),
    onMark: (destination, space) => log.warn({ destination, space }, 'the destination needs a backfill'),
  })

  let reading = Promise.resolve()
  let next: Promise<void> | undefined

  /** One after the other: whoever calls meanwhile shares the one that begins then. */
  function read(): Promise<void> {
    next ??= reading
      .catch(() => undefined)
      .then(() => {
        next = undefined
        reading = keeper.update()
        return reading
      })
    return next
  }

  async function follow(): Promise<void> {
    while (!stopping.signal.aborted) {
      await read().catch((error: unknown) => {
        if (!stopping.signal.aborted)
          log.warn(
            { err: error },
            'the topic of backfills can not be read: it is unknown which destinations need a backfill',
          )
      })
      await delay(marksReadEveryMs, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  const following = follow()

  async function finish(): Promise<void> {
    await following
    if (keeper.hasMissed) await read()
    await keeper.written()
  }

  return {
    needsBackfill: (destinationId, spaceId) => keeper.needsBackfill(destinationId, spaceId),
    get behind() {
      return keeper.needingBackfill
    },
    keeper,
    read,
    async stop() {
      stopping.abort()
      const over = finish()
        .catch(() => undefined)
        .then(() => reader.stop())
      await within(stopWithinMs, over)
      // A broker that hangs holds up the end of its connections too: that is not waited for.
      void reader.stop()
    },
  }
}
