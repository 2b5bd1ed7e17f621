import type { Admin, Kafka, PartitionMetadata } from 'kafkajs'
import { readSettings, type ReportedSettings, satisfies } from './topic-settings.ts'
import { type TopicDefinition, type TopicLayout, topicTable } from './topics.ts'
import { withAdmin } from '../kafka/cluster/with-admin.ts'

/**
 * A difference between the table of topics and the cluster, in words. With `structure`, Sluice can't work,
 * because a topic is missing or has another number of partitions. With `setting`, Sluice can work. But a
 * setting makes a guarantee weaker, or the cluster doesn't report the setting.
 */
export type TopicFault = {
  readonly topic: string
  readonly problem: string
  readonly kind: 'structure' | 'setting'
}

export type TopicReport = {
  readonly faults: readonly TopicFault[]
  /**
   * The largest batch that each topic takes (`max.message.bytes`), in bytes. Topics for which the cluster
   * doesn't report this setting are absent.
   */
  readonly maxMessageBytes: ReadonlyMap<string, number>
}

export type CheckOptions = {
  /**
   * True if replicas and settings are checked too. Otherwise, only the topics and their numbers of partitions
   * are checked.
   */
  readonly withSettings: boolean
  /** Returns true if a topic is checked. By default, all topics of the table of topics are checked. */
  readonly isWanted?: (topic: string) => boolean
}

/** Compares the cluster with the table of topics. Changes nothing. */
export function checkTopics(kafka: Kafka, layout: TopicLayout, options: CheckOptions): Promise<TopicReport> {
  const { isWanted = () => true } = options
  const table = topicTable(layout).filter(({ topic }) => isWanted(topic))
  return withAdmin(kafka, (admin) => reportOn(admin, table, options))
}

/**
 * Returns true if the cluster has one broker, and topics of the layout exist there, each partition with one
 * replica. `sluice up` makes such a Kafka.
 */
export function hasOneReplica(kafka: Kafka, layout: TopicLayout): Promise<boolean> {
  return withAdmin(kafka, async (admin) => {
    const { brokers } = await admin.describeCluster()
    if (brokers.length !== 1) return false
    const { topics } = await admin.fetchTopicMetadata({
      topics: topicTable(layout).map(({ topic }) => topic),
    })
    const partitions = topics.flatMap((topic) => topic.partitions)
    return partitions.length > 0 && partitions.every(({ replicas }) => replicas.length === 1)
  })
}

export async function reportOn(
  admin: Admin,
  table: readonly TopicDefinition[],
  { withSettings }: CheckOptions,
): Promise<TopicReport> {
  const { topics } = await admin.fetchTopicMetadata({ topics: table.map(({ topic }) => topic) })
  const partitionsOf = new Map(topics.map(({ name, partitions }) => [name, partitions]))
  const faults: TopicFault[] = []
  const maxMessageBytes = new Map<string, number>()
  for (const definition of table) {
    const { topic } = definition
    const partitions = partitionsOf.get(topic) ?? []
    if (partitions.length === 0) {
      faults.push({ topic, problem: 'does not exist', kind: 'structure' })
      continue
    }
    faults.push(...shapeFaults(definition, partitions, withSettings))
    if (!withSettings) continue
    const reported = await readSettings(admin, topic)
    faults.push(...settingFaults(definition, reported))
    const most = typeof reported === 'string' ? undefined : reported.get('max.message.bytes')?.value
    if (Number(most) > 0) maxMessageBytes.set(topic, Number(most))
  }
  return { faults, maxMessageBytes }
}

function shapeFaults(
  { topic, partitions: expected, replication }: TopicDefinition,
  partitions: readonly Pick<PartitionMetadata, 'replicas'>[],
  withSettings: boolean,
): TopicFault[] {
  const faults: TopicFault[] = []
  if (partitions.length !== expected) {
    const problem = `has ${partitions.length} partitions instead of ${expected}`
    faults.push({ topic, problem, kind: 'structure' })
  }
  const fewest = Math.min(...partitions.map(({ replicas }) => replicas.length))
  if (withSettings && fewest < replication) {
    faults.push({ topic, problem: `has ${fewest} replicas instead of ${replication}`, kind: 'setting' })
  }
  return faults
}

function settingFaults(
  { topic, settings }: TopicDefinition,
  reported: ReportedSettings | string,
): TopicFault[] {
  if (typeof reported === 'string') {
    return [{ topic, problem: `does not tell its settings (${reported})`, kind: 'setting' }]
  }
  return settings.flatMap((setting) => {
    const value = reported.get(setting.name)?.value
    if (satisfies(setting, value)) return []
    const relation = setting.rule === 'atLeast' ? 'at least ' : ''
    const problem = `has ${setting.name}=${value ?? '(unknown)'} instead of ${relation}${setting.value}`
    return [{ topic, problem, kind: 'setting' as const }]
  })
}
