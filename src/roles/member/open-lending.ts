import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import { DestinationCount } from '../../catalog/next-catalog.ts'
import type { Config } from '../../config/schema.ts'
import { startLossyProducer } from '../../kafka/produce/lossy-producer.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import { OtherLogError } from '../../kafka/wire/errors.ts'
import { decodeLending, encodeLending } from '../../lending/lending-record.ts'
import { Lending, lentForMs } from '../../lending/lending.ts'
import type { KafkaClient } from '../operations/replay-jobs.ts'
import { topicNames } from '../start/settings.ts'
import type { DeliveryPort } from './member-ports.ts'

export type OpenLendingOptions = {
  readonly config: Config
  readonly log: Logger
  readonly kafka: KafkaClient
  readonly catalog: () => Catalog
  readonly deliveries: DeliveryPort
}

/** The part of a member that borrows and lends parts of rate limits. */
export type OpenLending = Pick<Lending, 'assigned'> & {
  /** See `PipelineOptions.rateDifferenceOf`. */
  differenceOf(destinationId: string): number
  stop(): Promise<void>
}

/** Time between two looks at the topic, in milliseconds: while somebody asks, and otherwise. */
const busyEveryMs = 500
const quietEveryMs = 1_000
/** The time after which the topic `lending` is read again if it can't be read, in milliseconds. */
const againAfterMs = 15_000
const stallTimeoutMs = 10_000
const stopWithinMs = 500
const maxHeldBytes = 256 * 1024

/** Opens the part that lends. It has connections of its own to Kafka, and delays no delivery. */
export function openLending(options: OpenLendingOptions): OpenLending {
  const { config, log, kafka, catalog, deliveries } = options
  const topic = topicNames(config).lending
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  const producer = startLossyProducer({
    kafka,
    topic,
    maxBytes: maxHeldBytes,
    onWritten: () => undefined,
    onDropped: () => undefined,
    onTrouble: (reason) => log.debug({ topic, reason }, 'writing what this worker lends'),
  })
  const lending = new Lending({
    id: randomUUID(),
    waiting: () => deliveries.pipeline.rates.waiting(),
    needOf: (id) => deliveries.pipeline.rates.needOf(id),
    isSpare: (id) => deliveries.pipeline.rates.isSpare(id),
    lowered: (id) => deliveries.pipeline.rates.lowered(id),
    // A static member may come back before the others have noticed that its process had ended.
    lentUntilMs: config.kafka.instanceId === undefined ? 0 : lentForMs,
  })
  const stopping = new AbortController()
  const hasRates = createRateSearch(catalog)
  const following = followLending({
    lending,
    isWanted: () => lending.isPossible && hasRates(),
    reader,
    topic,
    write: (value) => producer.offer(0, value, 1),
    signal: stopping.signal,
    log,
  })
  return {
    assigned: (share, generation) => lending.assigned(share, generation),
    differenceOf: (id) => lending.differenceOf(id, performance.now()),
    async stop() {
      stopping.abort(new Error('the worker stops'))
      await Promise.all([following, reader.stop(), producer.stop(stopWithinMs)])
    },
  }
}

/** Returns a function that tells whether the present catalog has a rate limit. */
function createRateSearch(catalog: () => Catalog): () => boolean {
  const limited = new DestinationCount(({ rateLimit }) => rateLimit !== undefined)
  return () => limited.in(catalog()) > 0
}

type FollowOptions = {
  readonly lending: Lending
  /** False while there is nothing to lend or to borrow. Nothing is read meanwhile. */
  readonly isWanted: () => boolean
  readonly reader: ReturnType<typeof createPartitionReader>
  readonly topic: string
  readonly write: (value: Buffer) => void
  readonly signal: AbortSignal
  readonly log: Pick<Logger, 'warn' | 'info'>
}

/** Reads and writes the topic `lending` until `signal` fires. */
async function followLending(options: FollowOptions): Promise<void> {
  const { lending, isWanted, reader, topic, write, signal, log } = options
  const where = { topic, partition: 0, stallTimeoutMs, signal }
  let read = reader.follow(where)
  let position: number | undefined
  let isTroubled = false
  while (!signal.aborted) {
    let restMs = quietEveryMs
    try {
      if (isWanted()) {
        // Earlier records are about loans that are over, or that this process has no part in.
        position ??= (await reader.range(where)).end
        for await (const records of read(position)) {
          for (const { offset, value } of records) {
            position = offset + 1
            const record = decodeLending(value)
            if (record !== undefined) lending.take(record, performance.now())
          }
        }
        if (isTroubled) log.info({ topic }, 'workers lend each other their parts of rate limits again')
        isTroubled = false
      } else position = undefined
      const record = lending.look(performance.now())
      if (record !== undefined) write(encodeLending(record))
      if (lending.isBusy) restMs = busyEveryMs
    } catch (error) {
      if (signal.aborted) return
      // The topic is optional. Without it, each worker has its own part.
      if (!isTroubled)
        log.warn({ err: error, topic }, 'workers lend each other nothing: the topic can not be read')
      isTroubled = true
      restMs = againAfterMs
      if (error instanceof OtherLogError) read = reader.follow(where)
      position = undefined
    }
    await delay(restMs, undefined, { signal }).catch(() => undefined)
  }
}
