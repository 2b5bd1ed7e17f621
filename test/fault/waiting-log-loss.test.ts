import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { startProducer } from '../../src/kafka/produce/producer.ts'
import { createPartitionReader } from '../../src/kafka/read/partition-reader.ts'
import { type Owner, openOwner } from '../integration/waiting/queue-owner.ts'
import { otherProgram, randomPrefix } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { workerKafka } from '../support/worker-kafka.ts'

/** The queues of destinations, when an election loses records that were delivered. */

let folder = ''
let cluster: RunningKafka

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-kafka-'))
  cluster = await startKafka({ brokers: [], ways: ['java'], count: 3, dataDir: folder })
})

afterAll(async () => {
  await Promise.all((cluster.nodes ?? []).map((broker) => broker.kill('SIGKILL')))
  await cluster.stop()
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
})

function node(id: number): KafkaNode {
  const found = cluster.nodes?.find((one) => one.id === id)
  if (found === undefined) throw new Error(`there is no broker ${id}`)
  return found
}

async function createTopic(
  topic: string,
  replicas: number[],
  settings: Record<string, string>,
): Promise<void> {
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
  const replicaAssignment = [{ partition: 0, replicas }]
  await withAdmin(otherProgram(cluster.brokers), async (admin) => {
    await admin.createTopics({ waitForLeaders: false, topics: [{ topic, replicaAssignment, configEntries }] })
    await until('its leader serves it', async () => (await admin.fetchTopicOffsets(topic)).length === 1)
  })
}

async function append(owner: Owner, name: string, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, index) => owner.append('a', `${name}-${index}`)))
}

test('messages in the place of delivered ones that an election has lost are delivered, though the log has grown past these', async () => {
  const prefix = randomPrefix()
  const of = { topic: `${prefix}waiting`, marksTopic: `${prefix}waiting-marks` }
  const lossy = { 'min.insync.replicas': '1', 'unclean.leader.election.enable': 'true' }
  await createTopic(of.topic, [1, 2], lossy)
  await createTopic(of.marksTopic, [3], { 'cleanup.policy': 'compact', 'min.insync.replicas': '1' })
  const kafka = workerKafka({ brokers: cluster.brokers })
  const producer = await startProducer({ kafka, maxRecordBytes: 100_000, onStalled() {} })
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  try {
    const first = await openOwner({ reader, producer }, of)
    await append(first, 'both', 5)
    await node(2).kill('SIGKILL')
    // Broker 2 has none of these.
    await append(first, 'lost', 10)
    const code = first.owners.codeOf('a', 'fresh')
    await until('all are in the queue', () => first.queue.untakenOf(code) === 15)
    expect(await first.drain('a')).toHaveLength(15)
    await first.queue.flush()
    await node(1).kill('SIGKILL')
    await node(2).start()
    // The owner hasn't looked at the log since, and stops after the log has grown again.
    await append(first, 'new', 20)
    // It learns from an acknowledgement that the log has another record in this place.
    expect(first.truncatedAt[0]).toBe(5)
    await first.queue.close()
    // All was committed before the election, so the commit names an offset among the new messages.
    const second = await openOwner({ reader, producer }, of, { offset: 15 })
    expect(second.otherFrom).toEqual([5])
    const delivered = await second.drain('a')
    await second.queue.close()
    expect(delivered).toEqual(Array.from({ length: 20 }, (_, index) => `new-${index}`))
  } finally {
    await Promise.all([producer.stop(), reader.stop()])
  }
})
