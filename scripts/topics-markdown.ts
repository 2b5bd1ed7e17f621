import { alignTable } from '../src/config/markdown.ts'
import { readConfig } from '../src/config/read.ts'
import type { KafkaRole } from '../src/topics/kafka-roles.ts'
import { type Topic, topicKeys, topics } from '../src/topics/topic-list.ts'
import { type TopicDefinition, topicTable } from '../src/topics/topics.ts'
import { topicLayout } from '../src/roles/start/settings.ts'

const introduction = `# Topics

Generated from \`src/topics/topic-list.ts\` by \`npm run generate\`, for the default settings and without the prefix (\`kafka.topicPrefix\`). This page is for those who run the Kafka cluster.

\`sluice topics apply\` creates the topics and corrects their settings. \`sluice up\`, which is for development, does the same. \`sluice topics grow\` creates
copies of some topics ([growing.md](growing.md)). No other role ever creates a topic. When a role starts, it compares the topics with this table
([kafka.md](kafka.md)). \`sluice up\` reads and writes the same topics as a worker and a gateway. [acls.md](acls.md) lists the rights of each role.

`

const heading = ['Topic', 'Holds', 'Key', 'Kept', 'Partitions', 'Read by', 'Written by']

/** Returns the text of `docs/topics.md`. */
export function topicsMarkdown(): string {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const table = topicTable({ ...topicLayout(read.config), hasCatalog: true })
  const rows = topicKeys.flatMap((key) => {
    const definition = table.find((one) => one.key === key)
    return definition === undefined ? [] : [rowOf(topics[key], definition)]
  })
  return `${introduction}${alignTable([heading, ...rows])}\n`
}

function rowOf(topic: Topic, { settings, partitions }: TopicDefinition): string[] {
  const { name, purpose, key, tiers, readers, writers, hasOnePartition } = topic
  return [
    tiers === true ? `\`${name}*\`` : `\`${name}\``,
    tiers === true ? `${purpose} the wait in its name` : purpose,
    key,
    keptOf(new Map(settings.map((setting) => [setting.name, setting.value]))),
    hasOnePartition === true ? '1' : `\`topics.partitions\` (${partitions})`,
    listOf(readers),
    listOf(writers),
  ]
}

function keptOf(settings: ReadonlyMap<string, string>): string {
  const forMs = settings.get('retention.ms')
  const isCompacted = settings.get('cleanup.policy')?.startsWith('compact') === true
  if (forMs !== undefined) return `${isCompacted ? 'the latest record of each key, for ' : ''}${days(forMs)}`
  const lag = settings.get('min.compaction.lag.ms') ?? '0'
  return lag === '0'
    ? 'the latest record of each key'
    : `the latest record of each key, and all records of the last ${days(lag)}`
}

function days(ms: string): string {
  const hours = Number(ms) / 3_600_000
  if (hours < 24) return hours === 1 ? '1 hour' : `${hours} hours`
  return hours === 24 ? '1 day' : `${hours / 24} days`
}

function listOf(roles: readonly KafkaRole[]): string {
  return roles
    .filter((role) => role !== 'up')
    .map((role) => `\`${role}\``)
    .join(', ')
}
