import { createAdminMetrics } from '../src/telemetry/admin-metrics.ts'
import { createGatewayMetrics } from '../src/telemetry/gateway-metrics.ts'
import { createLogMetrics } from '../src/telemetry/log-metrics.ts'
import { createWorkerMetrics } from '../src/telemetry/worker-metrics.ts'

/** One metric, as `/metrics` reports it. */
export type TableMetric = {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly help: string
  readonly labels: readonly string[]
  /** Labels that the metric has only with `metrics.perDestination`. */
  readonly destinationLabels: readonly string[]
  /** The function that combines the values of one worker's processes: sum, max or min, for example. */
  readonly aggregator: string
  /** The roles that report the metric. */
  readonly roles: readonly ('worker' | 'gateway' | 'log' | 'admin')[]
}

type Registry = ReturnType<typeof createWorkerMetrics>['registry']

/**
 * Returns all metrics of all roles by name, including the metrics of Node.js and of the process. Metrics of
 * workers come first. Otherwise the order is that of the tables in `src/telemetry`.
 */
export async function metricsTable(): Promise<ReadonlyMap<string, TableMetric>> {
  const worker = await read(createWorkerMetrics({ perDestination: false }).registry)
  const perDestination = await read(createWorkerMetrics({ perDestination: true }).registry)
  const gateway = await read(createGatewayMetrics().registry)
  const table = new Map<string, TableMetric>()
  for (const [name, metric] of worker) {
    const all = perDestination.get(name)?.labels ?? []
    const destinationLabels = all.filter((label) => !metric.labels.includes(label))
    const roles = gateway.has(name) ? (['worker', 'gateway'] as const) : (['worker'] as const)
    table.set(name, { ...metric, destinationLabels, roles })
  }
  for (const [name, metric] of gateway)
    if (!table.has(name)) table.set(name, { ...metric, destinationLabels: [], roles: ['gateway'] })
  for (const [name, metric] of await read(createLogMetrics().registry))
    if (!table.has(name)) table.set(name, { ...metric, destinationLabels: [], roles: ['log'] })
  for (const [name, metric] of await read(createAdminMetrics().registry))
    if (!table.has(name)) table.set(name, { ...metric, destinationLabels: [], roles: ['admin'] })
  return table
}

type ReadMetric = Pick<TableMetric, 'name' | 'type' | 'help' | 'labels' | 'aggregator'>

async function read(registry: Registry): Promise<ReadonlyMap<string, ReadMetric>> {
  const values = await registry.getMetricsAsJSON()
  const labels = new Map(registry.getMetricsAsArray().map((metric) => [metric.name, labelsOf(metric)]))
  return new Map(
    values.map(({ name, type, help, aggregator }) => [
      name,
      { name, type: typeOf(String(type)), help, aggregator, labels: labels.get(name) ?? [] },
    ]),
  )
}

/** Returns the labels of a metric. prom-client has them in each metric, but its types don't declare them. */
function labelsOf(metric: object): readonly string[] {
  const labels: unknown = 'labelNames' in metric ? metric.labelNames : []
  return Array.isArray(labels) ? labels.map(String).filter((label) => label !== 'le') : []
}

function typeOf(type: string): TableMetric['type'] {
  if (type === 'counter' || type === 'gauge' || type === 'histogram' || type === 'summary') return type
  throw new Error(`a metric of type ${type}`)
}
