import { logBoard } from './dashboard-log.ts'
import { age, max, of, quantiles, rate, sum, used, type Board, type Panel } from './dashboard-queries.ts'

/** The panels of all dashboards. `deploy/grafana/dashboards` is generated from this description. */

const groupLag: Panel = {
  title: 'Lag of the group',
  about:
    'Records that the group has not committed, as the brokers have it: also while no worker runs. Retry topics wait on purpose.',
  unit: 'short',
  queries: [max('sluice_group_lag_records', 'topic')],
}

const deadLetters: Panel = {
  title: 'Dead letters',
  about:
    'Records written to the dead letters, a second, by reason. Each has a header that says what to change.',
  unit: 'cps',
  queries: [rate('sluice_dead_letters_total', 'reason')],
}

export const boards: readonly Board[] = [
  {
    id: 'overview',
    title: 'overview',
    about: 'How many messages come in, go out and wait, and how fast they are delivered.',
    panels: [
      {
        title: 'Taken by the gateway',
        about: 'Messages that Kafka has acknowledged, a second.',
        unit: 'cps',
        queries: [rate('sluice_gateway_messages_total', 'type')],
      },
      {
        title: 'Taken from Kafka',
        about: 'Records taken by workers, a second, by topic.',
        unit: 'cps',
        queries: [rate('sluice_records_total', 'topic')],
      },
      {
        title: 'Deliveries that ended',
        about: 'By verdict. superseded and suppressed are as it should be.',
        unit: 'cps',
        queries: [rate('sluice_deliveries_total', 'verdict')],
      },
      {
        title: 'Append to first request',
        about: 'To endpoints that are well: this latency is ours. The objective is 30 s for 99.9 %.',
        unit: 's',
        queries: quantiles('sluice_append_to_first_attempt_seconds', 'way="direct"'),
      },
      {
        title: 'Append to delivery',
        about: "Of what is delivered, customers' outages included.",
        unit: 's',
        queries: quantiles('sluice_produce_to_delivery_seconds'),
      },
      {
        title: 'Requests that succeed',
        about: 'Share of all requests to endpoints. It falls with the endpoints of customers.',
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
          'That is not settled, by topic. Seconds are good; retry topics keep theirs for as long as their name says.',
        unit: 's',
        queries: [age('sluice_oldest_unsettled_timestamp_seconds', 'topic')],
      },
      deadLetters,
      {
        title: 'What stands still',
        about: '1 is bad: Kafka takes nothing, or what is named is down.',
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
        about: 'More than 0 is a bug: the log has each with its stack.',
        unit: 'cps',
        queries: [rate('sluice_faults_total', '')],
      },
      {
        title: 'What runs',
        about: 'Processes by role and version.',
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
    about: 'How endpoints answer, by destination if metrics.perDestination is on.',
    panels: [
      {
        title: 'Deliveries by destination',
        about: 'That came to an end, a second.',
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
        about: 'A second. answer: a response came, whatever it said.',
        unit: 'cps',
        queries: [rate('sluice_attempts_total', 'outcome')],
      },
      {
        title: 'Answers by status',
        about: 'none: there was no answer.',
        unit: 'cps',
        queries: [rate('sluice_attempts_total', 'status_class')],
      },
      {
        title: 'How long requests take',
        about: 'All outcomes together; one that times out takes delivery.timeout.',
        unit: 's',
        queries: quantiles('sluice_attempt_duration_seconds'),
      },
      {
        title: 'Requests that fail',
        about: 'By destination, those that fail most.',
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
        about: 'URLs most of whose requests fail, in the process with the most.',
        unit: 'short',
        queries: [
          max('sluice_open_breakers'),
          { ...sum('sluice_paced_hooks'), legend: 'paced, of all processes' },
        ],
      },
      {
        title: 'Longest open breaker',
        about: 'By destination and URL where metrics.perDestination is on.',
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
        about: 'Of messages that another URL of the destination took.',
        unit: 'cps',
        queries: [rate('sluice_hook_requests_omitted_total', 'reason')],
      },
      {
        title: 'Destinations by state',
        about: 'Of the catalog in force.',
        unit: 'short',
        queries: [max('sluice_catalog_destinations', 'state')],
      },
      {
        title: 'Versions of the catalog',
        about: 'One line is good: all processes have the same.',
        unit: 'short',
        queries: [{ legend: '{{version}}', expr: `count by (version) (${of('sluice_catalog_info')})` }],
      },
      {
        title: 'Lookups of names',
        about: 'A second, by outcome.',
        unit: 'cps',
        queries: [rate('sluice_dns_lookups_total', 'outcome')],
      },
      {
        title: 'Tunnels through the proxy',
        about: 'A second, by outcome; 0 without a proxy.',
        unit: 'cps',
        queries: [rate('sluice_proxy_connects_total', 'outcome')],
      },
    ],
  },
  {
    id: 'retries',
    title: 'retries and dead letters',
    about: 'Deliveries that wait on the ladder, why and how long, and dead letters.',
    panels: [
      {
        title: 'Parked, by reason',
        about: 'Deliveries put on a retry topic, a second.',
        unit: 'cps',
        queries: [rate('sluice_parked_total', 'reason')],
      },
      {
        title: 'Parked, by tier',
        about: 'The same by how long they wait.',
        unit: 'cps',
        queries: [rate('sluice_parked_total', 'tier')],
      },
      {
        title: 'Waiting',
        about: 'Records on the retry topics.',
        unit: 'short',
        queries: [sum('sluice_parked_records', 'tier')],
      },
      {
        title: 'Overdue',
        about: 'For how long the first record of a tier has been due. Seconds are good.',
        unit: 's',
        queries: [age('sluice_oldest_due_timestamp_seconds', 'tier')],
      },
      {
        title: 'Oldest by topic',
        about: 'How long ago the oldest record was put there that waits.',
        unit: 's',
        queries: [age('sluice_oldest_unsettled_timestamp_seconds', 'topic')],
      },
      {
        title: 'Share of the four hours used',
        about: 'When a delivery is parked. At 1 it is a dead letter.',
        unit: 'percentunit',
        max: 1,
        queries: quantiles('sluice_parked_retry_limit_used_ratio'),
      },
      deadLetters,
      {
        title: 'Not routed',
        about: 'Messages, or destinations of a message, that nothing was sent to.',
        unit: 'cps',
        queries: [rate('sluice_not_routed_total', 'reason')],
      },
      {
        title: 'Repeats dropped',
        about: 'Messages whose id came before from the same source.',
        unit: 'cps',
        queries: [rate('sluice_repeats_dropped_total', '')],
      },
    ],
  },
  {
    id: 'audiences',
    title: 'audiences',
    about: 'Changes, syncs, first syncs, and the state of units.',
    panels: [
      {
        title: 'Changes',
        about: 'Single changes of audiences and computed traits, a second, by what they came to.',
        unit: 'cps',
        queries: [rate('sluice_audience_changes_total', 'outcome')],
      },
      {
        title: 'Syncs',
        about: 'Of a unit: applied, or the reason for which they were refused.',
        unit: 'cps',
        queries: [rate('sluice_audience_syncs_total', 'outcome')],
      },
      {
        title: 'Users of syncs',
        about: 'By what it came to.',
        unit: 'cps',
        queries: [rate('sluice_audience_synced_users_total', 'outcome')],
      },
      {
        title: 'First syncs',
        about: 'Destinations that are being told who is in a space that they were connected to later.',
        unit: 'short',
        queries: [max('sluice_first_syncs', 'state')],
      },
      {
        title: 'First syncs: left and sent',
        about: 'Values still to be written to replays, and how many are, a second.',
        unit: 'short',
        queries: [
          { ...sum('sluice_first_sync_left'), legend: 'left' },
          { ...rate('sluice_first_sync_sent_total', ''), legend: 'sent a second' },
        ],
      },
      {
        title: 'Need a backfill',
        about: 'Destinations that have missed a value.',
        unit: 'short',
        queries: [max('sluice_destination_needs_backfill')],
      },
      {
        title: 'Units that restore',
        about: 'Retries, audiences and deletions of these wait.',
        unit: 'short',
        queries: [sum('sluice_units_restoring')],
      },
      {
        title: 'Records to restore',
        about: 'Offsets of memberships still to be read.',
        unit: 'short',
        queries: [sum('sluice_restore_remaining_records')],
      },
      {
        title: 'Last restore',
        about: 'How long it took.',
        unit: 's',
        queries: [max('sluice_restore_seconds')],
      },
    ],
  },
  {
    id: 'gateway',
    title: 'gateway',
    about: 'Requests of clients, the answers to them, and messages that wait for Kafka.',
    panels: [
      {
        title: 'Requests by call',
        about: 'Answered, a second.',
        unit: 'cps',
        queries: [rate('sluice_gateway_requests_total', 'call')],
      },
      {
        title: 'Requests by status',
        about: '503: Kafka takes nothing, or the buffer is full.',
        unit: 'cps',
        queries: [rate('sluice_gateway_requests_total', 'status')],
      },
      {
        title: 'How long answers take',
        about: 'From a request as a whole to its answer: until Kafka has acknowledged.',
        unit: 's',
        queries: quantiles('sluice_gateway_request_duration_seconds'),
      },
      {
        title: 'Messages by type',
        about: 'That Kafka has acknowledged, a second.',
        unit: 'cps',
        queries: [rate('sluice_gateway_messages_total', 'type')],
      },
      {
        title: 'Left out',
        about: 'Messages that were sent and are not in Kafka, by reason.',
        unit: 'cps',
        queries: [rate('sluice_gateway_left_out_total', 'reason')],
      },
      {
        title: 'Writes that Kafka did not take',
        about: 'They are made again for as long as somebody waits.',
        unit: 'cps',
        queries: [rate('sluice_gateway_produce_failures_total', '')],
      },
      {
        title: 'Buffers',
        about: 'Share of gateway.bufferBytes, in the process that has least left.',
        unit: 'percentunit',
        max: 1,
        queries: [
          used('sluice_gateway_buffered_bytes', 'sluice_gateway_buffered_bytes_limit', 'not acknowledged'),
          used('sluice_gateway_receiving_bytes', 'sluice_gateway_buffered_bytes_limit', 'not complete'),
        ],
      },
      {
        title: 'Open requests',
        about: 'That are not answered yet, and messages that wait for Kafka.',
        unit: 'short',
        queries: [
          { ...sum('sluice_gateway_open_requests'), legend: 'requests' },
          { ...sum('sluice_gateway_buffered_messages'), legend: 'messages' },
        ],
      },
      {
        title: 'Refused partitions',
        about: 'That Kafka takes no records for, by topic.',
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
        about: '1 is good: all of that role are ready. 0: /readyz of one of them gives the reasons.',
        unit: 'short',
        queries: [{ legend: '{{role}}', expr: `min by (role) (${of('sluice_ready')})` }],
      },
      groupLag,
      {
        title: 'Lag by partition',
        about: 'The most. One that stands out stands still.',
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
        about: 'By the oldest record. At 1 the broker may delete it undelivered.',
        unit: 'percentunit',
        queries: [max('sluice_retention_used_ratio', 'topic')],
      },
      {
        title: 'Age of the last commit',
        about: 'In the worker that has waited for longest.',
        unit: 's',
        queries: [max('sluice_commit_age_seconds')],
      },
      {
        title: 'Failed commits and writes',
        about: 'They are made again. Some commits fail with each rebalance.',
        unit: 'cps',
        queries: [
          { ...rate('sluice_commit_failures_total', ''), legend: 'commits' },
          { ...rate('sluice_produce_failures_total', ''), legend: 'writes of workers' },
          { ...rate('sluice_gateway_produce_failures_total', ''), legend: 'writes of gateways' },
        ],
      },
      {
        title: 'Rebalances',
        about: 'How often a worker has joined the group anew, a second.',
        unit: 'cps',
        queries: [rate('sluice_rebalances_total', '')],
      },
      {
        title: 'Partitions in trouble',
        about: 'That can not be read, or not be written by workers, by topic. The log says which and why.',
        unit: 'short',
        queries: [
          sum('sluice_partitions_in_trouble', 'topic'),
          { ...sum('sluice_produce_partitions_failing', 'topic'), legend: '{{topic}} (writes)' },
        ],
      },
      {
        title: 'Lost records and other logs',
        about:
          'Records that Kafka deleted before they were delivered, and logs that are shorter than was read or made anew.',
        unit: 'cps',
        queries: [
          { ...rate('sluice_records_lost_total', ''), legend: 'records' },
          { ...rate('sluice_truncations_total', ''), legend: 'logs' },
        ],
      },
      {
        title: 'Limits used',
        about: 'In the process that is nearest to each.',
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
        about: 'In lanes, and for failing URLs.',
        unit: 'short',
        queries: [
          { ...sum('sluice_deliveries_queued'), legend: 'all' },
          { ...sum('sluice_paced_requests_queued'), legend: 'for failing URLs' },
        ],
      },
      {
        title: 'CPU',
        about: 'Cores, by process or pod.',
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
        about: 'Resident, by process or pod.',
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
        about: 'How late timers are, p99. Over 0.1 s a process has more than it can do.',
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
        about: 'Share of what the system allows.',
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
        about: 'How far back repeats are known; less than repeats.window where repeats.messages is too low.',
        unit: 's',
        queries: [{ legend: 'least', expr: `min(${of('sluice_repeats_reach_seconds')})` }],
      },
    ],
  },
]
