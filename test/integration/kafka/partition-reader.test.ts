import { CompressionTypes, type Message } from 'kafkajs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  createPartitionReader,
  type PartitionReader,
  type ReadOptions,
} from '../../../src/kafka/read/partition-reader.ts'
import type { KeyedRecord } from '../../../src/message/records.ts'
import { removeTopics } from '../../../src/topics/topic-grow.ts'
import { createTopic, otherProgram, produce, randomPrefix } from '../../support/kafka.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { until } from '../../support/until.ts'

let topic = ''
let reader: PartitionReader

beforeEach(() => {
  topic = `${randomPrefix()}memberships`
  reader = createPartitionReader(workerKafka())
})

afterEach(() => reader.stop())

type Read = { offset: number; key: string; value: string | null }

function textOf({ offset, key, value }: KeyedRecord): Read {
  return { offset, key: String(key), value: value === null ? null : String(value) }
}

async function readAll(options: Partial<ReadOptions> = {}): Promise<Read[]> {
  const read: Read[] = []
  for await (const batch of reader.read({ topic, partition: 0, from: 0, ...options }))
    read.push(...batch.map(textOf))
  return read
}

function numbered(count: number, { partition = 0, from = 0 } = {}): Message[] {
  return Array.from({ length: count }, (_, index) => ({
    partition,
    key: `key-${from + index}`,
    value: `${from + index}`,
  }))
}

function asRead(count: number, { from = 0 } = {}): Read[] {
  return numbered(count, { from }).map(({ key, value }, index) => ({
    offset: from + index,
    key: String(key),
    value: String(value),
  }))
}

async function withAdmin(
  work: (admin: ReturnType<ReturnType<typeof otherProgram>['admin']>) => Promise<unknown>,
) {
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    await work(admin)
  } finally {
    await admin.disconnect()
  }
}

describe('a partition is read', () => {
  test.each([
    ['from its beginning', 0],
    ['from the middle of a batch', 12_345],
    ['from its last record', 29_999],
  ])('%s to its end', async (_where, from) => {
    await createTopic(topic, { partitions: 2 })
    for (let sent = 0; sent < 30_000; sent += 3_000) {
      await produce(topic, numbered(3_000, { from: sent }), { compression: CompressionTypes.LZ4 })
      await produce(topic, numbered(10, { partition: 1, from: sent }))
    }
    expect(await readAll({ from })).toEqual(asRead(30_000 - from, { from }))
  })

  test('from where its log begins, when what was wanted is gone', async () => {
    await createTopic(topic)
    await produce(topic, numbered(100))
    await withAdmin(async (admin) => {
      await admin.fetchTopicOffsets(topic)
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '40' }] })
    })
    expect(await reader.range({ topic, partition: 0 })).toEqual({ start: 40, end: 100 })
    expect(await readAll({ from: 10 })).toEqual(asRead(60, { from: 40 }))
  })

  test('no further than it was long at the call', async () => {
    await createTopic(topic)
    await produce(topic, numbered(20_000))
    const read: Read[] = []
    for await (const batch of reader.read({ topic, partition: 0, from: 0 })) {
      if (read.length === 0) await produce(topic, numbered(100, { from: 20_000 }))
      read.push(...batch.map(textOf))
    }
    expect(read).toEqual(asRead(20_000))
  })

  test.each([
    ['is empty', 0, 0],
    ['ends before what is wanted', 10, 10],
    ['ends long before what is wanted', 10, 1_000],
  ])('without a record when it %s', async (_what, count, from) => {
    await createTopic(topic)
    if (count > 0) await produce(topic, numbered(count))
    expect(await readAll({ from })).toEqual([])
  })

  test('with its removals, and without what has no key', async () => {
    await createTopic(topic)
    await produce(topic, [
      { key: 'a', value: '1' },
      { key: null, value: '2' },
      { key: 'a', value: null },
    ])
    expect(await readAll()).toEqual([
      { offset: 0, key: 'a', value: '1' },
      { offset: 2, key: 'a', value: null },
    ])
  })

  test('past transactions that end it, without what was aborted', async () => {
    await createTopic(topic)
    const producer = otherProgram().producer({ transactionalId: topic, maxInFlightRequests: 1 })
    await producer.connect()
    for (const [index, outcome] of (['commit', 'abort', 'commit', 'abort'] as const).entries()) {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: [{ key: `${index}`, value: outcome }] })
      await transaction[outcome]()
    }
    await producer.disconnect()
    expect(await readAll()).toEqual([
      { offset: 0, key: '0', value: 'commit' },
      { offset: 4, key: '2', value: 'commit' },
    ])
  })

  test('beside many others at the same time', async () => {
    const partitions = 10
    await createTopic(topic, { partitions })
    for (let partition = 0; partition < partitions; partition++)
      await produce(topic, numbered(1_000, { partition }))
    const all = await Promise.all(
      Array.from({ length: partitions }, (_, partition) => readAll({ partition, from: 100 * partition })),
    )
    expect(all).toEqual(all.map((_, partition) => asRead(1_000 - 100 * partition, { from: 100 * partition })))
  })

  test('over the gaps that compaction leaves', async () => {
    const settings = {
      'cleanup.policy': 'compact',
      'segment.ms': '100',
      'min.cleanable.dirty.ratio': '0.01',
    }
    await createTopic(topic, { settings })
    const rounds = 5
    for (let round = 0; round < rounds; round++) {
      const messages = Array.from({ length: 200 }, (_, key) => ({
        key: `${key % 100}`,
        value: `${round}/${key}`,
      }))
      await produce(topic, messages)
    }
    let read = await readAll()
    const deadlineMs = performance.now() + 50_000
    while (read.length === rounds * 200 && performance.now() < deadlineMs) {
      // Kafka doesn't compact the segment that it writes to. A new record begins a new segment.
      await produce(topic, [{ key: 'last', value: 'last' }])
      read = (await readAll()).filter(({ key }) => key !== 'last')
    }
    expect(read.length).toBeLessThan(rounds * 200)
    const latest = new Map(read.map(({ key, value }) => [key, value]))
    expect(latest.size).toBe(100)
    for (const [key, value] of latest) expect(value).toBe(`${rounds - 1}/${100 + Number(key)}`)
  })
})

describe('reading ends', () => {
  test('with the reason of its signal', async () => {
    await createTopic(topic)
    await produce(topic, numbered(20_000))
    const ending = new AbortController()
    const reading = (async () => {
      for await (const _batch of reader.read({ topic, partition: 0, from: 0, signal: ending.signal }))
        ending.abort(new Error('as if the unit had moved'))
    })()
    await expect(reading).rejects.toThrow('as if the unit had moved')
  })

  test('early without harm to others', async () => {
    await createTopic(topic, { partitions: 2 })
    for (const partition of [0, 1]) await produce(topic, numbered(20_000, { partition }))
    const other = readAll({ partition: 1 })
    for await (const batch of reader.read({ topic, partition: 0, from: 0 })) {
      expect(batch.length).toBeGreaterThan(0)
      break
    }
    expect(await other).toEqual(asRead(20_000))
    expect(await readAll({ from: 19_990 })).toEqual(asRead(10, { from: 19_990 }))
  })

  test('when the reader is stopped', async () => {
    await createTopic(topic)
    await produce(topic, numbered(20_000))
    const reading = (async () => {
      for await (const _batch of reader.read({ topic, partition: 0, from: 0 })) await reader.stop()
    })()
    await expect(reading).rejects.toThrow('the reader is stopped')
  })

  test.each([
    ['there is no Kafka', '127.0.0.1:1', 'did not answer'],
    ['there is no such topic', undefined, 'does not host this topic-partition'],
  ])('when %s for as long as it may take', async (_why, broker, message) => {
    const lost = createPartitionReader(
      broker === undefined ? workerKafka() : workerKafka({ brokers: [broker] }),
    )
    const reading = (async () => {
      for await (const _batch of lost.read({ topic, partition: 0, from: 0, stallTimeoutMs: 1_500 })) break
    })()
    await expect(reading).rejects.toThrow(message)
    await lost.stop()
  })
})

test('a reader can be used again when it has rested', async () => {
  await createTopic(topic)
  await produce(topic, numbered(10))
  expect(await readAll()).toEqual(asRead(10))
  await produce(topic, numbered(10, { from: 10 }))
  expect(await readAll()).toEqual(asRead(20))
})

function sockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
}

describe('a piece', () => {
  test('has keys, headers and what has neither, and ends where it is to', async () => {
    await createTopic(topic)
    await produce(topic, [
      { key: 'a', value: '1', headers: { name: 'x' } },
      { key: null, value: '2' },
      { key: 'c', value: '3' },
    ])
    const { records, next } = await reader.piece({ topic, partition: 0, from: 0, to: 2 })
    expect(records.map(({ key, value }) => [key?.toString(), String(value)])).toEqual([
      ['a', '1'],
      [undefined, '2'],
    ])
    expect(String(records[0]?.headers['name'])).toBe('x')
    expect(next).toBe(2)
    expect(await reader.piece({ topic, partition: 0, from: 2, to: 3 })).toMatchObject({ next: 3 })
  })

  test('has the whole of its first batch, if it is asked for', async () => {
    await createTopic(topic)
    await produce(topic, numbered(5))
    await produce(topic, numbered(5, { from: 5 }))
    const offsetsFrom = async (from: number, hasWholeBatch: boolean): Promise<readonly number[]> => {
      const { records } = await reader.piece({ topic, partition: 0, from, to: 10, hasWholeBatch })
      return records.map(({ offset }) => offset)
    }
    expect(await offsetsFrom(7, false)).toEqual([7, 8, 9])
    expect(await offsetsFrom(7, true)).toEqual([5, 6, 7, 8, 9])
    expect(await offsetsFrom(3, true)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('of each of several partitions at once leaves no connection open', async () => {
    await createTopic(topic, { partitions: 4 })
    const four = [0, 1, 2, 3]
    await produce(
      topic,
      four.flatMap((partition) => numbered(10, { partition })),
    )
    const before = sockets()
    const keeping = createPartitionReader(workerKafka(), { keepsOpen: true })
    const pieces = await Promise.all(
      four.map((partition) => keeping.piece({ topic, partition, from: 0, to: 10 })),
    )
    expect(pieces.map(({ records }) => records.length)).toEqual([10, 10, 10, 10])
    expect(sockets()).toBeGreaterThan(before)
    await keeping.stop()
    await until('it has closed its own', () => sockets() <= before)
  })
})

async function readOn(read: ReturnType<PartitionReader['follow']>, from: number): Promise<string[]> {
  const keys: string[] = []
  for await (const batch of read(from)) keys.push(...batch.map(({ key }) => String(key)))
  return keys
}

describe('a log that is followed', () => {
  test('is read on from where the last reading ended', async () => {
    await createTopic(topic)
    await produce(topic, numbered(2))
    const read = reader.follow({ topic, partition: 0 })
    expect(await readOn(read, 0)).toEqual(['key-0', 'key-1'])
    expect(await readOn(read, 2)).toEqual([])
    await produce(topic, numbered(1, { from: 2 }))
    expect(await readOn(read, 2)).toEqual(['key-2'])
  })

  test('that another one takes the place of is told, even if the other one is as long', async () => {
    await createTopic(topic)
    await produce(topic, numbered(2))
    const others: string[] = []
    const read = reader.follow({ topic, partition: 0 }, ({ name }) => others.push(name))
    expect(await readOn(read, 0)).toHaveLength(2)
    await removeTopics(workerKafka(), [topic])
    await createTopic(topic)
    await produce(topic, numbered(3))
    await expect(readOn(read, 2)).rejects.toThrow(`${topic} was deleted and created again`)
    expect(others).toEqual(['OtherLogError'])
  })

  test('that has lost what was read is told', async () => {
    await createTopic(topic)
    await produce(topic, numbered(2))
    const read = reader.follow({ topic, partition: 0 })
    await expect(readOn(read, 7)).rejects.toThrow('ends at offset 2, but was read up to 7')
  })
})
