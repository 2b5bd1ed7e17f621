import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startTopicTail } from '../../../src/kafka/read/topic-tail.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { createTopic, otherProgram, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { quietLog } from '../../support/emitted-lines.ts'

const log = quietLog

function openConnections(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
}

test('a tail that is stopped at any moment of its start leaves no connection open', async () => {
  const topic = `${randomPrefix()}attempts`
  await createTopic(topic, { partitions: 4 })
  const before = openConnections()
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

test('partitions that a topic has no more after it was made anew are no trouble, and hold up no other', async () => {
  const topic = `${randomPrefix()}attempts`
  await createTopic(topic, { partitions: 3 })
  const received: string[] = []
  const tail = startTopicTail({
    kafka: workerKafka(),
    topic,
    startOf: () => 'beginning',
    onStart: () => undefined,
    onRecords: (partition, records) =>
      received.push(...records.map(({ value }) => `${partition} ${String(value)}`)),
    log,
  })
  onTestFinished(() => tail.stop())
  await until('all partitions are read', () => tail.behindMs === 0)
  await produce(topic, [{ partition: 2, value: 'before' }])
  await until('the record has come', () => received.length === 1)
  await withAdmin(otherProgram(), (admin) => admin.deleteTopics({ topics: [topic] }))
  await until('the topic is missed', () => tail.trouble !== undefined)
  await createTopic(topic, { partitions: 1 })
  await produce(topic, [{ partition: 0, value: 'after' }])
  await until('the record of the new topic has come', () => received.includes('0 after'))
  await until('there is no trouble', () => tail.trouble === undefined && tail.behindMs === 0)
  expect(received).toEqual(['2 before', '0 after'])
})

test('a tail that gathers for 20 seconds reads without a pause what is there already', async () => {
  const topic = `${randomPrefix()}attempts`
  await createTopic(topic, { partitions: 1 })
  const count = 40
  for (let round = 0; round < count; round++)
    await produce(topic, [{ partition: 0, value: 'x'.repeat(60_000) }])
  let received = 0
  const tail = startTopicTail({
    kafka: workerKafka(),
    topic,
    startOf: () => 'beginning',
    gatherMs: 20_000,
    onStart: () => undefined,
    onRecords: (_partition, records) => void (received += records.length),
    log,
  })
  onTestFinished(() => tail.stop())
  await until('all of it has come', () => received >= count)
  expect(received).toBe(count)
})
