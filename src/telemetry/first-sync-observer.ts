import type { Logger } from 'pino'
import type { FirstSyncObserver, FirstSyncProgress } from '../backfill/first-syncs.ts'
import { memo } from './memo.ts'
import type { Metrics } from './metrics.ts'

/** Counts what destinations that are connected later are told, and tells of the begin and the end of that. */
export function createFirstSyncObserver({
  metrics: { firstSyncSent, perDestination },
  log,
}: {
  metrics: Pick<Metrics, 'firstSyncSent' | 'perDestination'>
  log: Logger
}): FirstSyncObserver {
  const sent = memo((destination: string) => firstSyncSent.series(perDestination ? { destination } : {}))
  return {
    begun({ destinationId, spaceId }, { units, left }) {
      log.info(
        { destination: destinationId, space: spaceId, units, left },
        'the destination was connected later: it is being told who is in the space',
      )
    },
    sent({ destinationId }, count) {
      sent(perDestination ? destinationId : '').add(count)
    },
    ended({ destinationId, spaceId }, report) {
      log.info(
        { destination: destinationId, space: spaceId, ...report },
        'all that this worker has of the space is on its way to the destination',
      )
    },
    stopped({ destinationId, spaceId }) {
      log.warn(
        { destination: destinationId, space: spaceId },
        'the destination was switched off, or parted from the space, before it was told who is in it: that begins anew once it is back',
      )
    },
    leftOut({ destinationId, spaceId }) {
      log.warn(
        { destination: destinationId, space: spaceId },
        'the destination was connected later, and audiences.firstSync (SLUICE_AUDIENCES_FIRST_SYNC) is off: tell it who is in the space with `sluice audience backfill`',
      )
    },
    failed(error) {
      log.warn(
        { err: error },
        'destinations that were connected later are not told who is in their space: it is tried again',
      )
    },
  }
}

/** Shows what is under way, as far as this worker's units go. */
export function showFirstSyncs(
  {
    firstSyncs,
    firstSyncLeft,
    perDestination,
  }: Pick<Metrics, 'firstSyncs' | 'firstSyncLeft' | 'perDestination'>,
  progress: readonly FirstSyncProgress[],
): void {
  firstSyncs.reset()
  firstSyncLeft.reset()
  if (!perDestination) firstSyncLeft.set(0)
  for (const state of perDestination ? [] : ['waiting', 'under_way']) firstSyncs.set({ state }, 0)
  for (const { state, destinationId, left } of progress) {
    const destination = perDestination ? { destination: destinationId } : {}
    firstSyncs.inc({ state, ...destination })
    firstSyncLeft.inc(destination, left)
  }
}
