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

/** Which process of a worker, from 1, and how many it has. */
export type ProcessOf = { number: number; count: number }

const onlyProcess: ProcessOf = { number: 1, count: 1 }

/**
 * The same for a process of a worker, where there is an instance id with a client id of its own. The first one has also been those
 * for which there is no process any more.
 */
export function memberKafka(
  config: Config,
  { number, count } = onlyProcess,
): { settings: KafkaSettings; isOwnName?: (clientId: string) => boolean } {
  const settings = kafkaSettings(config)
  const { instanceId } = config.kafka
  if (instanceId === undefined) return { settings }
  const prefix = `${settings.clientId}-${instanceId}-`
  return {
    settings: { ...settings, clientId: `${prefix}${number}` },
    isOwnName(clientId) {
      const suffix = clientId.startsWith(prefix) ? clientId.slice(prefix.length) : ''
      if (!/^[1-9]\d*$/.test(suffix)) return false
      return Number(suffix) === number || (number === 1 && Number(suffix) > count)
    },
  }
}

export function ladderOf({ retry }: Config): Ladder {
  return { waitsMs: retry.ladderMs, thenMs: retry.thenMs, limitMs: retry.limitMs }
}

/** What a pipeline is told of the configuration, but for what depends on this machine. */
export function pipelineSettings(config: Config) {
  const { delivery, breaker, message } = config
  return {
    ladder: ladderOf(config),
    topics: topicNames(config),
    limits: message,
    maxInFlight: delivery.maxInFlight,
    laneWaitMs: delivery.laneWaitMs,
    lanePatienceMs: delivery.lanePatienceMs,
    breaker: {
      failureShare: breaker.failurePercent / 100,
      minResults: breaker.minResults,
      windowMs: breaker.windowMs,
      openMs: breaker.openForMs,
      maxOpenMs: breaker.maxOpenForMs,
    },
    buffer: { records: delivery.bufferRecords, bytes: delivery.bufferBytes },
  }
}

export function topicLayout(config: Config): TopicLayout {
  const { topics, kafka } = config
  return {
    prefix: kafka.topicPrefix,
    partitions: topics.partitions,
    replication: topics.development ? 1 : topics.replication,
    minInsync: topics.development ? 1 : topics.minInsync,
    retryLimitMs: config.retry.limitMs,
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
