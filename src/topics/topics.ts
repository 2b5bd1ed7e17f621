import type { Kafka } from 'kafkajs'
import { type Keeping, type Topic, type TopicKey, topicKeys, topics } from './topic-list.ts'
import { withAdmin } from '../kafka/cluster/with-admin.ts'
import type { ConsumerOptions } from '../kafka/group/consumer.ts'
import type { TopicSetting } from './topic-settings.ts'

type TopicSubscription = ConsumerOptions['topics'][number]

/** The layout of the topics, from the configuration. */
export type TopicLayout = {
  prefix: string
  /**
   * The number of partitions of every topic that the group reads. A record that is written from one of these
   * topics to another keeps its partition number.
   */
  partitions: number
  /**
   * The generation of the topics that only Sluice writes. Each run of `sluice topics grow` creates the topics
   * of the next generation. The topic names of generation 1 don't contain the number.
   */
  generation: number
  replication: number
  minInsync: number
  /** The time after the first attempt of a delivery in which further attempts may begin, in milliseconds. */
  retryLimitMs: number
  /** The waits of the retry tiers, spelled as in the names of the topics. */
  tiers: readonly string[]
  /** The size of the largest message that is delivered, including its key, in bytes. */
  maxMessageBytes: number
  /** The retention of the delivery log, in milliseconds. */
  attemptsKeptMs: number
  /** True if the catalog is in a topic. */
  hasCatalog?: boolean
  /** The retention of the history of the catalog, in milliseconds. Absent: the default. */
  historyKeptMs?: number
}

export type TopicDefinition = {
  topic: string
  /** The topic's name in the code. */
  key: TopicKey
  purpose: string
  partitions: number
  replication: number
  settings: readonly TopicSetting[]
  /**
   * True if deliveries don't depend on this topic. A role that can't use the topic logs this and starts
   * anyway.
   */
  isOptional?: true
}

/**
 * Returns the prefix for the names of Sluice's own topics (`isOwn`). Only Sluice writes these topics, and
 * their records belong to units. `sluice topics grow` copies these topics.
 */
export function ownPrefix({ prefix, generation }: Pick<TopicLayout, 'prefix' | 'generation'>): string {
  return generation === 1 ? prefix : `${prefix}g${generation}.`
}

/** The full name of each topic. `retryPrefix` is the beginning of the tiers' names. */
export type TopicNames = Readonly<Record<TopicKey, string>>

export function topicNames(layout: Pick<TopicLayout, 'prefix' | 'generation'>): TopicNames {
  const own = ownPrefix(layout)
  const nameOf = ({ name, isOwn }: Topic): string => (isOwn === true ? own : layout.prefix) + name
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has each key of the table
  return Object.fromEntries(topicKeys.map((key) => [key, nameOf(topics[key])])) as TopicNames
}

/**
 * Returns the topics whose values may begin with the schema id of a registry (`schema-registry/frame.ts`).
 */
export function framedTopics(names: TopicNames): ReadonlySet<string> {
  return new Set(topicKeys.filter((key) => isFramed(topics[key])).map((key) => names[key]))
}

function isFramed(topic: Topic): boolean {
  return topic.isFramed === true
}

/** Returns the topics that the consumer group reads, with a retry topic for each of the given tiers. */
export function groupSubscriptions(
  names: TopicNames,
  tiers: readonly { readonly topic: string; readonly waitMs: number }[],
): readonly TopicSubscription[] {
  return subscribed.flatMap(({ key, tiers: hasTiers, ...terms }): TopicSubscription[] =>
    hasTiers ? tiers.map((tier) => ({ ...tier, ...terms })) : [{ topic: names[key], waitMs: 0, ...terms }],
  )
}

/** Returns true if the consumer group reads a topic. This includes the tiers of an earlier ladder. */
export function isRead(names: TopicNames, topic: string): boolean {
  return subscribed.some(({ key, tiers }) => (tiers ? topic.startsWith(names[key]) : topic === names[key]))
}

/** The topics that the group subscribes to, with the tiers last. */
const subscribed = topicKeys
  .flatMap((key) => {
    const { subscription, tiers }: Topic = topics[key]
    return subscription === undefined ? [] : [{ key, tiers: tiers === true, ...subscription }]
  })
  .toSorted((a, b) => Number(a.tiers) - Number(b.tiers))

/** Returns a topic's name without prefix and generation, as metrics and rights use it. */
export function shortTopicName(topic: string, prefix: string): string {
  return topic.slice(prefix.length).replace(/^g\d+\./, '')
}

/**
 * Returns the table of topics for a layout. `sluice topics apply` and `sluice up` create the topics of this
 * table (`topic-apply.ts`). `sluice topics grow` creates topics too. All other roles create no topics.
 * They only compare the cluster with the table when they start.
 */
export function topicTable(layout: TopicLayout): TopicDefinition[] {
  const names = topicNames(layout)
  return topicKeys.flatMap((key): TopicDefinition[] => {
    const entry: Topic = topics[key]
    if (entry.isOfCatalog === true && layout.hasCatalog !== true) return []
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

/** Returns the topics that deliveries don't depend on. */
export function optionalTopics(layout: TopicLayout): ReadonlySet<string> {
  return new Set(topicTable(layout).flatMap(({ topic, isOptional }) => (isOptional ? [topic] : [])))
}

function keepingSettings(kept: Keeping): TopicSetting[] {
  if ('forMs' in kept) {
    return [
      { name: 'cleanup.policy', value: 'latestOfKey' in kept ? 'compact,delete' : 'delete', rule: 'equal' },
      { name: 'retention.ms', value: String(kept.forMs), rule: 'atLeast' },
      // Many new records, for example the parked records of a long outage, must not cause the deletion of
      // older records.
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
 * Returns the tier of every retry topic that exists. This includes tiers of an earlier ladder, because these
 * are read until they are empty.
 */
export async function existingRetryTiers(kafka: Kafka, retryPrefix: string): Promise<string[]> {
  return withAdmin(kafka, async (admin) => {
    const existing = await admin.listTopics()
    return existing
      .filter((topic) => topic.startsWith(retryPrefix))
      .map((topic) => topic.slice(retryPrefix.length))
  })
}
