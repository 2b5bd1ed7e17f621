import { type Board, of, rate, sum } from './dashboard-queries.ts'

export const logBoard: Board = {
  id: 'log',
  title: 'delivery log, replays and admin API',
  about: 'The delivery log and its index, replays, notices, spans, and calls of the admin API.',
  panels: [
    {
      title: 'Written to the delivery log',
      about: 'Records, a second.',
      unit: 'cps',
      queries: [rate('sluice_log_records_total', '')],
    },
    {
      title: 'Missing in the delivery log',
      about: 'Records that were dropped, a second, by reason. 0 is good; deliveries are not affected.',
      unit: 'cps',
      queries: [rate('sluice_log_records_dropped_total', 'reason')],
    },
    {
      title: 'Index: how far it is behind',
      about: 'Age of what the index has read last, while there is more. Seconds are good.',
      unit: 's',
      queries: [
        {
          legend: '{{instance}}',
          expr: `clamp_min(max by (instance) (${of('sluice_log_index_behind_seconds')}), 0)`,
        },
      ],
    },
    {
      title: 'Index: records',
      about: 'Indexed, and passed over since they can not be read, a second.',
      unit: 'cps',
      queries: [
        { ...rate('sluice_log_indexed_total', ''), legend: 'indexed' },
        { ...rate('sluice_log_unreadable_total', ''), legend: 'passed over' },
      ],
    },
    {
      title: 'Replays',
      about: 'That run now.',
      unit: 'short',
      queries: [sum('sluice_replays')],
    },
    {
      title: 'Sent again',
      about: 'Records that replays write, a second, and how often one fails and is tried again.',
      unit: 'cps',
      queries: [
        { ...rate('sluice_replay_sent_total', ''), legend: 'sent' },
        { ...rate('sluice_replay_failures_total', ''), legend: 'failures' },
      ],
    },
    {
      title: 'Admin API',
      about:
        'Answered requests, a second, by status. Many 401 mean that somebody guesses tokens or uses an old one.',
      unit: 'cps',
      queries: [rate('sluice_admin_requests_total', 'status')],
    },
    {
      title: 'Notices',
      about: 'To customers, about their destinations: sent, not sent, and failures of their topic, a second.',
      unit: 'cps',
      queries: [
        {
          legend: 'sent',
          expr: `sum(rate(${of('sluice_notices_sent_total')}[$__rate_interval])) or vector(0)`,
        },
        {
          legend: 'not sent',
          expr: `sum(rate(${of('sluice_notices_dropped_total')}[$__rate_interval])) or vector(0)`,
        },
        { ...rate('sluice_notice_failures_total', ''), legend: 'failures' },
      ],
    },
    {
      title: 'Spans',
      about:
        'A second, by fate: failed and dropped ones are missing in traces. Nothing where tracing is off.',
      unit: 'cps',
      queries: [rate('sluice_trace_spans_total', 'fate')],
    },
  ],
}
