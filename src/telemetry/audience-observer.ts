import type { Logger } from 'pino'
import { losesMost } from '../audience/lost-members.ts'
import type { AudienceDeadReason } from '../message/dead-letter-reasons.ts'
import type { AudienceObserver, ChangeOutcome } from '../audience/audience-ports.ts'
import { memo } from './memo.ts'
import type { WorkerMetrics } from './worker-metrics.ts'
import type { CountedSeries } from './metric-tally.ts'

const syncOutcomes = [
  'applied',
  'sync_incomplete',
  'sync_outdated',
  'sync_inconsistent',
  'sync_too_large',
  'sync_wrong_partition',
] as const satisfies readonly ('applied' | AudienceDeadReason)[]

/**
 * Creates an observer that counts the outcomes of changes of audiences and computed traits, and logs rare
 * events.
 */
export function createAudienceObserver({
  metrics,
  log,
}: {
  metrics: Pick<
    WorkerMetrics,
    'audienceChanges' | 'audienceSyncs' | 'audienceSynced' | 'restoreSeconds' | 'deliveries'
  >
  log: Logger
}): AudienceObserver {
  const { audienceChanges, audienceSyncs, audienceSynced, restoreSeconds, deliveries } = metrics
  const changes = changeSeries(audienceChanges)
  // The series are created with 0, because an alert needs a series even before the first event.
  for (const outcome of syncOutcomes) audienceSyncs.inc({ outcome }, 0)
  for (const outcome of ['joined', 'left', 'unchanged']) audienceSynced.inc({ outcome }, 0)
  const undelivered = memo((verdict: 'superseded' | 'suppressed') => deliveries.of({ verdict }))
  return {
    changed(outcome) {
      changes[outcome].inc()
    },
    synced(report) {
      audienceSyncs.inc({ outcome: 'applied' })
      audienceSynced.inc({ outcome: 'joined' }, report.joined)
      audienceSynced.inc({ outcome: 'left' }, report.left)
      audienceSynced.inc({ outcome: 'unchanged' }, report.unchanged)
      if (losesMost({ leaving: report.left, staying: report.unchanged }))
        log.warn(
          report,
          'a sync was applied, and most members of this unit have left the audience: if they should not have, sync the right users, and they enter again',
        )
      else log.info(report, 'a sync was applied')
    },
    syncRefused(sync, reason) {
      audienceSyncs.inc({ outcome: reason })
      log.error(
        { ...sync, reason },
        'a sync was refused: all of its parts are dead letters, and no user has left the audience',
      )
    },
    restored({ unit, mistrust, records, tookMs }) {
      restoreSeconds.set(tookMs / 1_000)
      if (mistrust !== undefined)
        log.warn(
          { unit, why: mistrust },
          'the state on disk was not trusted: the worker has read all of it again from Kafka',
        )
      log.info({ unit, records, tookMs }, 'the state of a unit is complete')
    },
    notSent(why) {
      undelivered(why)('').inc()
    },
  }
}

function changeSeries(
  audienceChanges: WorkerMetrics['audienceChanges'],
): Readonly<Record<ChangeOutcome, CountedSeries>> {
  const of = (outcome: ChangeOutcome): CountedSeries => audienceChanges.series({ outcome })
  return {
    changed: of('changed'),
    confirmed: of('confirmed'),
    repeated: of('repeated'),
    outdated: of('outdated'),
    deleted: of('deleted'),
    moved: of('moved'),
    space_disabled: of('space_disabled'),
  }
}
