import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/read.ts'
import type { Config } from '../../../src/config/schema.ts'
import { openKafka } from '../../../src/roles/start/ask-kafka.ts'
import { refuseWrongTopics } from '../../../src/roles/start/topic-layout.ts'
import { applyTopicTable, checkTopicTable } from '../../../src/roles/operations/topic-table.ts'
import { type CloudKafka, type Manners, startCloudKafka } from '../../support/cloud-kafka.ts'
import { randomPrefix } from '../../support/kafka.ts'
import { answer, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runSluice, startSluice, writeCatalog } from '../../support/worker-process.ts'

/**
 * Clusters that don't run Apache Kafka. Each stands for a broker behind a proxy. The proxy accepts and
 * reports the settings of topics as the documentation of the cluster says.
 */
const clouds: Record<string, { manners: Manners; lacks: string }> = {
  // The documentation says: "All other topic-level configuration properties are not configurable". The limit
  // of max.message.bytes is 8 MiB.
  'MSK Serverless': {
    manners: {
      takes: (name) =>
        /^(cleanup\.policy|max\.message\.bytes|message\.timestamp\.type|retention\..*)$/.test(name),
    },
    lacks: 'min.insync.replicas',
  },
  // Redpanda has no min.insync.replicas and no unclean election. It accepts such a setting, but doesn't
  // report it.
  Redpanda: {
    manners: {
      tells: (name, value) =>
        /^(min\.insync\.replicas|unclean\.leader\.election\.enable)$/.test(name) ? undefined : value,
    },
    lacks: 'unclean.leader.election.enable',
  },
  // Event Hubs has settings for retention, compaction and the kind of timestamps. Events have at most 1 MB.
  'Event Hubs': {
    manners: {
      takes: (name) =>
        /^(cleanup\.policy|retention\.ms|message\.timestamp\.type|min\.compaction\.lag\.ms|delete\.retention\.ms)$/.test(
          name,
        ),
      tells: (name, value) =>
        /^(cleanup\.policy|retention\.ms|message\.timestamp\.type|.*compaction.*|delete\.retention\.ms)$/.test(
          name,
        )
          ? value
          : undefined,
    },
    lacks: 'max.message.bytes',
  },
  // unclean.leader.election.enable is false, and the documentation says "Editable: No".
  'Confluent Cloud': {
    manners: { takes: (name) => name !== 'unclean.leader.election.enable' },
    lacks: 'unclean.leader.election.enable',
  },
}

let cloud: CloudKafka
const warned: object[] = []
const log = { warn: (fields: object) => void warned.push(fields), debug() {} }

beforeAll(async () => {
  cloud = await startCloudKafka()
})

afterAll(() => cloud.stop())

beforeEach(() => {
  cloud.manners = {}
  warned.length = 0
})

function configOf(check: Config['topics']['check'], prefix: string): Config {
  const read = readConfig({
    env: {
      SLUICE_KAFKA_BROKERS: cloud.address,
      SLUICE_KAFKA_TOPIC_PREFIX: prefix,
      SLUICE_TOPICS_CHECK: check,
      SLUICE_TOPICS_DEVELOPMENT: 'true',
      SLUICE_TOPICS_PARTITIONS: '2',
    },
  })
  if (!read.ok) throw new Error(read.message)
  return read.config
}

describe.each(Object.entries(clouds))('%s', (_, { manners, lacks }) => {
  test('is refused by the strict check, which names what it lacks', async () => {
    cloud.manners = manners
    const prefix = randomPrefix()
    await expect(applyTopicTable(configOf('strict', prefix), log)).rejects.toThrow(lacks)
  })

  test('is laid out and started on where the check only warns, which names what it lacks', async () => {
    cloud.manners = manners
    const config = configOf('warn', randomPrefix())
    const lines = await applyTopicTable(config, log)
    expect(lines.filter((line) => line.startsWith('created'))).toHaveLength(17)
    expect(lines.join('\n')).toMatch(new RegExp(`^(refused|differs).*${lacks}`, 'm'))
    await refuseWrongTopics(await openKafka(config, log, 'worker'), config, log)
    // Applies the table again, now that the topics exist.
    expect((await applyTopicTable(config, log)).join('\n')).not.toContain('created')
  })
})

test('a topic that is missing or has other partitions is refused whatever the check', async () => {
  const config = configOf('off', randomPrefix())
  await expect(checkTopicTable(config, log)).rejects.toThrow('does not exist')
  await applyTopicTable(config, log)
  const other = { ...config, topics: { ...config.topics, partitions: 5 } }
  await expect(checkTopicTable(other, log)).rejects.toThrow('has 2 partitions instead of 5')
})

test('a check that is off asks for no settings', async () => {
  const config = configOf('off', randomPrefix())
  cloud.manners = { tells: () => undefined }
  await applyTopicTable(config, log)
  const describeConfigs = 32
  const from = cloud.requests.length
  // Drops the client's warnings about topics that were just created.
  warned.length = 0
  expect(await checkTopicTable(config, log)).toEqual([expect.stringContaining('All topics exist')])
  await refuseWrongTopics(await openKafka(config, log, 'worker'), config, log)
  expect(cloud.requests.slice(from).filter(({ apiKey }) => apiKey === describeConfigs)).toEqual([])
  expect(warned).toEqual([])
})

test('what is written at once stays below the smallest limit that a topic tells', async () => {
  const config = configOf('warn', randomPrefix())
  await applyTopicTable(config, log)
  const kafka = await openKafka(config, log, 'worker')
  expect(await refuseWrongTopics(kafka, config, log)).toMatchObject({
    batchBytes: config.kafka.batchBytes,
    minInsync: 1,
  })
  cloud.manners = { tells: (name, value) => (name === 'max.message.bytes' ? '262144' : value) }
  expect(await refuseWrongTopics(kafka, config, log)).toMatchObject({
    batchBytes: 262_144 - 1_024,
    minInsync: 1,
  })
})

test('a worker delivers on a cluster that neither takes nor tells all, and says what is less than promised', async () => {
  cloud.manners = clouds['Event Hubs']?.manners ?? {}
  const receiver = await startReceiver({ '/hook': answer(200) })
  const catalog = writeCatalog({
    sources: [{ id: 'shop' }],
    destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: `${receiver.origin}/hook` }] }],
  })
  const variables = {
    SLUICE_KAFKA_BROKERS: cloud.address,
    SLUICE_KAFKA_TOPIC_PREFIX: randomPrefix(),
    SLUICE_TOPICS_CHECK: 'warn',
    SLUICE_TOPICS_PARTITIONS: '2',
    SLUICE_CATALOG_FILE: catalog.path,
  }
  await runSluice(['topics', 'apply'], variables)
  const worker = await startSluice(variables)
  try {
    await runSluice(
      ['send', '--source', 'shop', '{"type":"track","userId":"u1","event":"Bought"}'],
      variables,
    )
    await until('it is delivered', () => receiver.requests.length === 1)
    const problems = worker.log.filter(({ msg }) => msg.includes('topics.check is warn'))
    expect(problems.map(({ problem }) => String(problem)).join()).toContain('max.message.bytes=(unknown)')
  } finally {
    await worker.kill()
    await receiver.stop()
    catalog.remove()
  }
})

test.each([
  { what: 'too old', versions: [0, 2] as const, says: /too old \(it knows Produce up to 2, 3 is needed\)/ },
  { what: 'too new', versions: [9, 14] as const, says: /too new \(it knows Produce from 9 on/ },
])(
  'a broker that is $what ends the start, and the error names the versions that are supported',
  async (given) => {
    cloud.manners = { knows: (apiKey) => (apiKey === 0 ? given.versions : undefined) }
    const start = openKafka(configOf('strict', randomPrefix()), log, 'worker')
    await expect(start).rejects.toThrow(given.says)
    await expect(start).rejects.toThrow(/Apache Kafka \d\.\d to \d\.\d is supported/)
  },
)
