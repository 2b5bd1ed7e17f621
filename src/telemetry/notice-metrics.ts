import { Counter, type Registry } from 'prom-client'

/** Creates the metrics of notices. */
export function noticeMetrics(registers: Registry[]) {
  return {
    noticesSent: new Counter({
      name: 'sluice_notices_sent_total',
      help: 'Notices about destinations that were written to events, by kind: failing, recovered, paced, dead_letters, needs_backfill, secret_ending, auto_paused or resumed.',
      labelNames: ['kind'],
      registers,
    }),
    noticesDropped: new Counter({
      name: 'sluice_notices_dropped_total',
      help: 'Notices that were not sent, by reason: coalesced (a URL fails again within notices.window; the next notice counts it) or refused (Kafka does not take it).',
      labelNames: ['reason'],
      registers,
    }),
    noticeFailures: new Counter({
      name: 'sluice_notice_failures_total',
      help: 'Times that the topic notices could not be read or written, so that no notices were made. The worker tries again, and the log says why.',
      registers,
    }),
  }
}
