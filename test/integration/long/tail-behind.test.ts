import { type Kafka, Partitioners } from 'kafkajs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTopicTail } from '../../../src/kafka/read/topic-tail.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { type SingleBroker, startSingleBroker } from '../../support/single-broker.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { quietLog } from '../../support/emitted-lines.ts'

const topic = 'attempts'
let broker: SingleBroker
let kafka: Kafka

beforeAll(async () => {
  broker = await startSingleBroker({})
  kafka = workerKafka({ brokers: [broker.direct] })
  await withAdmin(kafka, (admin) => admin.createTopics({ topics: [{ topic, numPartitions: 2 }] }))
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic, messages: [{ value: 'a', partition: 0 }] })
  await producer.disconnect()
})

afterAll(() => broker.stop())

test('a tail that has read everything falls behind while no broker says where the log ends', async () => {
  let records = 0
  const tail = startTopicTail({
    kafka,
    topic,
    startOf: () => 'beginning',
    onStart: () => undefined,
    onRecords: (_partition, read) => void (records += read.length),
    log: quietLog,
  })
  await until('all is read', () => records === 1 && tail.behindMs === 0)
  await broker.stop()
  const stoppedMs = Date.now()
  await until('it is behind', () => tail.behindMs > 12_000, { timeoutMs: 30_000 })
  expect(tail.behindMs).toBeLessThan(Date.now() - stoppedMs + 3_000)
  await tail.stop()
})
