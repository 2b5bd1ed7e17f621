import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { checkTopics, type TopicFault } from '../../topics/topic-check.ts'
import { maxRetryRecordBytes } from '../../topics/topic-list.ts'
import { optionalTopics } from '../../topics/topics.ts'
import { askKafka } from './ask-kafka.ts'
import { topicLayout, topicNames } from './settings.ts'
import { StartError } from './start-error.ts'

/** The limits that a role knows once the topics were checked. */
export type LaidOut = {
  /**
   * The most bytes of one batch for a partition. This is the lower one of the configured limit and the limit
   * of the topics.
   */
  readonly batchBytes: number
  /**
   * The size of the largest record that is sent to the brokers, in bytes. It follows from `message.maxBytes`,
   * or from the largest topic if that takes more. After `message.maxBytes` was lowered, a topic still takes
   * larger records, and larger messages may still wait in the retry topics.
   */
  readonly maxRecordBytes: number
  /** A partition takes no records while it has fewer in-sync replicas than this number. */
  readonly minInsync: number
}

/** The bytes that a batch and its request take in addition to the records. */
const batchOverheadBytes = 1_024

/**
 * Throws if the topics have faults that keep a role from starting. The setting `topics.check` decides which
 * faults these are. With `warn`, wrong settings of topics are only logged. `topics` are the topics that the
 * role uses. Default: all topics.
 */
export async function refuseWrongTopics(
  kafka: ReturnType<typeof createKafka>,
  config: Config,
  log: Pick<Logger, 'warn'>,
  topics?: readonly string[],
): Promise<LaidOut> {
  const { faults, maxMessageBytes } = await askKafka(
    config,
    checkTopics(kafka, topicLayout(config), {
      withSettings: config.topics.check !== 'off',
      ...(topics !== undefined && { isWanted: (topic: string) => topics.includes(topic) }),
    }),
  )
  const optional = optionalTopics(topicLayout(config))
  const { fatal, tolerated } = judgeFaults(
    config,
    faults.filter(({ topic }) => !optional.has(topic)),
  )
  if (fatal.length > 0) throw new StartError(describeTopicFaults(fatal))
  for (const { topic, problem } of tolerated)
    log.warn(
      { topic, problem },
      'the topic differs from what Sluice needs; going on, since topics.check is warn',
    )
  // If the topic `notices` is missing, this isn't logged here. The code of the notices logs it if notices are
  // wanted.
  for (const { topic, problem } of config.attempts.enabled ? faults : [])
    if (topic === topicNames(config).attempts)
      log.warn({ topic, problem }, 'the delivery log needs this topic: run sluice topics apply')
  const needed = [...maxMessageBytes].filter(([topic]) => !optional.has(topic)).map(([, bytes]) => bytes)
  const most = Math.min(...needed) - batchOverheadBytes
  return {
    batchBytes: Math.min(config.kafka.batchBytes, Math.max(most, batchOverheadBytes)),
    maxRecordBytes: Math.max(maxRetryRecordBytes(config.message.maxBytes), ...needed),
    minInsync: topicLayout(config).minInsync,
  }
}

/** Splits faults into the faults that keep a role from starting and all other faults. */
export function judgeFaults(
  { topics }: Config,
  faults: readonly TopicFault[],
): { fatal: readonly TopicFault[]; tolerated: readonly TopicFault[] } {
  if (topics.check === 'strict') return { fatal: faults, tolerated: [] }
  return {
    fatal: faults.filter(({ kind }) => kind === 'structure'),
    tolerated: faults.filter(({ kind }) => kind === 'setting'),
  }
}

/** Returns a text that lists the differences and says which command to run. */
export function describeTopicFaults(faults: readonly Pick<TopicFault, 'topic' | 'problem'>[]): string {
  const lines = faults.map(({ topic, problem }) => `  ${topic} ${problem}`)
  const advice = [
    '`sluice topics apply` creates what is missing and corrects settings; `sluice topics print` writes them down for others who may.',
    'Partitions and replicas can not be changed in place (`sluice topics grow` goes to more): set SLUICE_TOPICS_PARTITIONS and SLUICE_TOPICS_REPLICATION',
    'to what the cluster has (SLUICE_TOPICS_DEVELOPMENT=true for a single broker), or choose a new SLUICE_KAFKA_TOPIC_PREFIX.',
    'A cluster that does not tell or take a setting: SLUICE_TOPICS_CHECK=warn (docs/kafka.md says what is lost).',
  ]
  return ['The topics differ from what Sluice needs:', ...lines, ...advice].join('\n')
}
