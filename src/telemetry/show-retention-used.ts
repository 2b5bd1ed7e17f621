import type { WorkerMetrics } from './worker-metrics.ts'

type Partitions = Iterable<{ readonly topic: string; readonly oldestUnsettledMs: number }>

/**
 * Sets the metric that compares the age of each topic's oldest unsettled record with the topic's retention.
 * Once the age reaches the retention, Kafka deletes the record. `retentions` has the time for which each
 * topic keeps a record, in milliseconds.
 */
export function showRetentionUsed(
  { retentionUsed }: Pick<WorkerMetrics, 'retentionUsed'>,
  partitions: Partitions,
  deps: { retentions: ReadonlyMap<string, number>; shortNameOf: (topic: string) => string; nowMs: number },
): void {
  const { retentions, shortNameOf, nowMs } = deps
  const used = new Map<string, number>()
  for (const { topic, oldestUnsettledMs } of partitions) {
    const retentionMs = retentions.get(topic)
    if (retentionMs === undefined) continue
    const ageMs = oldestUnsettledMs === 0 ? 0 : Math.max(0, nowMs - oldestUnsettledMs)
    used.set(topic, Math.max(used.get(topic) ?? 0, ageMs / retentionMs))
  }
  retentionUsed.reset()
  for (const [topic, ratio] of used) retentionUsed.set({ topic: shortNameOf(topic) }, ratio)
}
