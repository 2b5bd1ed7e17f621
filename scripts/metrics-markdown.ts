import { alignTable } from '../src/config/markdown.ts'
import { metricsTable, type TableMetric } from './metrics-table.ts'

const introduction = `# Metrics

Generated from the tables in \`src/telemetry\` by \`npm run generate\`. This page is for operators who write queries and alerts.

Every process answers \`/metrics\` in Prometheus' text format at \`http.port\` (9400). If a worker has several processes, it combines
their values on one page. The column "Processes" says how: by their sum, maximum or minimum.
Before a process answers, it writes out its log. So whatever a scrape counts can be read there.
\`sluice up\` has the metrics of a worker and of a gateway. All processes also have prom-client's default metrics of the
process and of Node.js (\`process_…\` and \`nodejs_…\`).

- **Labels** have values from closed lists, so the number of series doesn't grow with the number of customers. Labels in
  brackets are an exception. Sluice adds them only with \`metrics.perDestination\`.
- **Ages.** A metric whose name ends in \`_timestamp_seconds\` is a point in time, not an age.
  \`time() - min by (topic) (…)\` is the age of the oldest record of all processes.
- **Lag.** \`sluice_group_lag_records\` is the lag according to the brokers, and exists even while no worker runs.
  \`sluice_consumer_lag_records\` is newer by some seconds, but exists only while the worker of the partition runs. To sum
  it, use \`sum by (topic) (max by (topic, partition) (…))\`.
- **Rules and alerts** that use these metrics are in \`deploy/prometheus\`, and dashboards are in \`deploy/grafana\`. Each
  alert has a runbook in \`deploy/runbooks\`.
`

/** Returns the text of `docs/metrics.md`. */
export async function metricsMarkdown(): Promise<string> {
  const own = [...(await metricsTable()).values()].filter(({ name }) => name.startsWith('sluice_'))
  const sections = [
    ['Of workers and gateways', own.filter(({ roles }) => roles.length === 2)],
    ['Of workers', own.filter(({ roles }) => roles.length === 1 && roles[0] === 'worker')],
    ['Of gateways', own.filter(({ roles }) => roles.length === 1 && roles[0] === 'gateway')],
    ['Of the index of the delivery log', own.filter(({ roles }) => roles[0] === 'log')],
    [
      'Of `sluice admin`, in addition to those of the build and the catalog',
      own.filter(({ roles }) => roles[0] === 'admin'),
    ],
  ] as const
  return (
    introduction +
    sections
      .map(([title, metrics]) => `\n## ${title}\n\n${alignTable([heading, ...metrics.map(cells)])}\n`)
      .join('')
  )
}

const heading = ['Metric', 'Type', 'Labels', 'Processes', 'Meaning']

function cells({ name, type, labels, destinationLabels, aggregator, help }: TableMetric): string[] {
  const shown = [...labels.map(code), ...destinationLabels.map((label) => `[${code(label)}]`)]
  return [code(name), type, shown.join(', '), aggregator, help]
}

function code(text: string): string {
  return `\`${text}\``
}
