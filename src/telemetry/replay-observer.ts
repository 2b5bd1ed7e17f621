import type { Logger } from 'pino'
import type { RunnerObserver } from '../replay/runner.ts'
import { describeSelection } from '../replay/selection.ts'
import type { WorkerMetrics } from './worker-metrics.ts'

/**
 * Creates an observer that counts the records that replays write, and logs the beginning and end of each
 * replay.
 */
export function createReplayObserver({
  metrics,
  log,
}: {
  metrics: Pick<WorkerMetrics, 'replaySent' | 'replayFailures'>
  log: Pick<Logger, 'info' | 'warn'>
}): RunnerObserver {
  const written = metrics.replaySent.series({})
  return {
    begun({ order, progress }) {
      log.info(
        {
          replay: order.id,
          of: describeSelection(order.selection),
          by: order.by,
          perSecond: order.perSecond,
          sentBefore: progress?.done.records ?? 0,
        },
        progress === undefined ? 'a replay begins' : 'a replay goes on',
      )
    },
    sent: (_id, count) => written.add(count),
    ended({ order }, how, { records, leftOut }) {
      const line = { replay: order.id, sent: records, leftOut }
      if (how === 'over') log.info(line, 'the replay is done')
      else
        log.info(
          line,
          'this worker no longer runs the replay: it was stopped, or another worker continues it; see `sluice replay show`',
        )
    },
    failed(id, error) {
      metrics.replayFailures.inc()
      log.warn(
        { err: error, ...(id !== undefined && { replay: id }) },
        'replays wait, since Kafka does not answer: trying again',
      )
    },
  }
}
