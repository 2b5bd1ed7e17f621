import type { Logger } from 'pino'
import { Breath } from '../../async/breath.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { changedDestinations } from '../../catalog/next-catalog.ts'
import type { Config } from '../../config/schema.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import { decodeOrder, type WorkerOrder } from '../../recall/order-record.ts'
import { givenAnotherChance } from '../../recall/edited-destinations.ts'
import { Recoveries } from '../../recall/recoveries.ts'
import { orderLastsMs, Recalls } from '../../recall/recalls.ts'
import type { RecallCause } from '../../recall/run.ts'
import { waitOf } from '../../retry/ladder.ts'
import type { WaitingQueues } from '../../waiting/queues.ts'
import type { KafkaClient } from '../operations/replay-jobs.ts'
import { ladderOf } from '../start/settings.ts'
import type { AutoPauses } from './auto-pauses.ts'
import type { NoticesFeed } from './notices-feed.ts'
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
  readonly feed: Pick<NoticesFeed, 'onRecord' | 'onRound' | 'hasRead'>
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
const fetchBytes = 512 * 1024

/** Opens the part that carries out orders about what waits. It has connections of its own to Kafka. */
export function openRecalls(options: OpenRecallsOptions): OpenRecalls {
  const { config, log, kafka, catalog, tiers, pipeline, intake, group, pauses, feed } = options
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
  const leastMs = Math.min(recoveredAfterMs, firstWaitMs)
  const lookEveryMs = Math.min(mostEveryMs, leastMs / 2)
  const recoveries = new Recoveries(leastMs)
  let lookAtMs = 0
  function callBack(destinationIds: readonly string[], cause: RecallCause): void {
    for (const destinationId of destinationIds)
      recalls.order({ destinationId, messageId: undefined }, cause, Date.now())
  }
  let before = catalog()
  let orders: ReadOrder[] = []
  feed.onRecord(({ key, value, timestampMs }) => {
    const order = decodeOrder(key, value)
    if (order === undefined) return
    // Old orders are read at the start. After that, the clock of this machine decides nothing: it may be
    // wrong.
    const isNew = feed.hasRead
    if (isNew || Date.now() - timestampMs < orderLastsMs) orders.push({ order, atMs: timestampMs, isNew })
  })
  // The orders of a reading are carried out after its pauses and their ends are in force.
  feed.onRound(() => {
    const read = orders
    orders = []
    for (const one of read) carryOut(one, { ...options, recalls })
    if (performance.now() < lookAtMs) return
    lookAtMs = performance.now() + lookEveryMs
    callBack(recoveries.look(pipeline.openHooks()), 'recovered')
  })
  pauses.onChange(() => {
    const [was, now] = [before, catalog()]
    before = now
    void callBackEdited(was, now, (id) => callBack([id], 'edited'))
  })
  return {
    async stop() {
      await Promise.all([recalls.stop(), reader.stop()])
    },
  }
}

/** Compares in pieces, because one change may edit thousands of destinations. */
async function callBackEdited(was: Catalog, now: Catalog, callBack: (id: string) => void): Promise<void> {
  const breath = new Breath()
  for (const id of changedDestinations(was, now)) {
    for (const edited of givenAnotherChance(was.destinations, now.destinations, [id])) callBack(edited)
    await breath.take()
  }
}

type CarryingOut = Pick<OpenRecallsOptions, 'pipeline' | 'waiting'> & { readonly recalls: Recalls }

type ReadOrder = {
  readonly order: WorkerOrder
  /** The time of the order, in epoch milliseconds. */
  readonly atMs: number
  /**
   * False if the order was there before this member read the topic for the first time. This may be a while
   * ago, if the topic couldn't be read.
   */
  readonly isNew: boolean
}

function carryOut({ order, atMs, isNew }: ReadOrder, { pipeline, waiting, recalls }: CarryingOut): void {
  const { kind, destinationId } = order
  if (kind === 'recall') {
    recalls.order(order, 'asked', atMs)
    return
  }
  if (isNew) pipeline.dropLane(destinationId)
  waiting.drop(destinationId, atMs, isNew)
  recalls.order({ destinationId, messageId: undefined }, 'dropped', atMs)
}
