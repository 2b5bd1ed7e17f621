import kafkajs from 'kafkajs'
import { isProtocolError } from '../kafka/wire/errors.ts'
import type { ConfigReader } from '../kafka/cluster/partwise-cluster.ts'

/** A topic's settings by name, as the cluster reports them. Empty if the cluster reports no settings. */
export type ReportedSettings = ReadonlyMap<string, { readonly value: string; readonly isDefault: boolean }>

const topicConfigSource: unknown = 1

/**
 * Reads the settings of one topic. Returns the error as text if this user may not read the settings, or if
 * the cluster doesn't report settings.
 */
export async function readSettings(reader: ConfigReader, topic: string): Promise<ReportedSettings | string> {
  try {
    const { resources } = await reader.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }],
    })
    const entries = resources[0]?.configEntries ?? []
    return new Map(
      entries.map((entry) => [
        entry.configName,
        // The source 1 is the topic's own configuration. All other sources are defaults of the cluster.
        { value: entry.configValue, isDefault: entry.configSource !== topicConfigSource },
      ]),
    )
  } catch (error) {
    if (!isProtocolError(error, unreported)) throw error
    return error instanceof Error ? error.message : String(error)
  }
}

/**
 * Returns why a topic that has to keep the last record of each key may lose some. Returns `undefined` if it
 * keeps them, or if the cluster doesn't tell.
 */
export async function compactionProblem(reader: ConfigReader, topic: string): Promise<string | undefined> {
  const reported = await readSettings(reader, topic)
  const policy = typeof reported === 'string' ? undefined : reported.get('cleanup.policy')?.value
  if (policy === undefined || sorted(policy) === 'compact') return undefined
  return `${topic} has cleanup.policy=${policy} instead of compact, so Kafka deletes records that nothing has replaced`
}

const unreported: ReadonlySet<string> = new Set([
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'UNSUPPORTED_VERSION',
  'INVALID_REQUEST',
])

export function satisfies({ value, rule }: TopicSetting, actual: string | undefined): boolean {
  if (actual === undefined) return false
  if (rule === 'equal') return sorted(actual) === sorted(value)
  return Number(actual) === -1 || Number(actual) >= Number(value)
}

/** Sorts the items of a list, such as `compact,delete`, because Kafka keeps their order but ignores it. */
function sorted(value: string): string {
  return value
    .split(',')
    .map((item) => item.trim())
    .sort()
    .join(',')
}

export type TopicSetting = {
  name: string
  value: string
  /**
   * The way in which the cluster's value is compared with `value`. With `atLeast`, the cluster's value may be
   * higher, or -1, which means no limit.
   */
  rule: 'equal' | 'atLeast'
}
