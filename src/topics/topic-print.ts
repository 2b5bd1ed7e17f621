import type { TopicDefinition } from './topics.ts'
import type { TopicSetting } from './topic-settings.ts'

export const printFormats = ['kafka-topics', 'strimzi', 'terraform'] as const
export type PrintFormat = (typeof printFormats)[number]

/** Returns the topics as lines of text for the tool with which somebody else creates topics. */
export function printTopics(
  table: readonly TopicDefinition[],
  format: PrintFormat,
  { brokers, strimziCluster }: { brokers: readonly string[]; strimziCluster: string },
): string[] {
  switch (format) {
    case 'kafka-topics':
      return table.flatMap((definition) => commandOf(definition, brokers))
    case 'strimzi':
      return table.flatMap((definition) => strimziOf(definition, strimziCluster))
    case 'terraform':
      return table.flatMap(terraformOf)
  }
}

function commandOf(
  { topic, partitions, replication, settings }: TopicDefinition,
  brokers: readonly string[],
): string[] {
  const server = brokers.length > 0 ? brokers.join(',') : 'HOST:PORT'
  return [
    `kafka-topics.sh --bootstrap-server ${server} --create --if-not-exists --topic ${topic} \\`,
    `  --partitions ${partitions} --replication-factor ${replication} \\`,
    ...settings.map(({ name, value }, index) => {
      const end = index === settings.length - 1 ? '' : ' \\'
      return `  --config ${name}=${value}${end}`
    }),
  ]
}

/** Returns a topic for Strimzi 0.49 or later. Earlier releases of Strimzi need the version `v1beta2`. */
function strimziOf({ topic, partitions, replication, settings }: TopicDefinition, cluster: string): string[] {
  return [
    '---',
    'apiVersion: kafka.strimzi.io/v1',
    'kind: KafkaTopic',
    'metadata:',
    `  name: ${resourceName(topic)}`,
    '  labels:',
    `    strimzi.io/cluster: ${cluster}`,
    'spec:',
    `  topicName: ${topic}`,
    `  partitions: ${partitions}`,
    `  replicas: ${replication}`,
    '  config:',
    ...settings.map(({ name, value }) => `    ${name}: ${yamlOf(value)}`),
  ]
}

/**
 * Returns a name that Kubernetes allows, in lower case and without underscores. Topics whose names differ
 * only in case, or in characters that are replaced here, get the same name.
 */
function resourceName(topic: string): string {
  return topic
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]/g, '-')
    .replaceAll(/^[.-]+|[.-]+$/g, '')
}

function yamlOf(value: TopicSetting['value']): string {
  return /^(-?\d+|true|false)$/.test(value) ? value : JSON.stringify(value)
}

/** Returns a topic for the provider Mongey/kafka. */
function terraformOf({ topic, partitions, replication, settings }: TopicDefinition): string[] {
  const widest = Math.max(...settings.map(({ name }) => name.length)) + 2
  return [
    `resource "kafka_topic" "${topic.replaceAll(/[^A-Za-z0-9_-]/g, '_').replace(/^(?=[\d-])/, '_')}" {`,
    `  name               = "${topic}"`,
    `  partitions         = ${partitions}`,
    `  replication_factor = ${replication}`,
    '  config = {',
    ...settings.map(({ name, value }) => `    ${`"${name}"`.padEnd(widest)} = "${value}"`),
    '  }',
    '}',
    '',
  ]
}
