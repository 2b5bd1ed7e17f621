import type { AutoPauseTerms } from '../../catalog/auto-pause.ts'
import type { Config } from '../../config/schema.ts'
import type { KafkaSettings } from '../../kafka/login/kafka-settings.ts'
import { type TopicLayout, type TopicNames, topicNames as namesOf } from '../../topics/topics.ts'
import { formatWait } from '../../retry/duration.ts'
import { type Ladder, tiersOf } from '../../retry/ladder.ts'
import { StartError } from './start-error.ts'

/** Returns the settings of Kafka's client. Throws when no brokers are configured. */
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

/** The number of a worker's process, counted from 1, and the count of the worker's processes. */
export type ProcessOf = { number: number; count: number }

const onlyProcess: ProcessOf = { number: 1, count: 1 }

/**
 * Returns the static membership of a worker's process, if an instance id is set. The first process also
 * recognizes the instance ids of former processes, whose numbers are higher than the present count of
 * processes.
 */
export function staticMember(
  { kafka: { instanceId, leaveOnStop } }: Config,
  { number, count } = onlyProcess,
): { instanceId?: string; leaveOnStop?: boolean; isFormerProcess?: (instanceId: string) => boolean } {
  if (instanceId === undefined) return {}
  const prefix = `${instanceId}-`
  const own = { instanceId: `${prefix}${number}`, leaveOnStop }
  if (number > 1) return own
  return {
    ...own,
    isFormerProcess(other) {
      const suffix = other.startsWith(prefix) ? other.slice(prefix.length) : ''
      return /^[1-9]\d*$/.test(suffix) && Number(suffix) > count
    },
  }
}

export function ladderOf({ retry }: Config): Ladder {
  return { waitsMs: retry.ladderMs, thenMs: retry.thenMs, limitMs: retry.limitMs }
}

export function autoPauseTermsOf({ notices, delivery }: Config): AutoPauseTerms {
  const { autoPauseMs, source } = notices
  return { autoPauseMs, noticesSource: source, stopsOnGone: delivery.stopOnGone }
}

/** Returns the settings of a pipeline, except the settings that depend on this machine. */
export function pipelineSettings(config: Config) {
  const { delivery, breaker, message, notices } = config
  return {
    whileAutoPaused: notices.whileAutoPaused,
    ladder: ladderOf(config),
    topics: topicNames(config),
    limits: message,
    maxInFlight: delivery.maxInFlight,
    laneWaitMs: delivery.laneWaitMs,
    lanePatienceMs: delivery.lanePatienceMs,
    loginWaitMs: delivery.loginWaitMs,
    breaker: {
      failureShare: breaker.failurePercent / 100,
      minResults: breaker.minResults,
      windowMs: breaker.windowMs,
      openMs: breaker.openForMs,
      maxOpenMs: breaker.maxOpenForMs,
    },
    namesRequests: delivery.namesRequests,
    buffer: { records: delivery.bufferRecords, bytes: delivery.bufferBytes },
  }
}

export function topicLayout(config: Config): TopicLayout {
  const { topics, kafka } = config
  return {
    prefix: kafka.topicPrefix,
    partitions: topics.partitions,
    generation: topics.generation,
    replication: topics.development ? 1 : topics.replication,
    minInsync: topics.development ? 1 : topics.minInsync,
    retryLimitMs: config.retry.limitMs,
    tiers: tiersOf(ladderOf(config)).map(formatWait),
    maxMessageBytes: config.message.maxBytes,
    attemptsKeptMs: config.attempts.retentionMs,
    hasCatalog: config.catalog.source === 'topic',
    historyKeptMs: config.catalog.historyRetentionMs,
  }
}

/** Returns the names of the topics in the configured layout, or in the layout that is given. */
export function topicNames(
  { kafka, topics }: Config,
  { generation }: { readonly generation: number } = topics,
): TopicNames {
  return namesOf({ prefix: kafka.topicPrefix, generation })
}

/**
 * The longest interval between two looks at the hooks and at the topic `notices`, in milliseconds. If
 * `notices.failingAfter` is short, the interval is shorter, because `looksToFail` looks have to fit into that
 * time.
 */
const mostEveryMs = 15_000

const looksToFail = 6

/** Time between two readings of what each worker has to know soon in the topic `notices`, in milliseconds. */
export const noticesReadEveryMs = 1_000

/** Returns the time between two looks at the hooks and at the topic `notices`, in milliseconds. */
export function lookEveryMs({ notices }: Config): number {
  return Math.min(mostEveryMs, notices.failingAfterMs / looksToFail)
}
