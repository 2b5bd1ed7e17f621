import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { createKafka } from '../../../src/kafka/cluster/client.ts'
import { startProducer } from '../../../src/kafka/produce/producer.ts'
import { throttledSeconds, type ThrottledRequest } from '../../../src/kafka/wire/throttle.ts'
import { createPartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import { createTopic, produce, randomPrefix, readAll, testKafka } from '../../support/kafka.ts'
import { setQuotas } from '../../support/quotas.ts'
import { until } from '../../support/until.ts'
import { startMember } from './member.ts'

let clientId: string
let topic: string
const lines: string[] = []

beforeEach(async () => {
  clientId = `slow-${randomUUID()}`
  topic = `${randomPrefix()}events`
  lines.length = 0
  await createTopic(topic, { partitions: 3 })
})

/** A client whose requests time out after four seconds, so that the tests need only short throttles. */
function throttledKafka() {
  return createKafka(
    {
      brokers: testKafka(),
      clientId,
      ssl: false,
      saslMechanism: 'none',
      saslUsername: undefined,
      saslPassword: undefined,
    },
    { warn: (_, line) => void lines.push(line), debug() {} },
    'impatient',
  )
}

/** Returns for how many seconds brokers have throttled requests of this kind since the start of this process. */
function throttledFor(kind: ThrottledRequest): number {
  return throttledSeconds().reduce((sum, { request, seconds }) => sum + (request === kind ? seconds : 0), 0)
}

test('records that wait for a quota are each written once, and nothing counts as failing', async () => {
  await setQuotas(clientId, { producer_byte_rate: 20_000 })
  const failures: string[] = []
  const producer = await startProducer({
    kafka: throttledKafka(),
    maxRecordBytes: 10_000,
    onFailed: () => failures.push('failed'),
    onFailing: ({ reason }) => failures.push(reason),
    onStalled: (_, reason) => failures.push(reason),
  })
  const value = Buffer.alloc(2_000, 'x')
  let sent = 0
  const send = (count: number): Promise<unknown>[] =>
    Array.from({ length: count }, () => {
      const key = Buffer.from(String(sent++))
      return producer.produce({ topic, partition: sent % 3, key, value, headers: {} })
    })
  const before = throttledFor('produce')
  await Promise.all(send(160))
  // The broker doesn't read these before it has written a few seconds' worth of the quota.
  await Promise.all(send(20))
  await producer.stop()
  const keys = (await readAll(topic)).map(({ key }) => Number(key)).toSorted((a, b) => a - b)
  expect(keys).toEqual(Array.from({ length: 180 }, (_, index) => index))
  expect(failures).toEqual([])
  expect(throttledFor('produce') - before).toBeGreaterThan(4)
  expect(lines.filter((line) => line.includes('producer_byte_rate'))).toHaveLength(1)
})

test('a reading that waits for a quota goes on, though the wait is longer than its own limit', async () => {
  const messages = Array.from({ length: 480 }, (_, index) => ({
    partition: 0,
    key: String(index),
    value: 'x'.repeat(2_000),
  }))
  for (let from = 0; from < 480; from += 10) await produce(topic, messages.slice(from, from + 10))
  await setQuotas(clientId, { consumer_byte_rate: 60_000 })
  const reader = createPartitionReader(throttledKafka())
  // A broker takes a moment to learn of the quota, so the first reading may be over before.
  await until('a reading was throttled', async () => {
    let count = 0
    for await (const batch of reader.read({ topic, partition: 0, from: 0, stallTimeoutMs: 2_500 }))
      count += batch.length
    expect(count).toBe(480)
    return lines.join('\n').includes('consumer_byte_rate')
  })
  await reader.stop()
})

test('a member whose every request is throttled keeps its place in the group, and commits', async () => {
  const said: string[] = []
  const say = (_: object, text: string): void => void said.push(text)
  const { consumer } = await startMember({
    groupId: clientId,
    topics: [{ topic, waitMs: 0 }],
    kafka: throttledKafka(),
    log: { debug() {}, info: say, warn: say, error: say },
  })
  // Each request uses more than this, on a fast machine, too. The broker announces a second for each of them.
  await setQuotas(clientId, { request_percentage: 0.01 })
  const before = throttledFor('other')
  // The session lasts six seconds.
  await until('it was throttled for long', () => throttledFor('other') > before + 8)
  await consumer.commit()
  expect(consumer.isMember).toBe(true)
  expect(said.filter((text) => /rejoining|could not be reached|has not answered/.test(text))).toEqual([])
  await consumer.stop()
})
