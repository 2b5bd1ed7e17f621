import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'

/** What one process has counted, as data that can go to another. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[]

export async function snapshotMetrics(registry: Registry): Promise<MetricsSnapshot> {
  return registry.getMetricsAsJSON()
}

/**
 * The metrics of several processes as if they were one's, in Prometheus' text format: each by its
 * `aggregator`.
 */
export async function addUpMetrics(snapshots: readonly MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate([...snapshots]).metrics()
}
