import type { WorkerMetrics } from './worker-metrics.ts'

type Partitions = Iterable<{ readonly topic: string; readonly oldestUnsettledMs: number }>

/**
 * Sets the metric that says when the oldest unsettled record of each topic was appended. A topic without
 * unsettled records has no series.
 */
export function showOldestUnsettled(
  { oldestUnsettled }: Pick<WorkerMetrics, 'oldestUnsettled'>,
  partitions: Partitions,
  shortNameOf: (topic: string) => string,
): void {
  const oldest = new Map<string, number>()
  for (const { topic, oldestUnsettledMs } of partitions) {
    if (oldestUnsettledMs > 0) oldest.set(topic, Math.min(oldest.get(topic) ?? Infinity, oldestUnsettledMs))
  }
  oldestUnsettled.reset()
  for (const [topic, ms] of oldest) oldestUnsettled.set({ topic: shortNameOf(topic) }, ms / 1_000)
}
