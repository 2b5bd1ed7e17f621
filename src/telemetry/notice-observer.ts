import type { Logger } from 'pino'
import { noticeKinds } from '../notices/notice.ts'
import type { NotifierObserver } from '../notices/notifier.ts'
import type { WorkerMetrics } from './worker-metrics.ts'

/** Creates an observer that counts notices and logs each notice. */
export function createNoticeObserver({
  metrics,
  log,
}: {
  metrics: Pick<WorkerMetrics, 'noticesSent' | 'noticesDropped' | 'noticeFailures'>
  log: Pick<Logger, 'info' | 'warn'>
}): NotifierObserver {
  for (const kind of noticeKinds) metrics.noticesSent.inc({ kind }, 0)
  for (const reason of ['coalesced', 'refused']) metrics.noticesDropped.inc({ reason }, 0)
  return {
    sent(notice) {
      metrics.noticesSent.inc({ kind: notice.kind })
      log.info({ notice }, 'a notice is sent')
    },
    paused({ kind, destinationId: destination, content }) {
      if (kind === 'paused')
        log.warn(
          { destination, ...content },
          content?.cause === 'gone'
            ? 'a destination is paused, since all its URLs are gone: sluice destinations resume ends the pause'
            : 'a destination is paused, since all its URLs have failed for too long: sluice destinations resume ends the pause',
        )
      else log.info({ destination, ...content }, 'a destination is not paused any more')
    },
    dropped(kind, reason, count) {
      metrics.noticesDropped.inc({ reason }, count)
      if (reason === 'refused')
        log.warn({ kind }, 'Kafka refuses a notice as too large: raise max.message.bytes of the topic events')
    },
    failed(error, isNew) {
      metrics.noticeFailures.inc()
      if (!isNew) return
      log.warn(
        { err: error },
        'no notices are made and no destination is paused, since the topic notices can not be used: if it does not exist, run sluice topics apply',
      )
    },
    recovered: () => log.info('notices are made again'),
  }
}
