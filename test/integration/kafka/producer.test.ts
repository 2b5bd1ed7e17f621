import { setTimeout as passTime } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type RecordProducer, startProducer } from '../../../src/kafka/produce/producer.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { createTopic, randomPrefix, readAll } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

/** Texts and their hashes, from the tests of Apache Kafka's client (UtilsTest.testMurmur2). */
const murmur2: Readonly<Record<string, number>> = {
  '21': -973932308,
  foobar: -790332482,
  'a-little-bit-long-string': -985981536,
  'a-little-bit-longer-string': -1486304829,
  lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8: -58897971,
  abc: 479470107,
}
const partitions = 6
let topic = ''
let producer: RecordProducer
const kafka = workerKafka()
const stalls: boolean[] = []
const reasons: string[] = []
/** The reports about partitions that fail, and about partitions that accept records again. */
const said: string[] = []

beforeEach(async () => {
  topic = `${randomPrefix()}events`
  await createTopic(topic, { partitions, settings: { 'max.message.bytes': '20000' } })
  stalls.length = 0
  reasons.length = 0
  said.length = 0
  producer = await startProducer({
    kafka,
    maxRecordBytes: 100_000,
    onFailing({ topic: ofTopic, partition, reason }, isFailing) {
      said.push(`${isFailing ? 'fails' : 'works'} ${ofTopic.replace(topic, 'events')}/${partition}`)
      if (isFailing) reasons.push(reason)
    },
    onStalled(isStalled, reason) {
      stalls.push(isStalled)
      reasons.push(reason)
    },
  })
})

afterEach(() => producer.stop())

function record(text: string, partition?: number) {
  return {
    topic,
    key: Buffer.from(text.slice(0, 20)),
    value: Buffer.from(text),
    headers: { 'source-id': 'shop' },
    ...(partition !== undefined && { partition }),
  }
}

describe('the producer', () => {
  test('writes to the partition that a record names, with key, value and headers', async () => {
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, index) => producer.produce(record(`text-${index}`, index % partitions))),
    )
    expect(new Set(results)).toEqual(new Set(['acknowledged']))
    const records = await readAll(topic)
    expect(records).toHaveLength(60)
    for (const { partition, key, value, headers } of records) {
      expect(key).toBe(String(value))
      expect(Number(key?.slice('text-'.length)) % partitions).toBe(partition)
      expect(headers).toEqual({ 'source-id': 'shop' })
    }
  })

  test('places a record without a partition where Java’s clients do', async () => {
    await Promise.all(
      Object.keys(murmur2).map((key) => producer.produce({ ...record(key), key: Buffer.from(key) })),
    )
    const placed = (await readAll(topic)).map(({ key, partition }) => [key, partition])
    const expected = Object.entries(murmur2).map(([key, hash]) => [key, (hash & 0x7fffffff) % partitions])
    expect(Object.fromEntries(placed)).toEqual(Object.fromEntries(expected))
  })

  test('says which record is too large, and writes the others of its batch', async () => {
    const texts = ['before', 'x'.repeat(30_000), 'after']
    const results = await Promise.all(texts.map((text) => producer.produce(record(text, 0))))
    expect(results).toEqual(['acknowledged', 'refused', 'acknowledged'])
    expect((await readAll(topic)).map(({ value }) => String(value))).toEqual(['before', 'after'])
    expect(stalls).toEqual([])
    expect(producer.pending).toBe(0)
  })

  test.each([
    ['value', { value: Buffer.alloc(100_001) }],
    ['key', { key: Buffer.alloc(100_001) }],
    ['headers', { headers: { large: '漢'.repeat(33_334) } }],
  ])('does not even send a record whose %s no topic takes', async (_what, large) => {
    const results = [
      producer.produce({ ...record('large', 0), ...large }),
      producer.produce(record('good', 0)),
    ]
    expect(producer.pending).toBe(1)
    expect(await Promise.all(results)).toEqual(['refused', 'acknowledged'])
    expect((await readAll(topic)).map(({ value }) => String(value))).toEqual(['good'])
  })

  test('gives the offset of each record, whatever else is written with it', async () => {
    await producer.produce(record('before', 2))
    const other = `${topic}.other`
    await createTopic(other, { partitions })
    const texts = Array.from({ length: 3_000 }, (_, index) => `text-${index}`)
    const offsets = await Promise.all(
      texts.map((text, index) => {
        const partition = index % 7 === 6 ? undefined : index % 7
        const written = { ...record(text, partition), topic: index % 2 === 0 ? topic : other }
        return index % 3 === 0 ? producer.produce(written) : producer.produceAt(written)
      }),
    )
    const places = new Map<string, number>()
    for (const read of [...(await readAll(topic)), ...(await readAll(other))])
      places.set(String(read.value), read.offset)
    expect(offsets).toEqual(
      texts.map((text, index) => (index % 3 === 0 ? 'acknowledged' : { offset: places.get(text) })),
    )
  })

  test('gives the offsets of the others when one of their batch is too large', async () => {
    const texts = ['before', 'x'.repeat(30_000), 'between', 'x'.repeat(200_000), 'after']
    const offsets = await Promise.all(texts.map((text) => producer.produceAt(record(text, 0))))
    const places = new Map((await readAll(topic)).map(({ value, offset }) => [String(value), offset]))
    expect(offsets).toEqual([
      { offset: places.get('before') },
      'refused',
      { offset: places.get('between') },
      'refused',
      { offset: places.get('after') },
    ])
  })

  test('says which partition takes nothing, and writes what waits for it, in its order, when it takes records', async () => {
    const sick = Array.from({ length: 2_500 }, (_, index) =>
      producer.produceAt(record(`sick-${index}`, partitions)),
    )
    let written = 0
    const tookMs: number[] = []
    async function writeToOthers(): Promise<void> {
      for (let partition = 0; partition < partitions; partition++) {
        const sentMs = performance.now()
        expect(await producer.produce(record(`well-${written}`, partition))).toBe('acknowledged')
        tookMs.push(performance.now() - sentMs)
        written++
      }
    }
    while (said.length === 0) await writeToOthers()
    expect(said).toEqual([`fails events/${partitions}`])
    expect(reasons[0]).toContain(`${topic}/${partitions}`)
    expect(producer.failing).toEqual(new Map([[topic, 1]]))
    await writeToOthers()
    expect(producer.pending).toBe(sick.length)
    // Half of them at least: a machine that stands still for a moment makes some slow, and a fault all.
    expect(tookMs.toSorted((one, other) => one - other)[tookMs.length >> 1]).toBeLessThan(2_000)
    await withAdmin(kafka, (admin) =>
      admin.createPartitions({ topicPartitions: [{ topic, count: partitions + 1 }] }),
    )
    expect(await Promise.all(sick)).toEqual(sick.map((_, index) => ({ offset: index })))
    expect(said).toEqual([`fails events/${partitions}`, `works events/${partitions}`])
    expect(producer.failing).toEqual(new Map())
    expect(producer.pending).toBe(0)
    expect(stalls).toEqual([])
  })

  test('is not stalled by a partition that takes nothing while there is nothing to write to others', async () => {
    const waiting = producer.produce(record('beyond', partitions))
    await until('it says so', () => said.length > 0)
    // This is longer than the producer needs to ask the brokers several times.
    await passTime(4_000)
    expect(stalls).toEqual([])
    await withAdmin(kafka, (admin) =>
      admin.createPartitions({ topicPartitions: [{ topic, count: partitions + 1 }] }),
    )
    expect(await waiting).toBe('acknowledged')
  })

  test('a topic that does not exist holds up no other, with a partition that is given or without', async () => {
    await producer.produce(record('before', 0))
    const other = `${topic}.other`
    const waiting = [0, undefined].map((partition) =>
      producer.produce({ ...record('early', partition), topic: other }),
    )
    await until('it says so', () => said.length === 2)
    expect(said.toSorted()).toEqual(['fails events.other/-1', 'fails events.other/0'])
    expect(await producer.produce(record('after', 0))).toBe('acknowledged')
    expect(await producer.produce(record('after'))).toBe('acknowledged')
    await createTopic(other, { partitions })
    expect(await Promise.all(waiting)).toEqual(['acknowledged', 'acknowledged'])
    expect(stalls).toEqual([])
  })

  test('is stalled while no partition that it writes to takes anything, and says so once', async () => {
    const away = `${topic}.away`
    const written = Array.from({ length: partitions }, (_, partition) =>
      producer.produce({ ...record(`away-${partition}`, partition), topic: away }),
    )
    let ticks = 0
    const timer = setInterval(() => ticks++, 5)
    await until('it says so', () => stalls.length > 0)
    clearInterval(timer)
    expect(stalls).toEqual([true])
    expect(reasons.at(-1)).toContain(`${away}/`)
    expect(ticks).toBeGreaterThan(0)
    await createTopic(away, { partitions })
    expect(new Set(await Promise.all(written))).toEqual(new Set(['acknowledged']))
    expect(stalls).toEqual([true, false])
    expect(said).toHaveLength(2 * partitions)
  })
})
