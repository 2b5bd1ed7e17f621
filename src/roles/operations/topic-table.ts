import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { applyTopics } from '../../topics/topic-apply.ts'
import { checkTopics } from '../../topics/topic-check.ts'
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
export async function applyTopicTable(config: Config, log: Log): Promise<string[]> {
  const { check } = config.topics
  const kafka = await openKafka(config, log, 'topics apply')
  await refuseOtherLayout(kafka, config)
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
  return lines.length > 0 ? lines : ['All topics are as Sluice needs them.']
}

/**
 * Compares the topics with the table of the topics that Sluice needs, and returns the result in lines. Throws
 * if differences keep a role from starting. The error lists all these differences.
 */
export async function checkTopicTable(config: Config, log: Log): Promise<string[]> {
  const withSettings = config.topics.check !== 'off'
  const kafka = await openKafka(config, log, 'topics check')
  await refuseOtherLayout(kafka, config)
  const { faults } = await askKafka(config, checkTopics(kafka, topicLayout(config), { withSettings }))
  const { fatal, tolerated } = judgeFaults(config, faults)
  if (fatal.length > 0) throw new StartError(describeTopicFaults(fatal))
  if (tolerated.length > 0) return tolerated.map(({ topic, problem }) => `differs    ${topic} ${problem}`)
  return [
    withSettings
      ? 'All topics are as Sluice needs them.'
      : 'All topics exist. Their settings were not checked: topics.check is off.',
  ]
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
