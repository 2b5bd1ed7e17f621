import type { Logger } from 'pino'
import type { FirstSyncObserver, FirstSyncProgress } from '../backfill/first-sync-ports.ts'
import type { WorkerMetrics } from './worker-metrics.ts'

/**
 * Creates an observer that counts the records that first syncs send, and logs the beginning and end of first
 * syncs.
 */
export function createFirstSyncObserver({
  metrics: { firstSyncSent },
  log,
}: {
  metrics: Pick<WorkerMetrics, 'firstSyncSent'>
  log: Logger
}): FirstSyncObserver {
  const sent = firstSyncSent.of({})
  return {
    begun({ destinationId, spaceId }, { units, left }) {
      log.info(
        { destination: destinationId, space: spaceId, units, left },
        'the destination was connected to the space later: it is getting the present members',
      )
    },
    sent({ destinationId }, count) {
      sent(destinationId).add(count)
    },
    ended({ destinationId, spaceId }, report) {
      log.info(
        { destination: destinationId, space: spaceId, ...report },
        'this worker has queued all of its members of the space for the destination',
      )
    },
    stopped({ destinationId, spaceId }) {
      log.warn(
        { destination: destinationId, space: spaceId },
        'the destination was switched off or disconnected from the space before it got all members: the first sync begins anew when it is back',
      )
    },
    leftOut({ destinationId, spaceId }) {
      log.warn(
        { destination: destinationId, space: spaceId },
        'the destination was connected to the space later, and audiences.firstSync (SLUICE_AUDIENCES_FIRST_SYNC) is off: run `sluice audience backfill` to send it the present members',
      )
    },
    failed(error) {
      log.warn({ err: error }, 'first syncs fail, trying again')
    },
  }
}

export function showFirstSyncs(
  {
    firstSyncs,
    firstSyncLeft,
    perDestination,
  }: Pick<WorkerMetrics, 'firstSyncs' | 'firstSyncLeft' | 'perDestination'>,
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
