import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { createPartitionReader, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import { OtherLogError } from '../../kafka/wire/errors.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import { decodeOrder, ordersReadEveryMs, type WorkerOrder } from '../../recall/order-record.ts'
import { givenAnotherChance, Recoveries } from '../../recall/reasons.ts'
import { orderLastsMs, Recalls } from '../../recall/recalls.ts'
import type { RecallCause } from '../../recall/run.ts'
import { waitOf } from '../../retry/ladder.ts'
import type { WaitingQueues } from '../../waiting/queues.ts'
import type { KafkaClient } from '../operations/replay-jobs.ts'
import { ladderOf, topicNames } from '../start/settings.ts'
import type { AutoPauses } from './auto-pauses.ts'
import type { GroupPort } from './member-ports.ts'
import type { RecordIntake } from './record-intake.ts'
import type { RetryTier } from './retry-tiers.ts'

export type OpenRecallsOptions = {
  readonly config: Config
  readonly log: Logger
  readonly kafka: KafkaClient
  readonly catalog: () => Catalog
  readonly tiers: readonly RetryTier[]
  readonly pipeline: Pick<Pipeline, 'askAgain' | 'dropLane' | 'openHooks'>
  readonly waiting: Pick<WaitingQueues, 'drop'>
  readonly intake: Pick<RecordIntake, 'acceptRecalled' | 'dropRecalled'>
  readonly group: Pick<GroupPort, 'early'>
  readonly pauses: Pick<AutoPauses, 'onChange'>
}

/** The part of a member that calls messages back which wait on the retry topics, or gives them up. */
export type OpenRecalls = Pick<Recalls, 'stop'>

/**
 * When a hook works again that had failed for this time, in milliseconds, its destination is called back. If
 * the first rung of the ladder is shorter, this is the time: nothing waits long after a shorter fault.
 */
const recoveredAfterMs = 60_000
/** Time between two looks at the hooks, in milliseconds. If the time above is short, this one is shorter. */
const mostEveryMs = 5_000
/** The time after which the topic `notices` is read again if it can't be read, in milliseconds. */
const againAfterMs = 15_000
const stallTimeoutMs = 10_000
const fetchBytes = 512 * 1024

/** Opens the part that carries out orders about what waits. It has connections of its own to Kafka. */
export function openRecalls(options: OpenRecallsOptions): OpenRecalls {
  const { config, log, kafka, catalog, tiers, pipeline, intake, group, pauses } = options
  const reader = createPartitionReader(kafka, { keepsOpen: true, fetchBytes })
  const firstWaitMs = waitOf(ladderOf(config), 0)
  const recalls = new Recalls({
    topics: tiers.map(({ topic }) => topic),
    partitions: config.topics.partitions,
    early: (topic, id) => group.early(topic, id),
    reader,
    accept: (record, content) => intake.acceptRecalled(record, content),
    drop: (record, content) => intake.dropRecalled(record, content),
    isOn: (id) => catalog().destinations.get(id)?.state === 'on',
    askAgain: (id) => pipeline.askAgain(id),
    uncertainForMs: firstWaitMs,
    now: Date.now,
    log,
  })
  const stopping = new AbortController()
  const leastMs = Math.min(recoveredAfterMs, firstWaitMs)
  const lookEveryMs = Math.min(mostEveryMs, leastMs / 2)
  const recoveries = new Recoveries(leastMs)
  let lookAtMs = 0
  function callBack(destinationIds: readonly string[], cause: RecallCause): void {
    for (const destinationId of destinationIds)
      recalls.order({ destinationId, messageId: undefined }, cause, Date.now())
  }
  let before = catalog().destinations
  const orders = followOrders({
    reader,
    topic: topicNames(config).notices,
    signal: stopping.signal,
    log,
    take: (order, atMs) => carryOut(order, atMs, { ...options, recalls }),
    look() {
      if (performance.now() < lookAtMs) return
      lookAtMs = performance.now() + lookEveryMs
      callBack(recoveries.look(pipeline.openHooks()), 'recovered')
    },
  })
  pauses.onChange(() => {
    const now = catalog().destinations
    const changed = givenAnotherChance(before, now)
    before = now
    callBack(changed, 'edited')
  })
  return {
    async stop() {
      stopping.abort(new Error('the worker stops'))
      await Promise.all([recalls.stop(), orders, reader.stop()])
    },
  }
}

type CarryingOut = Pick<OpenRecallsOptions, 'pipeline' | 'waiting'> & { readonly recalls: Recalls }

/** Carries out an order. `atMs` is its time, in epoch milliseconds. */
function carryOut(order: WorkerOrder, atMs: number, { pipeline, waiting, recalls }: CarryingOut): void {
  const { kind, destinationId } = order
  if (kind === 'recall') {
    recalls.order(order, 'asked', atMs)
    return
  }
  pipeline.dropLane(destinationId)
  waiting.drop(destinationId, atMs)
  recalls.order({ destinationId, messageId: undefined }, 'dropped', atMs)
}

type FollowOptions = {
  readonly reader: PartitionReader
  readonly topic: string
  readonly signal: AbortSignal
  readonly log: Pick<Logger, 'debug'>
  /** Takes an order. `atMs` is its time, in epoch milliseconds. */
  readonly take: (order: WorkerOrder, atMs: number) => void
  /** Called before each reading. */
  readonly look: () => void
}

/** Reads the orders in the topic `notices` until `signal` fires. */
async function followOrders({ reader, topic, signal, log, take, look }: FollowOptions): Promise<void> {
  const where = { topic, partition: 0, stallTimeoutMs, signal }
  let read = reader.follow(where)
  let position = 0
  while (!signal.aborted) {
    let restMs = ordersReadEveryMs
    look()
    try {
      for await (const records of read(position)) {
        for (const { offset, key, value, timestampMs } of records) {
          position = offset + 1
          const order = decodeOrder(key, value)
          if (order !== undefined && Date.now() - timestampMs < orderLastsMs) take(order, timestampMs)
        }
      }
    } catch (error) {
      if (signal.aborted) return
      // The topic is optional. Without it, nobody can give orders.
      log.debug({ err: error }, 'orders about what waits can not be read, trying again')
      restMs = againAfterMs
      if (error instanceof OtherLogError) {
        read = reader.follow(where)
        position = 0
      }
    }
    await delay(restMs, undefined, { signal }).catch(() => undefined)
  }
}
