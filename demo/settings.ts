import { ladder } from './script.ts'
import type { Settings } from './sluice.ts'

/** The loopback addresses. By default a worker refuses to deliver to them. */
export const loopback = '127.0.0.0/8'

const partitions = 6

/** Returns the settings of every Sluice process in the demo. All other settings have their defaults. */
export function sluiceSettings(options: {
  brokers: readonly string[]
  topicPrefix: string
  groupId: string
  keysFile: string
  tokensFile: string
  stateFolder: string
  indexFolder: string
}): Settings {
  return {
    SLUICE_KAFKA_BROKERS: options.brokers.join(','),
    SLUICE_KAFKA_TOPIC_PREFIX: options.topicPrefix,
    SLUICE_KAFKA_GROUP_ID: options.groupId,
    SLUICE_TOPICS_DEVELOPMENT: 'true',
    SLUICE_TOPICS_PARTITIONS: String(partitions),
    // The log of a single process is easy to follow.
    SLUICE_WORKER_PROCESSES: '1',
    // Destinations are changed by the admin API while everything runs.
    SLUICE_CATALOG_SOURCE: 'topic',
    SLUICE_CATALOG_KEYS_FILE: options.keysFile,
    SLUICE_ADMIN_TOKENS_FILE: options.tokensFile,
    SLUICE_ADMIN_HOST: '127.0.0.1',
    SLUICE_ADMIN_PORT: '0',
    SLUICE_STATE_FOLDER: options.stateFolder,
    SLUICE_INDEX_FOLDER: options.indexFolder,
    SLUICE_INDEX_PORT: '0',
    SLUICE_RETRY_LADDER: ladder.waits.map((seconds) => `${seconds}s`).join(','),
    SLUICE_RETRY_THEN: `${ladder.last}s`,
    SLUICE_RETRY_LIMIT: `${ladder.limit}s`,
    // The ladder is shorter than by default, so a breaker must probe sooner.
    SLUICE_BREAKER_OPEN_FOR: '2s',
    SLUICE_BREAKER_MAX_OPEN_FOR: '4s',
    SLUICE_DELIVERY_ALLOW_ADDRESSES: loopback,
    SLUICE_HTTP_HOST: '127.0.0.1',
    SLUICE_HTTP_PORT: '0',
    SLUICE_GATEWAY_HOST: '127.0.0.1',
    SLUICE_GATEWAY_PORT: '0',
    SLUICE_GATEWAY_SHUTDOWN_DELAY: '0s',
    SLUICE_METRICS_PER_DESTINATION: 'true',
  }
}
