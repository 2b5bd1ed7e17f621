import type { Gauge } from 'prom-client'

/** Shows a count for each topic that has one, under the topic's short name. */
export function showByTopic(
  gauge: Gauge<'topic'>,
  counts: ReadonlyMap<string, number>,
  shortNameOf: (topic: string) => string,
): void {
  gauge.reset()
  for (const [topic, count] of counts) gauge.set({ topic: shortNameOf(topic) }, count)
}
