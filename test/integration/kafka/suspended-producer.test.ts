import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startProducer } from '../../../src/kafka/produce/producer.ts'
import { countRecords, createTopic, randomPrefix } from '../../support/kafka.ts'
import { standStill } from '../../support/stand-still.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

/** Longer than the time after which a partition that takes nothing counts as failing. */
const suspendedMs = 3_500
const lingerMs = 20

test('a write that Kafka has acknowledged while the process was suspended is no failure of its partition', async () => {
  const topic = `${randomPrefix()}retry.1m`
  await createTopic(topic)
  const told: string[] = []
  const producer = await startProducer({
    kafka: workerKafka(),
    maxRecordBytes: 10_000,
    onFailing: ({ reason }, isFailing) => told.push(`failing ${isFailing}: ${reason}`),
    onStalled: (isStalled) => told.push(`stalled ${isStalled}`),
  })
  onTestFinished(() => producer.stop())
  const record = { topic, partition: 0, key: null, value: Buffer.from('{}'), headers: {} }
  await producer.produce(record)

  const times = 3
  for (let time = 0; time < times; time++) {
    const taken = producer.produce(record)
    const askedMs = performance.now()
    // The request is written when the timer of the linger has fired.
    while (performance.now() - askedMs < lingerMs + 0.5) await turn()
    standStill(suspendedMs)
    await taken
  }
  expect(told).toEqual([])
  expect(await countRecords(topic)).toBe(times + 1)
})
