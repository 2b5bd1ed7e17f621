import { of, sum, type Board, type Panel } from './dashboard-queries.ts'

/** The numbers at the top of the overview, and the table of failing destinations below them. */
export const overviewStats: readonly Panel[] = [
  {
    kind: 'stat',
    title: 'Workers ready',
    about: 'Instances of workers that are ready. 0: nothing is delivered.',
    unit: 'short',
    runbook: 'no-worker',
    thresholds: [
      { color: 'red', from: 0 },
      { color: 'green', from: 1 },
    ],
    queries: [{ legend: 'ready', expr: `sum(${of('sluice_ready', 'role=~"worker|up"')}) or vector(0)` }],
  },
  {
    kind: 'stat',
    title: 'Success now',
    about: "Successful share of the requests of the last minutes. It falls when customers' endpoints fail.",
    unit: 'percentunit',
    runbook: 'endpoint-failing',
    thresholds: [
      { color: 'red', from: 0 },
      { color: 'orange', from: 0.9 },
      { color: 'green', from: 0.99 },
    ],
    queries: [
      {
        legend: 'delivered',
        expr: `sum(rate(${of('sluice_attempts_total', 'verdict="delivered"')}[$__rate_interval])) / sum(rate(${of('sluice_attempts_total')}[$__rate_interval]))`,
      },
    ],
  },
  {
    kind: 'stat',
    title: 'First request, p99',
    about: 'Latency at healthy endpoints, from the append to Kafka. The objective is 30 s for 99.9 %.',
    unit: 's',
    runbook: 'delivery-slo',
    thresholds: [
      { color: 'green', from: 0 },
      { color: 'orange', from: 5 },
      { color: 'red', from: 30 },
    ],
    queries: [
      {
        legend: 'p99',
        expr: `histogram_quantile(0.99, sum by (le) (rate(${of('sluice_append_to_first_attempt_seconds_bucket', 'way="direct"')}[$__rate_interval])))`,
      },
    ],
  },
  {
    kind: 'stat',
    title: 'Oldest event',
    about: 'Age of the oldest record of events that is not settled.',
    unit: 's',
    runbook: 'oldest-unsettled',
    thresholds: [
      { color: 'green', from: 0 },
      { color: 'orange', from: 60 },
      { color: 'red', from: 600 },
    ],
    queries: [
      {
        legend: 'oldest',
        expr: `clamp_min(time() - min(${of('sluice_oldest_unsettled_timestamp_seconds', 'topic="events"')}), 0) or vector(0)`,
      },
    ],
  },
  {
    kind: 'stat',
    title: 'Failing destinations',
    about:
      'Destinations with a URL that fails. Each worker tells the ten that fail longest, so 10 may be more.',
    unit: 'short',
    runbook: 'endpoint-failing',
    thresholds: [
      { color: 'green', from: 0 },
      { color: 'orange', from: 1 },
      { color: 'red', from: 10 },
    ],
    queries: [
      {
        legend: 'failing',
        expr: `count(max by (destination) (${of('sluice_failing_destination_seconds')}) > 0) or vector(0)`,
      },
    ],
  },
  {
    kind: 'stat',
    title: 'Wait for their turn',
    about: 'Deliveries in the queues of their destinations. Paused destinations are included.',
    unit: 'short',
    runbook: 'waiting',
    thresholds: [{ color: 'blue', from: 0 }],
    queries: [{ ...sum('sluice_waiting_messages'), legend: 'wait' }],
  },
  {
    kind: 'stat',
    title: 'Dead letters in an hour',
    about: 'Messages that were given up within the last hour. `sluice replay dead-letters` sends them again.',
    unit: 'short',
    runbook: 'dead-letters',
    thresholds: [
      { color: 'green', from: 0 },
      { color: 'orange', from: 1 },
    ],
    queries: [
      {
        legend: 'dead letters',
        expr: `round(sum(increase(${of('sluice_dead_letters_total')}[1h]))) or vector(0)`,
      },
    ],
  },
  {
    kind: 'stat',
    title: 'Alerts',
    about: 'Alerts of Sluice that fire now. `sluice runbook NAME` prints what to do.',
    unit: 'short',
    thresholds: [
      { color: 'green', from: 0 },
      { color: 'red', from: 1 },
    ],
    queries: [
      {
        legend: 'fire',
        expr: 'count(ALERTS{alertname=~"Sluice.+", alertstate="firing", namespace=~"$namespace"}) or vector(0)',
      },
    ],
  },
  {
    kind: 'table',
    title: 'Destinations that fail',
    about:
      'The ten that have failed longest, and for how long. Click on one for its dashboard, or for what the admin API says of it.',
    unit: 's',
    runbook: 'endpoint-failing',
    queries: [
      {
        legend: '',
        expr: `sort_desc(max by (namespace, destination) (sluice:failing_destination_seconds:top10{namespace=~"$namespace"}) > 0)`,
      },
    ],
  },
]

/** The page of one destination. Most of it needs `metrics.perDestination`. */
export const destinationBoard: Board = {
  id: 'destination',
  title: 'one destination',
  about:
    'One destination, which the variable "Destination" chooses. It needs metrics.perDestination. Without it, `sluice destinations status` and the delivery log say the same.',
  hasDestination: true,
  panels: [
    {
      title: 'Deliveries',
      about: 'Deliveries that ended per second, by verdict.',
      unit: 'cps',
      queries: [ofOne('sluice_deliveries_total', 'verdict')],
    },
    {
      title: 'Answers',
      about: 'Requests per second, by the status class of the answer. none: no answer arrived.',
      unit: 'cps',
      queries: [ofOne('sluice_attempts_total', 'status_class')],
    },
    {
      title: 'Outcomes',
      about: 'Requests per second, by outcome. answer: a response arrived, whatever its status was.',
      unit: 'cps',
      queries: [ofOne('sluice_attempts_total', 'outcome')],
    },
    {
      title: 'Success',
      about: 'Successful share of its requests.',
      unit: 'percentunit',
      max: 1,
      runbook: 'endpoint-failing',
      queries: [
        {
          legend: 'delivered',
          expr: `sum(rate(${one('sluice_attempts_total', 'verdict="delivered"')}[$__rate_interval])) / sum(rate(${one('sluice_attempts_total')}[$__rate_interval]))`,
        },
      ],
    },
    {
      title: 'Open breakers of its URLs',
      about: 'How long the breaker of each URL has been open.',
      unit: 's',
      runbook: 'endpoint-failing',
      queries: [{ legend: '{{hook}}', expr: `max by (hook) (${one('sluice_breaker_open_seconds')})` }],
    },
    {
      title: 'Fails since',
      about: 'How long its URLs have failed, if it is one of the ten that fail longest.',
      unit: 's',
      runbook: 'endpoint-failing',
      queries: [{ legend: 'fails', expr: `max(${one('sluice_failing_destination_seconds')}) or vector(0)` }],
    },
  ],
}

function one(name: string, matchers = ''): string {
  return of(name, `destination=~"$destination"${matchers === '' ? '' : `, ${matchers}`}`)
}

function ofOne(name: string, by: string): { legend: string; expr: string } {
  return { legend: `{{${by}}}`, expr: `sum by (${by}) (rate(${one(name)}[$__rate_interval]))` }
}
