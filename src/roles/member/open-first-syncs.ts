import type { Logger } from 'pino'
import type { HeldState } from '../../audience/store/states-page.ts'
import type { AudienceUnits } from '../../audience/unit/units.ts'
import { FirstSyncs } from '../../backfill/first-syncs.ts'
import type { Connection } from '../../backfill/marks.ts'
import { replayOf } from '../../backfill/replay-record.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { differenceBetween } from '../../catalog/next-catalog.ts'
import type { Config } from '../../config/schema.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import { createFirstSyncObserver } from '../../telemetry/first-sync-observer.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import type { BackfillMarks } from './backfill-marks.ts'
import { topicNames } from '../start/settings.ts'

export type FirstSyncsOptions = {
  config: Config
  metrics: WorkerMetrics
  log: Logger
  catalog: () => Catalog
  marks: BackfillMarks
  audiences: Pick<AudienceUnits, 'statesOf'>
  producer: Pick<RecordProducer, 'produce'>
  /** Returns how many records of first syncs and replays wait for a destination in this member's units. */
  backlogOf: (destinationId: string) => number
}

/**
 * Opens the first syncs, which send the present members of a space to destinations that are connected to it
 * later. Stop the first syncs before the units.
 */
export function openFirstSyncs({
  config,
  metrics,
  log,
  catalog,
  marks,
  audiences,
  producer,
  backlogOf,
}: FirstSyncsOptions): FirstSyncs {
  const topics = topicNames(config)

  async function send(unit: number, connection: Connection, states: readonly HeldState[]): Promise<void> {
    const { destinationId, spaceId } = connection
    const timestampMs = Date.now()
    const written = await Promise.all(
      states.map((held) =>
        producer.produce(replayOf({ ...held, timestampMs }, { unit, destinationId, topics })),
      ),
    )
    // A value that is too large for the record of a delivery isn't sent. The destination gets a mark instead.
    if (written.includes('refused')) await marks.needsBackfill(destinationId, spaceId)
  }

  return new FirstSyncs({
    isWanted: config.audiences.firstSync,
    perSecond: config.audiences.firstSyncRate,
    partitions: config.topics.partitions,
    catalog,
    marks: marks.keeper,
    readMarks: () => marks.read(),
    statesOf: (unit, query) => audiences.statesOf(unit, query),
    send,
    backlogOf,
    observer: createFirstSyncObserver({ metrics, log }),
  })
}

/**
 * Returns false if two catalogs surely have the same connections between destinations and spaces. This takes
 * as long as the catalogs differ. To review all connections of all units takes much longer.
 */
export function mayConcernSpaces(before: Catalog, now: Catalog): boolean {
  const difference = differenceBetween(before, now)
  if (difference === undefined) return true
  const isSpace = (id: string): boolean =>
    [before, now].some(({ sources }) => sources.get(id)?.kind === 'audiences')
  const ofDestinations = [...difference.destinations].flatMap((id) =>
    [before, now].flatMap(({ destinations }) => destinations.get(id)?.sources ?? []),
  )
  return [...difference.sources, ...ofDestinations].some(isSpace)
}
