import { Counter, type Registry } from 'prom-client'

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
      help: 'Notices that were not sent, by reason: coalesced (a URL fails again within notices.window; the next notice counts this failure) or refused (Kafka does not accept the notice).',
      labelNames: ['reason'],
      registers,
    }),
    noticeFailures: new Counter({
      name: 'sluice_notice_failures_total',
      help: 'How often a worker could not read or write the topic notices. It then makes no notices, and tries again. The log gives the reason.',
      registers,
    }),
  }
}
