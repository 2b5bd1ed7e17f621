import { type Board, increase, of, rate, sum } from './dashboard-queries.ts'

export const logBoard: Board = {
  id: 'log',
  title: 'delivery log, replays and admin API',
  about: 'The delivery log and its index, replays, notices, spans, and calls of the admin API.',
  panels: [
    {
      title: 'Written to the delivery log',
      about: 'Records written to the delivery log per second.',
      unit: 'cps',
      queries: [rate('sluice_log_records_total', '')],
    },
    {
      title: 'Missing in the delivery log',
      about:
        'Records that were dropped and are missing in the delivery log, by reason. 0 is good. Deliveries are not affected.',
      unit: 'short',
      runbook: 'delivery-log',
      queries: [increase('sluice_log_records_dropped_total', 'reason')],
    },
    {
      title: 'Index: how far it is behind',
      about:
        'Age of the last record that the index has read, while it has not read all records. A few seconds are good.',
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
      about:
        'indexed: records per second in the index. passed over: records per second that the index has skipped, because it can not read them.',
      unit: 'cps',
      queries: [
        { ...rate('sluice_log_indexed_total', ''), legend: 'indexed' },
        { ...rate('sluice_log_unreadable_total', ''), legend: 'passed over' },
      ],
    },
    {
      title: 'Replays',
      about: 'Replays that run now.',
      unit: 'short',
      queries: [sum('sluice_replays')],
    },
    {
      title: 'Sent again',
      about:
        'sent: records that replays write per second. failures: steps of replays per second that failed and are tried again.',
      unit: 'cps',
      queries: [
        { ...rate('sluice_replay_sent_total', ''), legend: 'sent' },
        { ...rate('sluice_replay_failures_total', ''), legend: 'failures' },
      ],
    },
    {
      title: 'Admin API',
      about:
        'Answered requests per second, by status. Many 401 mean that somebody guesses tokens or uses an old one.',
      unit: 'cps',
      queries: [rate('sluice_admin_requests_total', 'status')],
    },
    {
      title: 'Console',
      about:
        'sessions: browsers that are signed in. live views: pages that follow what happens. refused: sign-ins that were refused; many mean that somebody guesses.',
      unit: 'short',
      kind: 'stat',
      queries: [
        { legend: 'sessions', expr: `max(${of('sluice_admin_sessions')})` },
        { legend: 'live views', expr: `sum(${of('sluice_admin_live_views')})` },
        {
          legend: 'refused',
          expr: `sum(increase(${of('sluice_admin_sign_ins_total', 'result!="accepted"')}[$__rate_interval])) or vector(0)`,
        },
      ],
    },
    {
      title: 'Notices',
      about:
        'Notices to customers about their destinations: sent, and not sent. failures: how often the topic notices could not be read or written.',
      unit: 'short',
      runbook: 'notices',
      queries: [
        {
          legend: 'sent',
          expr: `sum(increase(${of('sluice_notices_sent_total')}[$__rate_interval])) or vector(0)`,
        },
        {
          legend: 'not sent',
          expr: `sum(increase(${of('sluice_notices_dropped_total')}[$__rate_interval])) or vector(0)`,
        },
        { ...increase('sluice_notice_failures_total', ''), legend: 'failures' },
      ],
    },
    {
      title: 'Spans',
      about:
        'Recorded spans per second, by fate. Spans that failed or were dropped are missing in traces. Empty if tracing is off.',
      unit: 'cps',
      queries: [rate('sluice_trace_spans_total', 'fate')],
    },
  ],
}
