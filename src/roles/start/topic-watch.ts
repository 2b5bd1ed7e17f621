import { setTimeout as delay } from 'node:timers/promises'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { missingTopics } from '../../topics/topic-partitions.ts'

const lookEveryMs = 2_000

export type TopicWatch = {
  /** Returns the topics that were there before and are gone now, each as a reason why a role isn't ready. */
  obstacles(): readonly string[]
  stop(): Promise<void>
}

/**
 * Looks every two seconds whether topics still exist. A topic that was never there is no obstacle: the calls
 * that need it say so. Resolves after the first look. While Kafka doesn't answer, the last look counts.
 */
export async function watchTopics(
  kafka: ReturnType<typeof createKafka>,
  topics: readonly string[],
): Promise<TopicWatch> {
  const stopping = new AbortController()
  const { signal } = stopping
  const seen = new Set<string>()
  let gone: readonly string[] = []

  async function look(): Promise<void> {
    const missing = new Set(await missingTopics(kafka, topics))
    for (const topic of topics) if (!missing.has(topic)) seen.add(topic)
    gone = topics.filter((topic) => missing.has(topic) && seen.has(topic))
  }

  async function run(): Promise<void> {
    for (;;) {
      await delay(lookEveryMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      await look().catch(() => undefined)
    }
  }

  await look().catch(() => undefined)
  const running = run()
  return {
    obstacles: () =>
      gone.map((topic) => `${topic} does not exist any more: \`sluice topics apply\` creates it`),
    stop() {
      stopping.abort()
      return running
    },
  }
}
