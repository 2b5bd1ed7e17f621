import type { Admin, Kafka } from 'kafkajs'
import kafkajs from 'kafkajs'
import { type TopicChange, untilEveryBrokerReports } from './every-broker.ts'
import { openPartwiseCluster } from '../kafka/cluster/partwise-cluster.ts'
import { isProtocolError } from '../kafka/wire/errors.ts'
import { asNew, correctAll, type Refusal, tryToCreate } from './topic-apply.ts'
import { readSettings } from './topic-settings.ts'
import type { TopicDefinition } from './topics.ts'
import { withAdmin } from '../kafka/cluster/with-admin.ts'

// Operations on topics for `sluice topics grow`. A `Refusal` names a change that the cluster refuses, with
// the text of the cluster's error.

const timeType = 'message.timestamp.type'

/**
 * Returns the definition of a topic, but with `CreateTime` for `message.timestamp.type`. The topic has this
 * setting while records are copied to it, so that each copy keeps the time that its writer has set.
 */
function withOwnTimes(definition: TopicDefinition): TopicDefinition {
  const settings = definition.settings.map((setting) =>
    setting.name === timeType ? { ...setting, value: 'CreateTime' } : setting,
  )
  return { ...definition, settings }
}

/**
 * Creates the topics that don't exist yet, with `CreateTime` for `message.timestamp.type`, so that copied
 * records keep their times. With `validateOnly`, creates no topic, and only asks whether the cluster would
 * create the topics.
 */
export function makeCopies(
  kafka: Kafka,
  definitions: readonly TopicDefinition[],
  { validateOnly }: { validateOnly: boolean },
): Promise<Refusal[]> {
  return withAdmin(kafka, async (admin) => {
    const existing = new Set(await admin.listTopics())
    const refusals: Refusal[] = []
    for (const definition of definitions) {
      const { topic } = definition
      if (existing.has(topic)) continue
      const made = withOwnTimes(definition)
      const problem = await tryToCreate(admin, made, made.settings, validateOnly)
      if (problem !== undefined) refusals.push({ topic, problem: `can not be created: ${problem}` })
    }
    if (validateOnly || refusals.length > 0) return refusals
    await untilEveryBrokerReports(kafka, definitions.map(asNew))
    return withoutOwnTimes(admin, definitions)
  })
}

/** Returns a refusal for each topic whose present settings don't let copied records keep their times. */
async function withoutOwnTimes(admin: Admin, definitions: readonly TopicDefinition[]): Promise<Refusal[]> {
  const refusals: Refusal[] = []
  for (const { topic } of definitions) {
    const reported = await readSettings(admin, topic)
    const value = typeof reported === 'string' ? reported : reported.get(timeType)?.value
    if (value !== 'CreateTime')
      refusals.push({ topic, problem: `does not have ${timeType}=CreateTime (${value ?? 'not reported'})` })
  }
  return refusals
}

/** Lets the brokers set the times of records from now on, as in every topic of the table of topics. */
export function enforceAppendTimes(
  kafka: Kafka,
  definitions: readonly TopicDefinition[],
): Promise<Refusal[]> {
  return withAdmin(kafka, async (admin) => {
    const { corrected, uncorrected } = await correctAll(admin, definitions)
    await untilEveryBrokerReports(kafka, corrected)
    return uncorrected
  })
}

/**
 * Adds partitions to each existing topic that has fewer than `partitions`. With `validateOnly`, adds no
 * partition, and only asks whether the cluster would add the partitions.
 */
export function addPartitions(
  kafka: Kafka,
  {
    topics,
    partitions,
    validateOnly,
  }: { topics: readonly string[]; partitions: number; validateOnly: boolean },
): Promise<Refusal[]> {
  return withAdmin(kafka, async (admin) => {
    const existing = new Set(await admin.listTopics())
    const refusals: Refusal[] = []
    const changes: TopicChange[] = []
    for (const topic of topics.filter((one) => existing.has(one))) {
      const { topics: reported } = await admin.fetchTopicMetadata({ topics: [topic] })
      const first = reported[0]?.partitions.length ?? 0
      if (first >= partitions) continue
      const topicPartitions = [{ topic, count: partitions }]
      try {
        await admin.createPartitions({ validateOnly, timeout: 30_000, topicPartitions })
        changes.push({ topic, newPartitions: { first, count: partitions } })
      } catch (error) {
        if (!isRefusal(error)) throw error
        const reason = error instanceof Error ? error.message : String(error)
        refusals.push({ topic, problem: `can not get ${partitions} partitions: ${reason}` })
      }
    }
    if (!validateOnly) await untilEveryBrokerReports(kafka, changes)
    return refusals
  })
}

function isRefusal(error: unknown): boolean {
  return isProtocolError(error, refusalTypes) || error instanceof kafkajs.KafkaJSAggregateError
}

const refusalTypes: ReadonlySet<string> = new Set([
  'INVALID_PARTITIONS',
  'INVALID_REPLICA_ASSIGNMENT',
  'INVALID_REPLICATION_FACTOR',
  'INVALID_REQUEST',
  'POLICY_VIOLATION',
  'REASSIGNMENT_IN_PROGRESS',
  'THROTTLING_QUOTA_EXCEEDED',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'UNSUPPORTED_VERSION',
  'UNKNOWN',
])

export function existingOf(kafka: Kafka, topics: readonly string[]): Promise<string[]> {
  return withAdmin(kafka, async (admin) => {
    const existing = new Set(await admin.listTopics())
    return topics.filter((topic) => existing.has(topic))
  })
}

/**
 * Removes the given topics, as far as they exist. Their records, and the group's commits for them, are
 * removed too. Returns the names of the removed topics.
 */
export async function removeTopics(kafka: Kafka, topics: readonly string[]): Promise<string[]> {
  const present = await existingOf(kafka, topics)
  if (present.length > 0)
    await withAdmin(kafka, (admin) => admin.deleteTopics({ topics: present, timeout: 30_000 }))
  await untilEveryBrokerReports(
    kafka,
    present.map((topic) => ({ topic, isDeleted: true })),
  )
  return present
}

export function topicsBeginning(kafka: Kafka, begins: string): Promise<string[]> {
  return withAdmin(kafka, async (admin) =>
    (await admin.listTopics()).filter((topic) => topic.startsWith(begins)),
  )
}

/**
 * Returns the ids of the topics. Leaves out topics whose ids the cluster doesn't report. A topic that was
 * deleted and created again has another id.
 */
export async function topicIdsOf(
  kafka: Kafka,
  topics: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const opened = openPartwiseCluster(kafka)
  try {
    await opened.cluster.connect()
    await opened.cluster.addMultipleTargetTopics([...topics])
    return new Map(
      (opened.metadata?.topicMetadata ?? []).flatMap(({ topic, topicId }) =>
        topicId === undefined ? [] : [[topic, topicId] as const],
      ),
    )
  } finally {
    await opened.close()
  }
}
