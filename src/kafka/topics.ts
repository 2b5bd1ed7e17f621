import type { Kafka } from 'kafkajs'
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
  purpose: string
  partitions: number
  replication: number
  settings: readonly TopicSetting[]
  /** Nothing is delivered otherwise without it: a role that can't use it says so, and starts. */
  isOptional?: true
}

/**
 * Which records a topic keeps: all for so long; or of each key the latest, where nothing is compacted away before it
 * has that age, since it may not be delivered yet, and a deletion can be read for so long; or of each key the latest, for so long.
 */
type Keeping =
  | { forMs: number }
  | { latestOfKey: true; noneBeforeMs: number; deletionsForMs: number }
  | { latestOfKey: true; forMs: number }

const day = 24 * 3_600_000
/** Of what upstream services produce, and so the longest outage of ours that loses nothing. */
const sourceKeptMs = 7 * day
const kibi = 1024
/** How long `memberships` tells at least that a key was removed: whoever knows an older state has to read all of it again. */
export const deletionsKeptMs = 30 * day
/** How long it is known who had what replayed. A replay ends long before: what it reads is kept for two weeks. */
const replayJobsKept = { latestOfKey: true, forMs: 90 * day } as const
const ofAttempts = 'the delivery log: what became of each delivery'
const ofReplayJobs = 'replays: who asked for what, and how far they are'
const ofAll = { partitionCount: 1 }
/** What a topic takes by default, and so the least that producers may count on. */
const kafkaDefaultBytes = 1_048_588
const batchHeaderBytes = 12
/** Beside the message; what retried records and dead letters carry has limits that stay within it. */
const headersBytes = 64 * kibi

/** The largest record of `events`: the message that is taken, and no less than what is usual. */
function maxSourceBytes(maxMessageBytes: number): number {
  return Math.max(kafkaDefaultBytes, maxMessageBytes + batchHeaderBytes)
}

/** The largest record of the retry topics and the dead letters: whatever is taken has room there. */
export function maxCarriedBytes(maxMessageBytes: number): number {
  return maxSourceBytes(maxMessageBytes) + headersBytes
}

/**
 * Of what waits on topics of ours: it may have waited for all of its retries when an outage begins, and is read again when the oldest
 * record of `events` is. At least a day more than those have, to catch up in.
 */
function carriedKeptMs(retryLimitMs: number): number {
  return sourceKeptMs + Math.max(day, retryLimitMs)
}

/** What the names of topics begin with that only Sluice writes, and that hold what belongs to a unit: a growth copies them. */
export function ownPrefix({ prefix, generation }: Pick<TopicLayout, 'prefix' | 'generation'>): string {
  return generation === 1 ? prefix : `${prefix}g${generation}.`
}

/** A topic's name without what it has of the prefix and of the generation, as metrics and rights call it. */
export function shortTopicName(topic: string, prefix: string): string {
  return topic.slice(prefix.length).replace(/^g\d+\./, '')
}

/** The one table of topics. The worker checks it at its start, `sluice topics apply` makes it so. */
export function topicTable(layout: TopicLayout): TopicDefinition[] {
  const { prefix, partitions, replication, minInsync, retryLimitMs, tiers, maxMessageBytes, attemptsKeptMs } =
    layout
  const carriedMs = carriedKeptMs(retryLimitMs)
  const carriedBytes = maxCarriedBytes(maxMessageBytes)
  const own = { begins: ownPrefix(layout) }
  const define = (
    name: string,
    purpose: string,
    kept: Keeping,
    maxBytes: number,
    { begins = prefix, partitionCount = partitions }: { begins?: string; partitionCount?: number } = {},
  ): TopicDefinition => ({
    topic: begins + name,
    purpose,
    partitions: partitionCount,
    replication,
    settings: [
      ...keepingSettings(kept),
      { name: 'max.message.bytes', value: String(maxBytes), rule: 'atLeast' },
      { name: 'message.timestamp.type', value: 'LogAppendTime', rule: 'equal' },
      { name: 'min.insync.replicas', value: String(minInsync), rule: 'atLeast' },
      { name: 'unclean.leader.election.enable', value: 'false', rule: 'equal' },
    ],
  })
  return [
    define(
      'events',
      'analytics events, as upstream services produce them',
      { forMs: sourceKeptMs },
      maxSourceBytes(maxMessageBytes),
    ),
    define(
      'audience-changes',
      'changes of audiences and computed traits, as upstream services produce them',
      { forMs: sourceKeptMs },
      maxSourceBytes(maxMessageBytes),
    ),
    define(
      'deletions',
      'requests to delete a user',
      { forMs: sourceKeptMs },
      maxSourceBytes(maxMessageBytes),
    ),
    define(
      'memberships',
      'what audiences and computed traits hold, and so what is to be delivered of them',
      { latestOfKey: true, noneBeforeMs: sourceKeptMs, deletionsForMs: deletionsKeptMs },
      carriedBytes,
      own,
    ),
    ...tiers.map((tier) =>
      define(
        `retry.${tier}`,
        `deliveries to try again after ${tier}`,
        { forMs: carriedMs },
        carriedBytes,
        own,
      ),
    ),
    define(
      'replays',
      'deliveries asked for again, by replay or backfill',
      { forMs: carriedMs },
      carriedBytes,
      own,
    ),
    define('dead-letters', 'what can not be delivered, with the reason', { forMs: 14 * day }, carriedBytes),
    define(
      'backfills',
      'which destinations have missed a value of an audience, and need a backfill; how far a growth is',
      { latestOfKey: true, noneBeforeMs: 0, deletionsForMs: day },
      kafkaDefaultBytes,
      ofAll,
    ),
    { ...define('attempts', ofAttempts, { forMs: attemptsKeptMs }, kafkaDefaultBytes), isOptional: true },
    define('replay-jobs', ofReplayJobs, replayJobsKept, kafkaDefaultBytes, ofAll),
  ]
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

/** The tiers of every retry topic that exists, also those of a ladder that was configured before: all are consumed until empty. */
export async function existingRetryTiers(kafka: Kafka, retryPrefix: string): Promise<string[]> {
  return withAdmin(kafka, async (admin) => {
    const topics = await admin.listTopics()
    return topics
      .filter((topic) => topic.startsWith(retryPrefix))
      .map((topic) => topic.slice(retryPrefix.length))
  })
}
