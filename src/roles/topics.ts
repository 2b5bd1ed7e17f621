import type { Config } from '../config/schema.ts'
import type { createKafka } from '../kafka/client.ts'
import { applyTopics, checkTopics, topicTable } from '../kafka/topics.ts'
import { askKafka, openKafka } from './ask-kafka.ts'
import { topicLayout } from './settings.ts'
import { StartError } from './start-error.ts'
import { describeTopicFaults } from './worker.ts'

type Log = Parameters<typeof createKafka>[1]

/** Makes the topics as they must be, and says what was done. Throws when something can't be corrected. */
export async function applyTopicTable(config: Config, log: Log): Promise<string[]> {
  const { created, corrected, faults } = await askKafka(
    config,
    applyTopics(await openKafka(config, log), topicLayout(config)),
  )
  if (faults.length > 0) throw new StartError(describeTopicFaults(faults))
  const lines = [
    ...created.map((topic) => `created    ${topic}`),
    ...corrected.map((topic) => `corrected  ${topic}`),
  ]
  return lines.length > 0 ? lines : ['All topics are as they must be.']
}

/** Compares; throws with every difference. */
export async function checkTopicTable(config: Config, log: Log): Promise<string[]> {
  const faults = await askKafka(config, checkTopics(await openKafka(config, log), topicLayout(config)))
  if (faults.length > 0) throw new StartError(describeTopicFaults(faults))
  return ['All topics are as they must be.']
}

/** The table as text. */
export function listTopicTable(config: Config): string[] {
  return topicTable(topicLayout(config)).map(
    ({ topic, partitions, replication, purpose }) =>
      `${topic.padEnd(24)} ${partitions} partitions × ${replication}  ${purpose}`,
  )
}
