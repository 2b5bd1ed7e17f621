import kafkajs, { type Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { lookAtBroker } from '../../../src/topics/broker-look.ts'

const nothing = (): Promise<void> => Promise.resolve()

test('a broker that accepts a connection and then hangs is not taken for one that is too old', async () => {
  const cluster = {
    connectionPoolBuilder: { build: () => Promise.reject(new Error('the script connects to nothing')) },
    connect: nothing,
    brokerPool: { findConnectedBroker: async () => ({ versions: null }) },
  }
  const kafka = {
    consumer({ partitionAssigners }: { partitionAssigners: ((given: object) => void)[] }) {
      for (const create of partitionAssigners) create({ cluster })
      return { disconnect: nothing }
    },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the look uses no other members
  const looked = lookAtBroker(kafka as unknown as Kafka, {
    topics: [],
    groupId: undefined,
    hasInstanceId: false,
  })
  await expect(looked).rejects.toBeInstanceOf(kafkajs.KafkaJSConnectionError)
})
