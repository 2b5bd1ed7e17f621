import { audiencesBoard } from './dashboard-audiences.ts'
import { logBoard } from './dashboard-log.ts'
import {
  age,
  increase,
  max,
  of,
  quantiles,
  rate,
  sum,
  used,
  type Board,
  type Panel,
} from './dashboard-queries.ts'
import { destinationBoard, overviewStats } from './dashboard-stats.ts'

/** The panels of all dashboards. `deploy/grafana/dashboards` is generated from this description. */

/** Matches the topics whose records should be taken at once. Those of the others wait on purpose. */
const waitsForWork = 'topic!~"retry.*|waiting.*"'

const groupLag: Panel = {
  title: 'Lag of the group',
  about:
    'Records that the group has not committed, according to the brokers. The series exist even while no worker runs. Retry topics and queues of destinations are left out, because their records wait on purpose.',
  unit: 'short',
  runbook: 'lag',
  queries: [max('sluice_group_lag_records', 'topic', waitsForWork)],
}

const deadLetters: Panel = {
  title: 'Dead letters',
  about: 'Dead letters that were written, by reason. A header of each says what to change.',
  unit: 'short',
  runbook: 'dead-letters',
  queries: [increase('sluice_dead_letters_total', 'reason')],
}

const queued = `sum(rate(${of('sluice_parked_total', 'tier="waiting"')}[$__rate_interval]))`

export const boards: readonly Board[] = [
  {
    id: 'overview',
    title: 'overview',
    about: 'How many messages come in, go out and wait, and how fast they are delivered.',
    panels: [
      ...overviewStats,
      {
        title: 'Taken by the gateway',
        about: 'Messages per second that Kafka has acknowledged, by type.',
        unit: 'cps',
        queries: [rate('sluice_gateway_messages_total', 'type')],
      },
      {
        title: 'Taken from Kafka',
        about: 'Records per second that workers have taken from Kafka, by topic.',
        unit: 'cps',
        queries: [rate('sluice_records_total', 'topic')],
      },
      {
        title: 'Deliveries that ended',
        about: 'Deliveries that ended per second, by verdict. superseded and suppressed are not failures.',
        unit: 'cps',
        queries: [rate('sluice_deliveries_total', 'verdict')],
      },
      {
        title: 'Append to first request',
        about: 'Latency at healthy endpoints. Sluice itself causes it. The objective is 30 s for 99.9 %.',
        unit: 's',
        queries: quantiles('sluice_append_to_first_attempt_seconds', 'way="direct"'),
      },
      {
        title: 'Append to delivery',
        about: "Latency of successful deliveries. It includes the outages of customers' endpoints.",
        unit: 's',
        queries: quantiles('sluice_produce_to_delivery_seconds'),
      },
      {
        title: 'Requests that succeed',
        about: "Successful share of all requests. It falls when customers' endpoints fail.",
        unit: 'percentunit',
        max: 1,
        queries: [
          {
            legend: 'delivered',
            expr: `sum(rate(${of('sluice_attempts_total', 'verdict="delivered"')}[$__rate_interval])) / sum(rate(${of('sluice_attempts_total')}[$__rate_interval]))`,
          },
        ],
      },
      groupLag,
      {
        title: 'Age of the oldest record',
        about:
          'Age of the oldest record that is not settled, by topic. A few seconds are good. Retry topics and queues of destinations are left out, because their records wait on purpose.',
        unit: 's',
        runbook: 'oldest-unsettled',
        queries: [age('sluice_oldest_unsettled_timestamp_seconds', 'topic', waitsForWork)],
      },
      deadLetters,
      {
        title: 'What stands still',
        runbook: 'kafka-refuses-writes',
        about: '1 is bad: Kafka accepts no writes, or the named part is down.',
        unit: 'short',
        queries: [
          { ...max('sluice_produce_stalled'), legend: 'workers can not write' },
          { ...max('sluice_gateway_kafka_unavailable'), legend: 'gateways can not write' },
          { ...max('sluice_proxy_down'), legend: 'proxy' },
          { ...max('sluice_egress_suspect'), legend: 'network of workers' },
          { ...max('sluice_schema_registry_down'), legend: 'schema registry' },
        ],
      },
      {
        title: 'Faults of Sluice',
        about: 'Faults of Sluice itself. Each fault is a bug, and the log has its stack.',
        unit: 'short',
        runbook: 'faults',
        queries: [increase('sluice_faults_total', '')],
      },
      {
        title: 'What runs',
        about: 'Instances by role, version and commit. A worker with several processes counts once.',
        unit: 'short',
        queries: [
          {
            legend: '{{role}} {{version}} {{commit}}',
            expr: `sum by (role, version, commit) (${of('sluice_build_info')})`,
          },
        ],
      },
    ],
  },
  {
    id: 'destinations',
    title: 'destinations',
    about: 'Answers of endpoints, by destination if metrics.perDestination is on.',
    panels: [
      {
        title: 'Deliveries by destination',
        about: 'Deliveries that ended per second, by destination and verdict: the 20 highest.',
        unit: 'cps',
        queries: [
          {
            legend: '{{destination}} {{verdict}}',
            expr: `topk(20, sum by (destination, verdict) (rate(${of('sluice_deliveries_total')}[$__rate_interval])))`,
          },
        ],
      },
      {
        title: 'Requests by outcome',
        about: 'Requests per second, by outcome. answer: a response arrived, whatever its status was.',
        unit: 'cps',
        queries: [rate('sluice_attempts_total', 'outcome')],
      },
      {
        title: 'Answers by status',
        about: 'Requests per second, by the status class of the response. none: no response arrived.',
        unit: 'cps',
        queries: [rate('sluice_attempts_total', 'status_class')],
      },
      {
        title: 'How long requests take',
        about: 'Duration of requests of all outcomes. A request that times out takes delivery.timeout.',
        unit: 's',
        queries: quantiles('sluice_attempt_duration_seconds'),
      },
      {
        title: 'Requests that fail',
        about: 'Requests without success per second, by destination and verdict: the 20 highest.',
        unit: 'cps',
        queries: [
          {
            legend: '{{destination}} {{verdict}}',
            expr: `topk(20, sum by (destination, verdict) (rate(${of('sluice_attempts_total', 'verdict!="delivered"')}[$__rate_interval])))`,
          },
        ],
      },
      {
        title: 'Open breakers',
        about:
          'URLs with an open breaker, because most of their requests fail: the highest count of one process. paced, of all processes: URLs whose requests Sluice slows down now.',
        unit: 'short',
        queries: [
          max('sluice_open_breakers'),
          { ...sum('sluice_paced_hooks'), legend: 'paced, of all processes' },
        ],
      },
      {
        title: 'Longest open breaker',
        runbook: 'endpoint-failing',
        about: 'Age of the longest-open breaker, by destination and URL if metrics.perDestination is on.',
        unit: 's',
        queries: [
          {
            legend: '{{destination}} {{hook}}',
            expr: `topk(20, max by (destination, hook) (${of('sluice_breaker_open_seconds')}))`,
          },
        ],
      },
      {
        title: 'Requests that a URL never got',
        about: 'Dropped requests per second, by reason. Another URL has accepted the message of each.',
        unit: 'cps',
        queries: [rate('sluice_hook_requests_omitted_total', 'reason')],
      },
      {
        title: 'Destinations by state',
        about: 'Destinations of the catalog in force, by state.',
        unit: 'short',
        queries: [max('sluice_catalog_destinations', 'state')],
      },
      {
        title: 'Versions of the catalog',
        runbook: 'catalog',
        about: 'Instances by the version of their catalog. One line is good: all have the same version.',
        unit: 'short',
        queries: [{ legend: '{{version}}', expr: `count by (version) (${of('sluice_catalog_info')})` }],
      },
      {
        title: 'Lookups of names',
        about: 'DNS lookups per second, by outcome.',
        unit: 'cps',
        queries: [rate('sluice_dns_lookups_total', 'outcome')],
      },
      {
        title: 'Tunnels through the proxy',
        about: 'Tunnels requested from the proxy per second, by outcome. 0 without a proxy.',
        unit: 'cps',
        queries: [rate('sluice_proxy_connects_total', 'outcome')],
      },
    ],
  },
  destinationBoard,
  {
    id: 'retries',
    title: 'retries and dead letters',
    about: 'Deliveries that wait on the ladder or for their turn, by reason and by wait, and dead letters.',
    panels: [
      {
        title: 'Parked, by reason',
        about:
          'Deliveries written per second to a retry topic or to the queue of their destination, by reason.',
        unit: 'cps',
        queries: [rate('sluice_parked_total', 'reason')],
      },
      {
        title: 'Parked, by tier',
        about:
          'Deliveries written to a retry topic per second, by tier. The tier says how long they wait. waiting is the queue of their destination.',
        unit: 'cps',
        queries: [rate('sluice_parked_total', 'tier')],
      },
      {
        title: 'Waiting for a retry',
        about: 'Records that wait on the retry topics, by tier.',
        unit: 'short',
        queries: [sum('sluice_parked_records', 'tier')],
      },
      {
        title: 'Overdue',
        runbook: 'retries-overdue',
        about: 'How long the first record of a tier has been due. A few seconds are good.',
        unit: 's',
        queries: [age('sluice_oldest_due_timestamp_seconds', 'tier')],
      },
      {
        title: 'Oldest by topic',
        about: 'Age of the oldest record that is not settled, by topic.',
        unit: 's',
        queries: [age('sluice_oldest_unsettled_timestamp_seconds', 'topic')],
      },
      {
        title: 'Waiting for their turn',
        runbook: 'waiting',
        about:
          'Deliveries in the queues of their destinations, by state. Those of a destination that is on go as fast as it takes them; those of a paused one wait until it is on.',
        unit: 'short',
        queries: [sum('sluice_waiting_messages', 'state')],
      },
      {
        title: 'Oldest that waits for its turn',
        about:
          'How long the oldest delivery has been in a queue. After nine tenths of the retention of the topic waiting (27 days) it becomes a dead letter. Paused destinations are included.',
        unit: 's',
        queries: [{ ...age('sluice_waiting_oldest_timestamp_seconds', ''), legend: 'oldest' }],
      },
      {
        title: 'Queues: in and out',
        about:
          'Deliveries per second that join the queues of their destinations, and that leave them. If more join than leave for hours, a destination gets more than it takes.',
        unit: 'cps',
        queries: [
          { legend: 'join', expr: queued },
          {
            legend: 'leave',
            expr: `clamp_min(${queued} - sum(deriv(${of('sluice_waiting_messages')}[$__rate_interval])), 0)`,
          },
        ],
      },
      {
        title: 'Share of the four hours used',
        about: 'Used share of retry.limit (4 h) when a delivery is parked. At 1, it becomes a dead letter.',
        unit: 'percentunit',
        max: 1,
        queries: quantiles('sluice_parked_retry_limit_used_ratio'),
      },
      deadLetters,
      {
        title: 'Not routed',
        about: 'Messages, or single destinations of a message, without a delivery: a second, by reason.',
        unit: 'cps',
        queries: [rate('sluice_not_routed_total', 'reason')],
      },
      {
        title: 'Repeats dropped',
        about: 'Messages dropped per second, because their source had sent the same messageId before.',
        unit: 'cps',
        queries: [rate('sluice_repeats_dropped_total', '')],
      },
      {
        title: 'Conditions and mappings',
        about:
          'Seconds per second that the conditions and mappings of destinations take, and how often a second a destination begins to wait because they took longer than they may.',
        unit: 'short',
        queries: [
          { ...rate('sluice_rule_seconds_total', ''), legend: 'time' },
          { ...rate('sluice_rule_waits_total', ''), legend: 'waits' },
        ],
      },
      {
        title: 'Requests for tokens',
        about: 'Requests per second to the token endpoints of destinations. Without a token, messages wait.',
        unit: 'cps',
        queries: [rate('sluice_token_requests_total', 'outcome')],
      },
      {
        title: 'Messages in a batch',
        about: 'Messages of each request to destinations with batch.',
        unit: 'short',
        queries: quantiles('sluice_batch_messages'),
      },
    ],
  },
  audiencesBoard,
  {
    id: 'gateway',
    title: 'gateway',
    about: 'Requests of clients, the answers to them, and messages that wait for Kafka.',
    panels: [
      {
        title: 'Requests by call',
        about: 'Answered requests per second, by call.',
        unit: 'cps',
        queries: [rate('sluice_gateway_requests_total', 'call')],
      },
      {
        title: 'Requests by status',
        about: 'Answered requests per second, by status. 503: Kafka accepts nothing, or buffers are full.',
        unit: 'cps',
        queries: [rate('sluice_gateway_requests_total', 'status')],
      },
      {
        title: 'How long answers take',
        about: "Time from the end of a request to its answer, which waits for Kafka's acknowledgement.",
        unit: 's',
        queries: quantiles('sluice_gateway_request_duration_seconds'),
      },
      {
        title: 'Messages by type',
        about: 'Messages per second that Kafka has acknowledged, by type.',
        unit: 'cps',
        queries: [rate('sluice_gateway_messages_total', 'type')],
      },
      {
        title: 'Left out',
        about: 'Messages per second that are not in Kafka although their request was answered, by reason.',
        unit: 'cps',
        queries: [rate('sluice_gateway_left_out_total', 'reason')],
      },
      {
        title: 'Writes that Kafka did not take',
        about: 'Failed writes. The gateway repeats a write while a client waits for the answer.',
        unit: 'short',
        runbook: 'kafka-refuses-writes',
        queries: [increase('sluice_gateway_produce_failures_total', '')],
      },
      {
        title: 'Buffers',
        about: 'Used share of gateway.bufferBytes, in the gateway that has the least left.',
        unit: 'percentunit',
        max: 1,
        queries: [
          used('sluice_gateway_buffered_bytes', 'sluice_gateway_buffered_bytes_limit', 'not acknowledged'),
          used('sluice_gateway_receiving_bytes', 'sluice_gateway_buffered_bytes_limit', 'not complete'),
        ],
      },
      {
        title: 'Open requests',
        about: 'Requests that are not answered yet, and messages that Kafka has not acknowledged yet.',
        unit: 'short',
        queries: [
          { ...sum('sluice_gateway_open_requests'), legend: 'requests' },
          { ...sum('sluice_gateway_buffered_messages'), legend: 'messages' },
        ],
      },
      {
        title: 'Refused partitions',
        runbook: 'kafka-refuses-writes',
        about: 'Partitions for which Kafka accepts no records, by topic.',
        unit: 'short',
        queries: [max('sluice_gateway_refused_partitions', 'topic')],
      },
    ],
  },
  logBoard,
  {
    id: 'processes',
    title: 'Kafka and processes',
    about: 'The group, commits, buffers and their limits, and CPU and memory of processes.',
    panels: [
      {
        title: 'Ready',
        runbook: 'not-ready',
        about: '1: all instances of the role are ready. 0: /readyz of at least one gives the reasons.',
        unit: 'short',
        queries: [{ legend: '{{role}}', expr: `min by (role) (${of('sluice_ready')})` }],
      },
      groupLag,
      {
        title: 'Lag by partition',
        about: 'Unsettled records: the 10 highest. A partition that stands out stands still.',
        unit: 'short',
        queries: [
          {
            legend: '{{topic}} {{partition}}',
            expr: `topk(10, max by (topic, partition) (${of('sluice_consumer_lag_records')}))`,
          },
        ],
      },
      {
        title: 'Retention used',
        runbook: 'retention',
        about: 'Age of the oldest unsettled record as a share of retention. At 1, it may be deleted.',
        unit: 'percentunit',
        queries: [max('sluice_retention_used_ratio', 'topic')],
      },
      {
        title: 'Age of the last commit',
        runbook: 'commits',
        about: 'Time since everything settled was known to be committed: the longest of all workers.',
        unit: 's',
        queries: [max('sluice_commit_age_seconds')],
      },
      {
        title: 'Failed commits and writes',
        about: 'Failures. Sluice repeats what failed. A few commits fail at each rebalance.',
        unit: 'short',
        runbook: 'kafka-refuses-writes',
        queries: [
          { ...increase('sluice_commit_failures_total', ''), legend: 'commits' },
          { ...increase('sluice_produce_failures_total', ''), legend: 'writes of workers' },
          { ...increase('sluice_gateway_produce_failures_total', ''), legend: 'writes of gateways' },
        ],
      },
      {
        title: 'Waits for quotas of Kafka',
        about:
          'Seconds per second for which brokers read nothing from a connection, because a quota is used up. Sluice waits and loses nothing.',
        unit: 's',
        queries: [rate('sluice_kafka_throttled_seconds_total', 'request')],
      },
      {
        title: 'Rebalances',
        about: 'Joins of the group, without the first join of each member.',
        unit: 'short',
        runbook: 'rebalances',
        queries: [increase('sluice_rebalances_total', '')],
      },
      {
        title: 'Partitions in trouble',
        runbook: 'partitions-in-trouble',
        about: 'Partitions that workers can not read, or can not write to. The log says which and why.',
        unit: 'short',
        queries: [
          sum('sluice_partitions_in_trouble', 'topic'),
          { ...sum('sluice_produce_partitions_failing', 'topic'), legend: '{{topic}} (writes)' },
        ],
      },
      {
        title: 'Lost records and other logs',
        about:
          'records: records that Kafka deleted before they were settled. logs: partitions whose log was replaced by another one, or ended before the last record that was read.',
        unit: 'short',
        runbook: 'lost-records',
        queries: [
          { ...increase('sluice_records_lost_total', ''), legend: 'records' },
          { ...increase('sluice_truncations_total', ''), legend: 'logs' },
        ],
      },
      {
        title: 'Limits used',
        about: 'Used share of each limit, in the worker that is nearest to the limit.',
        unit: 'percentunit',
        queries: [
          used('sluice_held_records', 'sluice_held_records_limit', 'records'),
          used('sluice_held_bytes', 'sluice_held_bytes_limit', 'bytes'),
          used('sluice_deliveries_in_flight', 'sluice_deliveries_in_flight_limit', 'requests'),
          used(
            'sluice_paced_requests_in_flight',
            'sluice_paced_requests_in_flight_limit',
            'requests to failing URLs',
          ),
        ],
      },
      {
        title: 'Queued deliveries',
        about: 'Deliveries in lanes (all), and requests that wait for their turn at failing URLs.',
        unit: 'short',
        queries: [
          { ...sum('sluice_deliveries_queued'), legend: 'all' },
          { ...sum('sluice_paced_requests_queued'), legend: 'for failing URLs' },
        ],
      },
      {
        title: 'CPU',
        about: 'Cores in use, by process or pod.',
        unit: 'short',
        queries: [
          {
            legend: '{{instance}}',
            expr: `sum by (instance) (rate(${of('process_cpu_seconds_total')}[$__rate_interval]) and on (instance) ${of('sluice_build_info')})`,
          },
        ],
      },
      {
        title: 'Memory',
        about: 'Resident memory, by process or pod.',
        unit: 'bytes',
        queries: [
          {
            legend: '{{instance}}',
            expr: `sum by (instance) (${of('process_resident_memory_bytes')} and on (instance) ${of('sluice_build_info')})`,
          },
        ],
      },
      {
        title: 'Event loop',
        about: 'How late timers are, p99. Above 0.1 s, a process has more work than it can do.',
        unit: 's',
        queries: [
          {
            legend: '{{instance}}',
            expr: `max by (instance) (${of('nodejs_eventloop_lag_p99_seconds')} and on (instance) ${of('sluice_build_info')})`,
          },
        ],
      },
      {
        title: 'Open files',
        runbook: 'open-files',
        about: 'Open files as a share of the files that the system allows.',
        unit: 'percentunit',
        queries: [
          {
            legend: '{{instance}}',
            expr: `max by (instance) (${of('process_open_fds')} / ${of('process_max_fds')} and on (instance) ${of('sluice_build_info')})`,
          },
        ],
      },
      {
        title: 'Memory of repeats',
        about: 'How far back repeats are recognized. Below repeats.window, raise repeats.messages.',
        unit: 's',
        queries: [{ legend: 'least', expr: `min(${of('sluice_repeats_reach_seconds')})` }],
      },
    ],
  },
]
