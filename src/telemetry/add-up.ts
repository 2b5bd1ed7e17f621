import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'

/** The metrics of one process, in a form that can be sent to another process. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[]

export async function snapshotMetrics(registry: Registry): Promise<MetricsSnapshot> {
  const metrics = await registry.getMetricsAsJSON()
  return metrics.map((metric) => (metric.name === startTime ? { ...metric, aggregator: 'min' } : metric))
}

/** prom-client leaves out this metric when it merges processes. The start of the first process is shown. */
const startTime = 'process_start_time_seconds'

/**
 * Merges the metrics of several processes into one text in Prometheus' format. The `aggregator` of each
 * metric says how its values are merged.
 */
export async function addUpMetrics(snapshots: readonly MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate([...snapshots]).metrics()
}
