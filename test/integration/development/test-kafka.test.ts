import { CompressionTypes } from 'kafkajs'
import { expect, test } from 'vitest'
import { createTopic, produce, randomPrefix, readAll } from '../../support/kafka.ts'

test('what was produced is read back from every partition, in order, with key, value and headers', async () => {
  const topic = `${randomPrefix()}events`
  await createTopic(topic, { partitions: 3 })
  await produce(topic, [
    { partition: 2, key: 'k', value: 'two', headers: { 'source-id': 'web' }, timestamp: '1700000000000' },
    { partition: 0, key: null, value: Buffer.from([0, 255]) },
    { partition: 0, key: 'gone', value: null },
  ])
  const records = await readAll(topic)
  expect(records).toEqual([
    {
      partition: 0,
      offset: 0,
      key: null,
      value: Buffer.from([0, 255]),
      headers: {},
      timestamp: expect.any(Number),
    },
    { partition: 0, offset: 1, key: 'gone', value: null, headers: {}, timestamp: expect.any(Number) },
    {
      partition: 2,
      offset: 0,
      key: 'k',
      value: Buffer.from('two'),
      headers: { 'source-id': 'web' },
      timestamp: 1_700_000_000_000,
    },
  ])
})

test('an empty topic reads as nothing', async () => {
  const topic = `${randomPrefix()}events`
  await createTopic(topic)
  expect(await readAll(topic)).toEqual([])
})

test('more than one batch of compressed records is read to its end', async () => {
  const topic = `${randomPrefix()}events`
  await createTopic(topic)
  const values = Array.from({ length: 3_000 }, (_, index) => `${index} `.padEnd(500, 'x'))
  await produce(
    topic,
    values.map((value) => ({ value })),
    { compression: CompressionTypes.ZSTD },
  )
  expect((await readAll(topic)).map(({ value }) => String(value))).toEqual(values)
})

test('a count waits for records that are not there yet', async () => {
  const topic = `${randomPrefix()}events`
  await createTopic(topic)
  const reading = readAll(topic, { count: 2 })
  await produce(topic, [{ value: 'one' }])
  await produce(topic, [{ value: 'two' }])
  expect((await reading).map(({ value }) => String(value))).toEqual(['one', 'two'])
})

test('a count that never comes is an error that says how many there were', async () => {
  const topic = `${randomPrefix()}events`
  await createTopic(topic)
  await produce(topic, [{ value: 'one' }])
  await expect(readAll(topic, { count: 2, timeoutMs: 1_500 })).rejects.toThrow(
    `read only 1 records of ${topic}`,
  )
})
