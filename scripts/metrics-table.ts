import { createAdminMetrics } from '../src/telemetry/admin-metrics.ts'
import { createGatewayMetrics } from '../src/telemetry/gateway-metrics.ts'
import { createLogMetrics } from '../src/telemetry/log-metrics.ts'
import { createWorkerMetrics } from '../src/telemetry/worker-metrics.ts'

/** One metric, as `/metrics` tells it. */
export type TableMetric = {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly help: string
  readonly labels: readonly string[]
  /** Labels that it has only with `metrics.perDestination`. */
  readonly destinationLabels: readonly string[]
  /** What several processes of one worker make of their values: sum, max or min. */
  readonly aggregator: string
  /** Who tells it. */
  readonly roles: readonly ('worker' | 'gateway' | 'log' | 'admin')[]
}

type Registry = ReturnType<typeof createWorkerMetrics>['registry']

/** All metrics of all roles by their name, those of Node.js and the process among them, in the order of the table. */
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

/** prom-client has them in each metric, and doesn't declare it. */
function labelsOf(metric: object): readonly string[] {
  const labels: unknown = 'labelNames' in metric ? metric.labelNames : []
  return Array.isArray(labels) ? labels.map(String).filter((label) => label !== 'le') : []
}

function typeOf(type: string): TableMetric['type'] {
  if (type === 'counter' || type === 'gauge' || type === 'histogram' || type === 'summary') return type
  throw new Error(`a metric of type ${type}`)
}
