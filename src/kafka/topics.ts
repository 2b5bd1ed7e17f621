import type { Kafka } from 'kafkajs'
import type { TopicSubscription } from './consumer.ts'
import { type Keeping, type Topic, type TopicKey, topicKeys, topics } from './topic-list.ts'
import { withAdmin } from './with-admin.ts'

/** How the topics are laid out; from the configuration. */
export type TopicLayout = {
  prefix: string
  /** Of every topic that is read by the group: a record keeps its partition number from topic to topic. */
  partitions: number
  /** Of the topics that only Sluice writes: each growth makes new ones. The first has no name of its own. */
  generation: number
  replication: number
  minInsync: number
  /** How long after the first try another may be due, in milliseconds. */
  retryLimitMs: number
  /** The waits of the retry tiers, spelled as in their topics' names. */
  tiers: readonly string[]
  /** The largest message that is delivered, with its key, in bytes. */
  maxMessageBytes: number
  /** How long the delivery log is kept, in milliseconds. */
  attemptsKeptMs: number
}

export type TopicSetting = {
  name: string
  value: string
  /** `atLeast`: more is fine, -1 is without a limit. */
  rule: 'equal' | 'atLeast'
}

export type TopicDefinition = {
  topic: string
  /** What the code calls it. */
  key: TopicKey
  purpose: string
  partitions: number
  replication: number
  settings: readonly TopicSetting[]
  /** Nothing is delivered otherwise without it: a role that can't use it says so, and starts. */
  isOptional?: true
}

/**
 * What the names of topics begin with that only Sluice writes, and that hold what belongs to a unit: a growth
 * copies them.
 */
export function ownPrefix({ prefix, generation }: Pick<TopicLayout, 'prefix' | 'generation'>): string {
  return generation === 1 ? prefix : `${prefix}g${generation}.`
}

/** The full name of each topic; `retryPrefix` is what those of the tiers begin with. */
export type TopicNames = Readonly<Record<TopicKey, string>>

export function topicNames(layout: Pick<TopicLayout, 'prefix' | 'generation'>): TopicNames {
  const own = ownPrefix(layout)
  const nameOf = ({ name, isOwn }: Topic): string => (isOwn === true ? own : layout.prefix) + name
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has each key of the table
  return Object.fromEntries(topicKeys.map((key) => [key, nameOf(topics[key])])) as TopicNames
}

/** Names the topics whose values may be framed for a schema registry. */
export function framedTopics(names: TopicNames): ReadonlySet<string> {
  return new Set(topicKeys.filter((key) => isFramed(topics[key])).map((key) => names[key]))
}

function isFramed(topic: Topic): boolean {
  return topic.isFramed === true
}

/**
 * What the consumer group reads: each topic that it subscribes to, with the tiers that are to be consumed.
 */
export function groupSubscriptions(
  names: TopicNames,
  tiers: readonly { readonly topic: string; readonly waitMs: number }[],
): readonly TopicSubscription[] {
  return subscribed.flatMap(({ key, tiers: hasTiers, ...terms }): TopicSubscription[] =>
    hasTiers ? tiers.map((tier) => ({ ...tier, ...terms })) : [{ topic: names[key], waitMs: 0, ...terms }],
  )
}

/** Whether the consumer group reads a topic, also one of an earlier ladder. */
export function isRead(names: TopicNames, topic: string): boolean {
  return subscribed.some(({ key, tiers }) => (tiers ? topic.startsWith(names[key]) : topic === names[key]))
}

/** The tiers come last. */
const subscribed = topicKeys
  .flatMap((key) => {
    const { subscription, tiers }: Topic = topics[key]
    return subscription === undefined ? [] : [{ key, tiers: tiers === true, ...subscription }]
  })
  .toSorted((a, b) => Number(a.tiers) - Number(b.tiers))

/** A topic's name without what it has of the prefix and of the generation, as metrics and rights call it. */
export function shortTopicName(topic: string, prefix: string): string {
  return topic.slice(prefix.length).replace(/^g\d+\./, '')
}

/**
 * The table of topics for a layout. `sluice topics apply` and `sluice up` make the topics so, by
 * `topic-apply.ts`; nothing else ever creates one. All other roles compare at their start.
 */
export function topicTable(layout: TopicLayout): TopicDefinition[] {
  const names = topicNames(layout)
  return topicKeys.flatMap((key): TopicDefinition[] => {
    const entry: Topic = topics[key]
    if (entry.tiers !== true) return [define(entry, { key, topic: names[key] }, layout)]
    return layout.tiers.map((tier) => ({
      ...define(entry, { key, topic: names[key] + tier }, layout),
      purpose: `${entry.purpose} ${tier}`,
    }))
  })
}

function define(
  entry: Topic,
  of: Pick<TopicDefinition, 'key' | 'topic'>,
  layout: TopicLayout,
): TopicDefinition {
  const { partitions, replication, minInsync } = layout
  return {
    ...of,
    purpose: entry.purpose,
    partitions: entry.hasOnePartition === true ? 1 : partitions,
    replication,
    settings: [
      ...keepingSettings(entry.kept(layout)),
      { name: 'max.message.bytes', value: String(entry.maxBytes(layout.maxMessageBytes)), rule: 'atLeast' },
      { name: 'message.timestamp.type', value: 'LogAppendTime', rule: 'equal' },
      { name: 'min.insync.replicas', value: String(minInsync), rule: 'atLeast' },
      { name: 'unclean.leader.election.enable', value: 'false', rule: 'equal' },
    ],
    ...(entry.isOptional === true && { isOptional: true as const }),
  }
}

/** Topics that are beside delivery. */
export function optionalTopics(layout: TopicLayout): ReadonlySet<string> {
  return new Set(topicTable(layout).flatMap(({ topic, isOptional }) => (isOptional ? [topic] : [])))
}

function keepingSettings(kept: Keeping): TopicSetting[] {
  if ('forMs' in kept) {
    return [
      { name: 'cleanup.policy', value: 'latestOfKey' in kept ? 'compact,delete' : 'delete', rule: 'equal' },
      { name: 'retention.ms', value: String(kept.forMs), rule: 'atLeast' },
      // A flood, or the parked records of a long outage, must not push out what was there before.
      { name: 'retention.bytes', value: '-1', rule: 'equal' },
    ]
  }
  return [
    { name: 'cleanup.policy', value: 'compact', rule: 'equal' },
    { name: 'min.compaction.lag.ms', value: String(kept.noneBeforeMs), rule: 'atLeast' },
    { name: 'delete.retention.ms', value: String(kept.deletionsForMs), rule: 'atLeast' },
  ]
}

/**
 * The tiers of every retry topic that exists, also those of a ladder that was configured before: all are
 * consumed until empty.
 */
export async function existingRetryTiers(kafka: Kafka, retryPrefix: string): Promise<string[]> {
  return withAdmin(kafka, async (admin) => {
    const existing = await admin.listTopics()
    return existing
      .filter((topic) => topic.startsWith(retryPrefix))
      .map((topic) => topic.slice(retryPrefix.length))
  })
}
