import type { Gauge } from 'prom-client'

/** Sets a metric to the given count of each topic. The label is the topic's short name. */
export function showByTopic(
  gauge: Gauge<'topic'>,
  counts: ReadonlyMap<string, number>,
  shortNameOf: (topic: string) => string,
): void {
  gauge.reset()
  for (const [topic, count] of counts) gauge.set({ topic: shortNameOf(topic) }, count)
}
