import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { printTopics } from '../../../src/topics/topic-print.ts'
import { type TopicDefinition, topicTable } from '../../../src/topics/topics.ts'

const table = topicTable({
  prefix: 'Team_A.',
  partitions: 12,
  generation: 1,
  replication: 3,
  minInsync: 2,
  retryLimitMs: 14_400_000,
  tiers: ['1m', '1h'],
  maxMessageBytes: 1_048_576,
  attemptsKeptMs: 7 * 86_400_000,
})
const options = { brokers: ['kafka:9092'], strimziCluster: 'main' }

/** Returns a topic as a plain object, so that the formats can be compared with the table. */
function plain({ topic, partitions, replication, settings }: TopicDefinition) {
  const config = Object.fromEntries(settings.map(({ name, value }) => [name, value]))
  return { topic, partitions, replication, config }
}

test('as commands of kafka-topics, each names all that the table has', () => {
  const commands = printTopics(table, 'kafka-topics', options).join('\n').replaceAll('\\\n', '').split('\n')
  const read = commands.map((command) => {
    const words = command.split(/\s+/)
    const flag = (name: string): string => words[words.indexOf(name) + 1] ?? ''
    const pairs = words.flatMap((word, at) => (words[at - 1] === '--config' ? [word.split('=', 2)] : []))
    return {
      topic: flag('--topic'),
      partitions: Number(flag('--partitions')),
      replication: Number(flag('--replication-factor')),
      config: Object.fromEntries(pairs) as unknown,
    }
  })
  expect(read).toEqual(table.map(plain))
  expect(commands.every((command) => command.includes('--bootstrap-server kafka:9092 --create'))).toBe(true)
})

test('as resources of Strimzi, each has a name that Kubernetes takes, its cluster, and all that the table has', () => {
  const documents = parseAllDocuments(printTopics(table, 'strimzi', options).join('\n'))
  const resources = documents.map((document) => Object(document.toJS()))
  const read = resources.map(({ spec }) => ({
    topic: spec.topicName,
    partitions: spec.partitions,
    replication: spec.replicas,
    config: Object.fromEntries(Object.entries(spec.config).map(([name, value]) => [name, String(value)])),
  }))
  expect(read).toEqual(table.map(plain))
  for (const { kind, metadata } of resources) {
    expect(kind).toBe('KafkaTopic')
    expect(metadata.name).toMatch(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/)
    expect(metadata.labels).toEqual({ 'strimzi.io/cluster': 'main' })
  }
})

test('as resources of Terraform, each has a name that Terraform takes, and all that the table has', () => {
  const blocks = printTopics(table, 'terraform', options).join('\n').split('\n\n').filter(Boolean)
  const read = blocks.map((block) => {
    const value = (name: string): string =>
      new RegExp(`^  ${name} += "?([^"\\n]+)`, 'm').exec(block)?.[1] ?? ''
    const pairs = [...block.matchAll(/^ {4}"([^"]+)" += "([^"]+)"$/gm)].map(([, name, text]) => [name, text])
    expect(block).toMatch(/^resource "kafka_topic" "[A-Za-z_][A-Za-z0-9_-]*" \{\n/)
    return {
      topic: value('name'),
      partitions: Number(value('partitions')),
      replication: Number(value('replication_factor')),
      config: Object.fromEntries(pairs) as unknown,
    }
  })
  expect(read).toEqual(table.map(plain))
})
