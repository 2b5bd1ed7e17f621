import type { Config } from '../../config/schema.ts'
import { type Topic, type TopicKey, topics } from '../../topics/topic-list.ts'
import { ownPrefix, type TopicDefinition, topicTable } from '../../topics/topics.ts'
import { parseWait } from '../../retry/duration.ts'
import { topicLayout } from '../../roles/start/settings.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { type CopyProducer, startCopyProducer } from '../../kafka/produce/copy-writer.ts'
import { askKafka } from '../../roles/start/ask-kafka.ts'
import type { Layout } from '../../growth/plan.ts'

function configOf(config: Config, layout: Layout): Config {
  return { ...config, topics: { ...config.topics, ...layout } }
}

/**
 * Returns how the names of a layout's own topics begin. These are the topics that only Sluice writes and
 * whose records belong to units.
 */
export function beginningOf({ kafka }: Config, { generation }: Layout): string {
  return ownPrefix({ prefix: kafka.topicPrefix, generation })
}

const retry = 'retry.'
/** The marks of a copy begin anew, because only records that aren't done are copied. */
export const waitingMarks = topics.waitingMarks.name
const queues = topics.waiting.name

/**
 * Returns a layout's definitions of the topics that are copied, `memberships` and the topics in `waiting`,
 * and of the topic of marks, which begins empty. `waiting` has names without the layout's beginning. It may
 * include retry topics of earlier ladders.
 */
export function ownDefinitions(
  config: Config,
  layout: Layout,
  waiting: readonly string[],
): readonly TopicDefinition[] {
  const begins = beginningOf(config, layout)
  const tiers = waiting.filter((name) => name.startsWith(retry)).map((name) => name.slice(retry.length))
  const names = new Set(['memberships', waitingMarks, ...waiting].map((name) => begins + name))
  return topicTable({ ...topicLayout(configOf(config, layout)), tiers }).filter(({ topic }) =>
    names.has(topic),
  )
}

/**
 * Returns a layout's existing topics in which records wait to be delivered: `replays`, `waiting` and the
 * retry topics. The names are returned without the layout's beginning.
 */
export function waitingNames(config: Config, layout: Layout, existing: readonly string[]): string[] {
  const begins = beginningOf(config, layout)
  return existing
    .filter((topic) => topic.startsWith(begins))
    .map((topic) => topic.slice(begins.length))
    .filter((name) => name === 'replays' || name === queues || isTier(name))
}

function isTier(name: string): boolean {
  return name.startsWith(retry) && parseWait(name.slice(retry.length)) !== undefined
}

/**
 * Returns true for `replays`, `waiting` and the tiers of the present ladder. `sluice topics grow` creates
 * these topics even if no record waits in them.
 */
export function isOfLadder(config: Config, name: string): boolean {
  return (
    name === 'replays' || name === queues || topicLayout(config).tiers.some((tier) => name === retry + tier)
  )
}

/**
 * Returns the topics that other programs write or read by name. `sluice topics grow` adds partitions to these
 * topics, and doesn't rename them.
 */
export function sharedTopics(config: Config): readonly string[] {
  const layout = topicLayout(config)
  const next = new Set(topicTable({ ...layout, generation: layout.generation + 1 }).map(({ topic }) => topic))
  return topicTable(layout)
    .filter(({ topic, key }) => next.has(topic) && !hasOnePartition(key))
    .map(({ topic }) => topic)
}

/** Returns true for a topic that always has one partition, however many partitions the installation has. */
function hasOnePartition(key: TopicKey): boolean {
  const topic: Topic = topics[key]
  return topic.hasOnePartition === true
}

/** Calls `work` with a producer, and stops the producer afterwards. */
export async function withProducer<T>(
  { config, kafka }: { readonly config: Config; readonly kafka: ReturnType<typeof createKafka> },
  work: (producer: CopyProducer) => Promise<T>,
): Promise<T> {
  const producer = await askKafka(config, startCopyProducer(kafka, { batchBytes: config.kafka.batchBytes }))
  try {
    return await work(producer)
  } finally {
    await producer.stop()
  }
}
