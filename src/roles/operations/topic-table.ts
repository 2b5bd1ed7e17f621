import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { applyTopics } from '../../topics/topic-apply.ts'
import { checkTopics, hasOneReplica } from '../../topics/topic-check.ts'
import { type PrintFormat, printTopics } from '../../topics/topic-print.ts'
import { topicTable } from '../../topics/topics.ts'
import { askKafka, openKafka } from '../start/ask-kafka.ts'
import { refuseOtherLayout } from '../start/growth-journal.ts'
import { topicLayout } from '../start/settings.ts'
import { StartError } from '../start/start-error.ts'
import { describeTopicFaults, judgeFaults } from '../start/topic-layout.ts'

type Log = Parameters<typeof createKafka>[1]

/**
 * Creates missing topics, and corrects settings of existing topics. Returns what was done, in lines. Throws
 * if a fault can't be corrected.
 */
export async function applyTopicTable(given: Config, log: Log): Promise<string[]> {
  const { check } = given.topics
  const kafka = await openKafka(given, log, 'topics apply')
  await refuseOtherLayout(kafka, given)
  const { config, notes } = await suitedToBrokers(kafka, given)
  const { created, corrected, refused, report } = await askKafka(
    config,
    applyTopics(kafka, topicLayout(config), {
      mayLeaveOut: check !== 'strict',
      withSettings: check !== 'off',
    }),
  )
  const { fatal, tolerated } = judgeFaults(config, report.faults)
  if (fatal.length > 0) throw new StartError(describeTopicFaults([...refused, ...fatal]))
  const lines = [
    ...created.map((topic) => `created    ${topic}`),
    ...corrected.map((topic) => `corrected  ${topic}`),
    ...refused.map(({ topic, problem }) => `refused    ${topic} ${problem}`),
    ...tolerated.map(({ topic, problem }) => `differs    ${topic} ${problem}`),
  ]
  return [...(lines.length > 0 ? lines : ['All topics are as Sluice needs them.']), ...notes]
}

/**
 * Compares the topics with the table of the topics that Sluice needs, and returns the result in lines. Throws
 * if differences keep a role from starting. The error lists all these differences.
 */
export async function checkTopicTable(given: Config, log: Log): Promise<string[]> {
  const withSettings = given.topics.check !== 'off'
  const kafka = await openKafka(given, log, 'topics check')
  await refuseOtherLayout(kafka, given)
  const { config, notes } = await suitedToBrokers(kafka, given)
  const { faults } = await askKafka(config, checkTopics(kafka, topicLayout(config), { withSettings }))
  const { fatal, tolerated } = judgeFaults(config, faults)
  if (fatal.length > 0) throw new StartError(describeTopicFaults(fatal))
  if (tolerated.length > 0) return tolerated.map(({ topic, problem }) => `differs    ${topic} ${problem}`)
  return [
    withSettings
      ? 'All topics are as Sluice needs them.'
      : 'All topics exist. Their settings were not checked: topics.check is off.',
    ...notes,
  ]
}

/**
 * Returns the configuration by which the topics of this Kafka are judged. With one broker, as `sluice up`
 * starts it, a partition can't have more than one replica, so each topic would differ twice, and no command
 * could mend it.
 */
async function suitedToBrokers(
  kafka: ReturnType<typeof createKafka>,
  config: Config,
): Promise<{ config: Config; notes: readonly string[] }> {
  const layout = topicLayout(config)
  // With `warn`, the operator has said that this Kafka is another one than Sluice expects. Event Hubs has one
  // broker for its clients, and keeps replicas of its own.
  const isStrict = config.topics.check === 'strict' && layout.replication > 1
  if (!isStrict || !(await askKafka(config, hasOneReplica(kafka, layout)))) return { config, notes: [] }
  return {
    config: { ...config, topics: { ...config.topics, development: true } },
    notes: [
      'This Kafka has one broker, so one replica is all that a partition can have: for development. Workers and gateways need SLUICE_TOPICS_DEVELOPMENT=true here.',
    ],
  }
}

export function listTopicTable(config: Config): string[] {
  return topicTable(topicLayout(config)).map(
    ({ topic, partitions, replication, purpose }) =>
      `${topic.padEnd(24)} ${partitions} partitions × ${replication}  ${purpose}`,
  )
}

export function printTopicTable(config: Config, format: PrintFormat, strimziCluster: string): string[] {
  const { brokers } = config.kafka
  return printTopics(topicTable(topicLayout(config)), format, { brokers, strimziCluster })
}
