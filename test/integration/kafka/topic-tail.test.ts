import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startTopicTail } from '../../../src/kafka/topic-tail.ts'
import { createTopic, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

function openConnections(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
}

test('a tail that is stopped at any moment of its start leaves no connection open', async () => {
  const topic = `${randomPrefix()}attempts`
  await createTopic(topic, { partitions: 4 })
  const before = openConnections()
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  for (const afterMs of [0, 2, 4, 8, 12, 16, 20, 30, 50]) {
    const tail = startTopicTail({
      kafka: workerKafka(),
      topic,
      startOf: () => 'end',
      onStart: () => undefined,
      onRecords: () => undefined,
      log,
    })
    await delay(afterMs)
    await tail.stop()
  }
  await until('all connections are closed', () => openConnections() <= before)
  await delay(500)
  expect(openConnections()).toBeLessThanOrEqual(before)
})
