import type { Config } from '../config/schema.ts'
import type { KafkaSettings } from '../kafka/client.ts'
import type { TopicLayout } from '../kafka/topics.ts'
import { formatWait } from '../retry/duration.ts'
import { type Ladder, tiersOf } from '../retry/ladder.ts'
import { StartError } from './start-error.ts'

/** The configuration in the words of the parts that it is for. */

export function kafkaSettings({ kafka }: Config): KafkaSettings {
  if (kafka.brokers.length === 0) {
    throw new StartError(
      [
        'No Kafka brokers are configured.',
        'Set SLUICE_KAFKA_BROKERS=host:9092,… (or --kafka-brokers), or run `sluice up`, which starts one for development.',
      ].join('\n'),
    )
  }
  return kafka
}

/** The same for a process of a worker, and the name that no other has. */
export function memberKafka(
  config: Config,
  processNumber = 1,
): { settings: KafkaSettings; ownName?: string } {
  const settings = kafkaSettings(config)
  const { instanceId } = config.kafka
  if (instanceId === undefined) return { settings }
  const ownName = `${settings.clientId}-${instanceId}-${processNumber}`
  return { settings: { ...settings, clientId: ownName }, ownName }
}

export function ladderOf({ retry }: Config): Ladder {
  return { waitsMs: retry.ladderMs, thenMs: retry.thenMs, limitMs: retry.limitMs }
}

export function topicLayout(config: Config): TopicLayout {
  const { topics, kafka } = config
  return {
    prefix: kafka.topicPrefix,
    partitions: topics.partitions,
    replication: topics.development ? 1 : topics.replication,
    minInsync: topics.development ? 1 : topics.minInsync,
    tiers: tiersOf(ladderOf(config)).map(formatWait),
    maxMessageBytes: config.message.maxBytes,
  }
}

export type TopicNames = Record<
  | 'events'
  | 'audienceChanges'
  | 'deletions'
  | 'memberships'
  | 'retryPrefix'
  | 'replays'
  | 'deadLetters'
  | 'backfills',
  string
>

export function topicNames({ kafka }: Config): TopicNames {
  const { topicPrefix } = kafka
  return {
    events: `${topicPrefix}events`,
    audienceChanges: `${topicPrefix}audience-changes`,
    deletions: `${topicPrefix}deletions`,
    memberships: `${topicPrefix}memberships`,
    retryPrefix: `${topicPrefix}retry.`,
    replays: `${topicPrefix}replays`,
    deadLetters: `${topicPrefix}dead-letters`,
    backfills: `${topicPrefix}backfills`,
  }
}
