import { setTimeout as passTime } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { createPartitionReader } from '../../src/kafka/read/partition-reader.ts'
import { startProducer } from '../../src/kafka/produce/producer.ts'
import { randomPrefix } from '../support/kafka.ts'
import { workerKafka } from '../support/worker-kafka.ts'

const partitions = 12
const everyMs = 10
const atATime = 24
const topic = `${randomPrefix()}memberships`

let cluster: RunningKafka
let kafka: Kafka

beforeAll(async () => {
  cluster = await startKafka({ brokers: [], ways: ['java'], count: 3 })
  kafka = workerKafka({ brokers: cluster.brokers })
  const admin = kafka.admin()
  await admin.connect()
  const configEntries = [{ name: 'min.insync.replicas', value: '2' }]
  await admin.createTopics({
    topics: [{ topic, numPartitions: partitions, replicationFactor: 3, configEntries }],
  })
  await admin.disconnect()
})

afterAll(() => cluster.stop())

/** Returns the keys of all records of the topic, by `partition/offset`. */
async function everything(): Promise<Map<string, string>> {
  const reader = createPartitionReader(kafka)
  const found = new Map<string, string>()
  await Promise.all(
    Array.from({ length: partitions }, async (_, partition) => {
      for await (const batch of reader.read({ topic, partition, from: 0 })) {
        for (const { offset, key } of batch) found.set(`${partition}/${offset}`, String(key))
      }
    }),
  )
  await reader.stop()
  return found
}

test('while brokers are killed and come back, all that is acknowledged is there, at the offset that was given', async () => {
  const producer = await startProducer({ kafka, maxRecordBytes: 100_000, onStalled() {} })
  const given: Promise<{ text: string; place: string | undefined }>[] = []
  const ending = new AbortController()
  const producing = (async () => {
    while (!ending.signal.aborted) {
      for (let index = 0; index < atATime; index++) {
        const text = `text-${given.length}`
        const partition = given.length % partitions
        const record = { topic, partition, key: Buffer.from(text), value: Buffer.from('v'), headers: {} }
        given.push(
          index % 4 === 3
            ? producer.produce(record).then(() => ({ text, place: undefined }))
            : producer.produceAt(record).then((at) => ({
                text,
                place: at === 'refused' ? at : `${partition}/${at.offset}`,
              })),
        )
      }
      await passTime(everyMs)
    }
  })()
  for (const node of cluster.nodes ?? []) {
    await passTime(1_500)
    await node.kill('SIGKILL')
    await passTime(1_500)
    await node.start()
  }
  await passTime(1_500)
  ending.abort()
  await producing
  const written = await Promise.all(given)
  await producer.stop()

  const found = await everything()
  const texts = new Set(found.values())
  expect(written.filter(({ text }) => !texts.has(text)).map(({ text }) => text)).toEqual([])
  const wrong = written.filter(({ text, place }) => place !== undefined && found.get(place) !== text)
  expect(wrong).toEqual([])
  const repeats = found.size - texts.size
  process.stdout.write(
    `${written.length} records while three brokers were killed: ${repeats} were written twice\n`,
  )
})
