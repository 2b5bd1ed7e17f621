import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { type CopyProducer, startCopyProducer } from '../../../src/kafka/produce/copy-writer.ts'
import { createPartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import type { WholeRecord } from '../../../src/message/records.ts'
import { createTopic, randomPrefix } from '../../support/kafka.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

const kafka = workerKafka()
let topic = ''

beforeEach(async () => {
  topic = `${randomPrefix()}copy`
  const settings = { 'max.message.bytes': '20000', 'message.timestamp.type': 'CreateTime' }
  await createTopic(topic, { partitions: 2, settings })
})

async function start(): Promise<CopyProducer> {
  const producer = await startCopyProducer(kafka, { batchBytes: 15_000 })
  onTestFinished(() => producer.stop())
  return producer
}

async function readPartition(partition: number): Promise<WholeRecord[]> {
  const reader = createPartitionReader(kafka)
  onTestFinished(() => reader.stop())
  const all: WholeRecord[] = []
  for await (const records of reader.readWhole({ topic, partition, from: 0 })) all.push(...records)
  return all
}

const timeOf = (nth: number): number => 1_700_000_000_000 + (nth % 7) * 86_400_000

function record(text: string) {
  return { partition: 1, key: null, value: Buffer.from(text), headers: {} }
}

test('copies are in the order of the calls, with their times and all their headers', async () => {
  const producer = await start()
  const writer = producer.to(topic)
  const headers = { none: null, some: [Buffer.from('a'), null], text: 'é' }
  for (let nth = 0; nth < 3_000; nth++)
    await writer.write({
      partition: nth % 2,
      key: Buffer.from(`key-${nth}`),
      value: nth % 5 === 0 ? null : Buffer.from(`value-${nth}`),
      headers,
      timestampMs: timeOf(nth),
    })
  await writer.flush()
  for (const partition of [0, 1]) {
    const read = (await readPartition(partition)).map(({ key, timestampMs }) => [String(key), timestampMs])
    const expected = Array.from({ length: 1_500 }, (_, index) => 2 * index + partition)
    expect(read).toEqual(expected.map((nth) => [`key-${nth}`, timeOf(nth)]))
  }
  const [first] = await readPartition(0)
  expect(first).toMatchObject({
    value: null,
    headers: { none: null, some: [Buffer.from('a'), null], text: Buffer.from('é') },
  })
})

test('a record that its topic does not accept ends the copy, which says so; the others are written', async () => {
  const producer = await start()
  const writer = producer.to(topic)
  for (const text of ['before', 'x'.repeat(30_000), 'after']) await writer.write(record(text))
  await expect(writer.flush()).rejects.toThrow(`${topic}/1 does not accept a record`)
  expect((await readPartition(1)).map(({ value }) => String(value))).toEqual(['before', 'after'])
})
