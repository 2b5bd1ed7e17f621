import { createRequire } from 'node:module'
import type { RecordMetadata, TopicMessages } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { Acknowledged, createNotingPartitioner } from '../../../src/kafka/acknowledged.ts'

const metadata = [0, 1].map((partitionId) => ({
  partitionErrorCode: 0,
  partitionId,
  leader: 1,
  replicas: [1],
  isr: [1],
}))

describe('what is acknowledged', () => {
  test('has the offsets of each partition’s records in the order in which they were sent', () => {
    const acknowledged = new Acknowledged([
      { topicName: 'a', partition: 0, errorCode: 0, baseOffset: '10' },
      { topicName: 'a', partition: 1, errorCode: 0, baseOffset: '0' },
      { topicName: 'b', partition: 0, errorCode: 0, baseOffset: '7' },
    ])
    const sent = [
      ['a', 0],
      ['b', 0],
      ['a', 1],
      ['a', 0],
      ['a', 0],
      ['a', 1],
    ] as const
    expect(sent.map(([topic, partition]) => acknowledged.next(topic, partition))).toEqual([
      10, 7, 0, 11, 12, 1,
    ])
  })

  test('is nothing of a partition that no answer names', () => {
    const acknowledged = new Acknowledged([{ topicName: 'a', partition: 0, errorCode: 0, baseOffset: '10' }])
    expect(acknowledged.next('a', 1)).toBeUndefined()
    expect(acknowledged.next('b', 0)).toBeUndefined()
    expect(acknowledged.next('a', undefined)).toBeUndefined()
  })

  test('can be found since the partitioner writes into a message where it goes', () => {
    const place = createNotingPartitioner()
    const named = { value: 'v', partition: 1 }
    const free = { key: 'foobar', value: 'v', partition: undefined }
    expect(place({ topic: 'a', partitionMetadata: metadata, message: named })).toBe(1)
    // @ts-expect-error -- as it is where a record names no partition
    const placed = place({ topic: 'a', partitionMetadata: metadata, message: free })
    expect(free.partition).toBe(placed)
    expect(named.partition).toBe(1)
  })
})

const nothing = () => undefined

function fail(error: Error): void {
  throw error
}

/** Sends as kafkajs' producer does, to two brokers; the first goes away at the first request, and the second leads all then. */
async function sendThroughChangeOfLeader(topicMessages: TopicMessages[]): Promise<RecordMetadata[]> {
  const require = createRequire(import.meta.url)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for it
  const createSendMessages = require('kafkajs/src/producer/sendMessages') as (
    parts: object,
  ) => (batch: object) => Promise<RecordMetadata[]>
  const leaders = [1, 2]
  type Request = { topicData: { topic: string; partitions: { partition: number }[] }[] }
  const answerTo = ({ topicData }: Request) => ({
    topics: topicData.map(({ topic, partitions }) => ({
      topicName: topic,
      partitions: partitions.map(({ partition }) => ({ partition, errorCode: 0, baseOffset: '0' })),
    })),
  })
  const brokers = [
    {
      nodeId: 1,
      async produce() {
        leaders[0] = 2
        throw Object.assign(new Error('closed'), { name: 'KafkaJSConnectionClosedError', retriable: true })
      },
    },
    { nodeId: 2, produce: async (request: Request) => answerTo(request) },
  ]
  const send = createSendMessages({
    logger: { debug: nothing, error: nothing },
    partitioner: createNotingPartitioner(),
    eosManager: {
      acquireBrokerLock: nothing,
      releaseBrokerLock: nothing,
      isTransactional: () => false,
      getSequence: nothing,
      updateSequence: nothing,
      getProducerId: nothing,
      getProducerEpoch: nothing,
    },
    retrier: (work: (bail: typeof fail) => Promise<unknown>) => work(fail).catch(() => work(fail)),
    cluster: {
      refreshMetadataIfNecessary: nothing,
      refreshMetadata: nothing,
      addMultipleTargetTopics: nothing,
      removeBroker: nothing,
      isConnected: () => true,
      findTopicPartitionMetadata: () => metadata,
      findLeaderForPartitions: (_topic: string, partitions: string[]) =>
        Object.groupBy(partitions.map(Number), (partition) => leaders[partition] ?? 0),
      findBroker: async ({ nodeId }: { nodeId: string }) => brokers[Number(nodeId) - 1],
    },
  })
  return send({ acks: -1, timeout: 1_000, topicMessages })
}

test('kafkajs resolves although it has not sent what the new leader of a partition should have got', async () => {
  const messages = [
    { value: 'lost', partition: 0 },
    { value: 'written', partition: 1 },
  ]
  const answers = await sendThroughChangeOfLeader([{ topic: 'a', messages }])
  const acknowledged = new Acknowledged(answers)
  expect(messages.map(({ partition }) => acknowledged.next('a', partition))).toEqual([undefined, 0])
})
