import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'

/** The metrics of one process, as data that can be sent to another. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[]

export async function snapshotMetrics(registry: Registry): Promise<MetricsSnapshot> {
  return registry.getMetricsAsJSON()
}

/**
 * Merges the metrics of several processes into one text in Prometheus' format: each metric by its
 * `aggregator`.
 */
export async function addUpMetrics(snapshots: readonly MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate([...snapshots]).metrics()
}
