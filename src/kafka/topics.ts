import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { withAdmin } from './with-admin.ts'

/** How the topics are laid out; from the configuration. */
export type TopicLayout = {
  prefix: string
  /** Of every topic that is read by the group: a record keeps its partition number from topic to topic. */
  partitions: number
  replication: number
  minInsync: number
  /** How long after the first try another may be due, in milliseconds. */
  retryLimitMs: number
  /** The waits of the retry tiers, spelled as in their topics' names. */
  tiers: readonly string[]
  /** The largest message that is delivered, with its key, in bytes. */
  maxMessageBytes: number
}

type Setting = {
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
  settings: readonly Setting[]
}

/**
 * Which records a topic keeps: all for so long; or of each key the latest, where nothing is compacted away before it
 * has that age, since it may not be delivered yet, and a deletion can be read for so long.
 */
type Keeping = { forMs: number } | { latestOfKey: true; noneBeforeMs: number; deletionsForMs: number }

const day = 24 * 3_600_000
/** Of what upstream services produce, and so the longest outage of ours that loses nothing. */
const sourceKeptMs = 7 * day
const kibi = 1024
/** How long `memberships` tells at least that a key was removed: whoever knows an older state has to read all of it again. */
export const deletionsKeptMs = 30 * day
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

/** The one table of topics. The worker checks it at its start, `sluice topics apply` makes it so. */
export function topicTable(layout: TopicLayout): TopicDefinition[] {
  const { prefix, partitions, replication, minInsync, retryLimitMs, tiers, maxMessageBytes } = layout
  const carriedMs = carriedKeptMs(retryLimitMs)
  const carriedBytes = maxCarriedBytes(maxMessageBytes)
  const define = (
    name: string,
    purpose: string,
    kept: Keeping,
    maxBytes: number,
    partitionCount = partitions,
  ): TopicDefinition => ({
    topic: prefix + name,
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
    ),
    ...tiers.map((tier) =>
      define(`retry.${tier}`, `deliveries to try again after ${tier}`, { forMs: carriedMs }, carriedBytes),
    ),
    define(
      'replays',
      'deliveries asked for again, by replay or backfill',
      { forMs: carriedMs },
      carriedBytes,
    ),
    define('dead-letters', 'what can not be delivered, with the reason', { forMs: 14 * day }, carriedBytes),
    define(
      'backfills',
      'which destinations have missed a value of an audience, and need a backfill',
      { latestOfKey: true, noneBeforeMs: 0, deletionsForMs: day },
      kafkaDefaultBytes,
      1,
    ),
  ]
}

function keepingSettings(kept: Keeping): Setting[] {
  if ('forMs' in kept) {
    return [
      { name: 'cleanup.policy', value: 'delete', rule: 'equal' },
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

/** A difference between the table and the cluster, in words. */
export type TopicFault = { topic: string; problem: string; isMissing: boolean }

/** Makes missing topics and corrects settings. What can't be corrected in place is given back. */
export async function applyTopics(
  kafka: Kafka,
  layout: TopicLayout,
): Promise<{ created: string[]; corrected: string[]; faults: TopicFault[] }> {
  return withAdmin(kafka, async (admin) => {
    const table = topicTable(layout)
    const existing = new Set(await admin.listTopics())
    const missing = table.filter(({ topic }) => !existing.has(topic))
    if (missing.length > 0) await createTopics(admin, missing)
    const corrected = await correctSettings(
      admin,
      table.filter(({ topic }) => existing.has(topic)),
    )
    return { created: missing.map(({ topic }) => topic), corrected, faults: await findFaults(admin, table) }
  })
}

/** Compares the cluster with the table; changes nothing. */
export async function checkTopics(kafka: Kafka, layout: TopicLayout): Promise<TopicFault[]> {
  return withAdmin(kafka, (admin) => findFaults(admin, topicTable(layout)))
}

/** Every retry topic that exists, also those of a ladder that was configured before: all are consumed until empty. */
export async function existingRetryTiers(kafka: Kafka, prefix: string): Promise<string[]> {
  const retryPrefix = `${prefix}retry.`
  return withAdmin(kafka, async (admin) => {
    const topics = await admin.listTopics()
    return topics
      .filter((topic) => topic.startsWith(retryPrefix))
      .map((topic) => topic.slice(retryPrefix.length))
  })
}

async function createTopics(admin: Admin, missing: readonly TopicDefinition[]): Promise<void> {
  await admin.createTopics({
    // The client's own wait fails where a broker hasn't heard of the topic yet.
    waitForLeaders: false,
    timeout: 30_000,
    topics: missing.map(({ topic, partitions, replication, settings }) => ({
      topic,
      numPartitions: partitions,
      replicationFactor: replication,
      configEntries: settings.map(({ name, value }) => ({ name, value })),
    })),
  })
  await untilServed(
    admin,
    missing.map(({ topic }) => topic),
  )
}

const servedWithinMs = 30_000
const notServedTypes: ReadonlySet<string> = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE'])

/** The controller has made the topics; the brokers learn of it a moment later. */
async function untilServed(admin: Admin, topics: string[]): Promise<void> {
  const deadlineMs = performance.now() + servedWithinMs
  while (!(await areServed(admin, topics))) {
    if (performance.now() > deadlineMs) {
      throw new Error(`the new topics have no leaders after ${servedWithinMs} ms: ${topics.join(', ')}`)
    }
    await delay(100)
  }
}

async function areServed(admin: Admin, topics: string[]): Promise<boolean> {
  try {
    const { topics: present } = await admin.fetchTopicMetadata({ topics })
    return present.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))
  } catch (error) {
    if (error instanceof kafkajs.KafkaJSProtocolError && notServedTypes.has(error.type)) return false
    throw error
  }
}

async function correctSettings(admin: Admin, present: readonly TopicDefinition[]): Promise<string[]> {
  const corrected: string[] = []
  for (const definition of present) {
    const actual = await readSettings(admin, definition.topic)
    if (definition.settings.every((setting) => satisfies(setting, actual.get(setting.name)?.value))) continue
    // The call replaces all of a topic's own settings: those that somebody else made are sent along.
    const own = [...actual]
      .filter(([, { isDefault }]) => !isDefault)
      .map(([name, { value }]) => [name, value] as const)
    const wanted = new Map<string, string>(own)
    for (const setting of definition.settings) {
      if (!satisfies(setting, actual.get(setting.name)?.value)) wanted.set(setting.name, setting.value)
    }
    await admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: kafkajs.ConfigResourceTypes.TOPIC,
          name: definition.topic,
          configEntries: [...wanted].map(([name, value]) => ({ name, value })),
        },
      ],
    })
    corrected.push(definition.topic)
  }
  return corrected
}

async function findFaults(admin: Admin, table: readonly TopicDefinition[]): Promise<TopicFault[]> {
  const existing = new Set(await admin.listTopics())
  const faults: TopicFault[] = []
  for (const definition of table) {
    const { topic } = definition
    if (!existing.has(topic)) {
      faults.push({ topic, problem: 'does not exist', isMissing: true })
      continue
    }
    for (const problem of await problemsOf(admin, definition))
      faults.push({ topic, problem, isMissing: false })
  }
  return faults
}

async function problemsOf(admin: Admin, definition: TopicDefinition): Promise<string[]> {
  const problems: string[] = []
  const { topics } = await admin.fetchTopicMetadata({ topics: [definition.topic] })
  const partitions = topics[0]?.partitions ?? []
  if (partitions.length !== definition.partitions) {
    problems.push(`has ${partitions.length} partitions instead of ${definition.partitions}`)
  }
  const fewest = Math.min(...partitions.map(({ replicas }) => replicas.length))
  if (fewest < definition.replication) {
    problems.push(`has ${fewest} replicas instead of ${definition.replication}`)
  }
  const actual = await readSettings(admin, definition.topic)
  for (const setting of definition.settings) {
    const value = actual.get(setting.name)?.value
    if (satisfies(setting, value)) continue
    const relation = setting.rule === 'atLeast' ? 'at least ' : ''
    problems.push(`has ${setting.name}=${value ?? '(unknown)'} instead of ${relation}${setting.value}`)
  }
  return problems
}

async function readSettings(
  admin: Admin,
  topic: string,
): Promise<Map<string, { value: string; isDefault: boolean }>> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
  })
  const entries = resources[0]?.configEntries ?? []
  return new Map(
    entries.map((entry) => [
      entry.configName,
      // Source 1 is the topic's own configuration; all others are defaults of the cluster.
      { value: entry.configValue, isDefault: entry.configSource !== topicConfigSource },
    ]),
  )
}

const topicConfigSource: unknown = 1

function satisfies({ value, rule }: Setting, actual: string | undefined): boolean {
  if (actual === undefined) return false
  if (rule === 'equal') return actual === value
  return Number(actual) === -1 || Number(actual) >= Number(value)
}
