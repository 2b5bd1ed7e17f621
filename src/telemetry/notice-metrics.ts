import { Counter, Gauge, type Registry } from 'prom-client'

export function noticeMetrics(registers: Registry[], perDestination: boolean) {
  return {
    noticesSent: new Counter({
      name: 'sluice_notices_sent_total',
      help: 'Notices about destinations that were written to events, by kind: failing, recovered, refusing, paced, dead_letters, needs_backfill, secret_ending, auto_paused or resumed.',
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
    goneHooks: new Gauge({
      name: 'sluice_gone_urls',
      help: 'URLs that have answered 410 (Gone), and get no requests until they are edited or their destination is resumed.',
      aggregator: 'max',
      registers,
    }),
    refusing: new Gauge({
      name: 'sluice_refusing_seconds',
      help: 'For how long a URL has refused every message of this process with answers such as 401 or 404, after which a message has failed for good, for the URL that has done so for the longest time. It is 0 while there is none.',
      labelNames: perDestination ? ['destination', 'hook'] : [],
      aggregator: 'max',
      registers,
    }),
  }
}
