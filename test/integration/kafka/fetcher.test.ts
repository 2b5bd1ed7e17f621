import type { Admin } from 'kafkajs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { locate, type LogPlace } from '../../../src/kafka/fetch/positions.ts'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { createTopic, otherProgram, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { beginReading, numbered, numbers, type Reading } from './readers.ts'

let topic = ''
let reading: Reading

beforeEach(() => {
  topic = `${randomPrefix()}events`
})

afterEach(() => reading.stop())

function admin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
  return withAdmin(otherProgram(), work)
}

/** Deletes all records of partition 0 before this offset. */
function deleteBefore(offset: number): Promise<void> {
  return admin(async (one) => {
    // This call tells the client the leaders, which it needs for the next call.
    await one.fetchTopicOffsets(topic)
    await one.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(offset) }] })
  })
}

async function located(place: Partial<LogPlace>) {
  return (await locate(reading.view, [{ topic, partition: 0, offset: 0, ...place }]))[0]
}

async function recreate(partitions = 1): Promise<void> {
  await admin(async (one) => {
    await one.deleteTopics({ topics: [topic] })
    await until('it is gone', async () => !(await one.listTopics()).includes(topic))
  })
  await createTopic(topic, { partitions })
}

describe('a partition is read', () => {
  test('from its beginning, and on as records come', async () => {
    await createTopic(topic)
    await produce(topic, numbered(0, 5_000))
    reading = await beginReading([topic])
    const { handle, texts } = reading.read()
    await until('all is there', () => texts.length === 5_000)
    await produce(topic, numbered(5_000, 5_100))
    await until('the rest is there', () => texts.length === 5_100)
    expect(texts).toEqual(numbers(0, 5_100))
    expect(handle.position).toBe(5_100)
    expect(handle.end.offset).toBe(5_100)
    expect(handle.logStart).toBe(0)
    expect(handle.leaderEpochBefore(5_100)).toBe(0)
    expect(reading.lines).toEqual([])
  })

  test('beside others without all of them being handed over in one turn of the event loop', async () => {
    const partitions = [0, 1, 2, 3]
    await createTopic(topic, { partitions: partitions.length })
    for (const partition of partitions) await produce(topic, numbered(0, 10, partition))
    reading = await beginReading([topic])
    let turn = 0
    const goOn = (): NodeJS.Immediate => setImmediate(() => (turn++, (next = goOn())))
    let next = goOn()
    const turns: number[] = []
    const on = {
      batch() {
        turns.push(turn)
        const untilMs = performance.now() + 10
        while (performance.now() < untilMs);
      },
      lost: () => undefined,
      truncated: () => undefined,
    }
    const handles = partitions.map((partition) => reading.read({ partition, isPaused: true, on }).handle)
    await until('the ends are known', () => handles.every(({ end }) => end.offset === 10))
    for (const handle of handles) handle.resume()
    await until('all is there', () => turns.length === partitions.length)
    clearImmediate(next)
    expect(new Set(turns).size).toBe(partitions.length)
  })

  test('not while it is paused; and where it ends is known nevertheless', async () => {
    await createTopic(topic)
    reading = await beginReading([topic])
    const { handle, texts } = reading.read({ isPaused: true })
    await produce(topic, numbered(0, 10))
    await until('its end is known', () => handle.end.offset === 10)
    expect(texts).toEqual([])
    handle.resume()
    await until('all is there', () => texts.length === 10)
  })

  test('from where it was sought, while a fetch from elsewhere was under way', async () => {
    await createTopic(topic)
    await produce(topic, numbered(0, 100))
    reading = await beginReading([topic])
    const { handle, batches, texts } = reading.read({ offset: 100 })
    for (let round = 0; round < 20; round++) {
      const from = round * 4
      batches.length = 0
      texts.length = 0
      handle.seek(from)
      await until('it has come', () => texts.length === 100 - from, { everyMs: 1 })
      expect(batches[0]?.from).toBe(from)
      expect(texts).toEqual(numbers(from, 100))
    }
  })

  test('for whoever begins it anew, and no more for who has closed it', async () => {
    await createTopic(topic)
    await produce(topic, numbered(0, 3_000))
    reading = await beginReading([topic])
    const former = Array.from({ length: 10 }, () => {
      const reader = reading.read()
      reader.handle.close()
      return reader
    })
    const last = reading.read({ offset: 1_000 })
    expect(() => reading.read()).toThrow('is being read already')
    await until('all is there', () => last.texts.length === 2_000)
    expect(last.batches[0]?.from).toBe(1_000)
    expect(former.flatMap(({ batches }) => batches)).toEqual([])
  })
})

describe('of transactions nothing is given', () => {
  test('that belongs to one of two aborted ones that were open together, nor a marker', async () => {
    await createTopic(topic)
    const [one, other] = await Promise.all(
      ['one', 'other'].map(async (name) => {
        const producer = otherProgram().producer({
          transactionalId: `${topic}.${name}`,
          maxInFlightRequests: 1,
        })
        await producer.connect()
        return producer
      }),
    )
    if (one === undefined || other === undefined) throw new Error('there are two')
    const [first, second] = [await one.transaction(), await other.transaction()]
    const send = (transaction: typeof first, value: string) =>
      transaction.send({ topic, messages: [{ key: Buffer.alloc(4), value }] })
    await send(first, 'aborted 0')
    await send(second, 'aborted 1')
    await send(first, 'aborted 2')
    await first.abort()
    await send(second, 'aborted 4')
    await second.abort()
    const third = await one.transaction()
    await send(third, 'committed 6')
    await third.commit()
    await produce(topic, [{ key: Buffer.alloc(4), value: 'plain 8' }])
    await Promise.all([one.disconnect(), other.disconnect()])

    reading = await beginReading([topic])
    const readers = []
    // A fetch may begin in the middle of the transactions.
    for (const offset of [0, 1, 2, 4]) {
      const reader = reading.read({ offset })
      await until('it is at the end', () => reader.handle.position === 9)
      reader.handle.close()
      readers.push(reader)
    }
    for (const { texts } of readers) expect(texts).toEqual(['committed 6', 'plain 8'])
  })
})

describe('records that are deleted', () => {
  test('behind the position are no loss', async () => {
    await createTopic(topic)
    await produce(topic, numbered(0, 100))
    reading = await beginReading([topic])
    const reader = reading.read()
    await until('all is there', () => reader.texts.length === 100)
    await deleteBefore(60)
    await produce(topic, numbered(100, 110))
    await until('the rest is there', () => reader.texts.length === 110)
    expect(reader.handle.logStart).toBe(60)
    expect(reader.lost).toEqual([])
    expect(reading.lines).toEqual([])
  })

  test('before they were read are told of, and it goes on behind them', async () => {
    await createTopic(topic)
    await produce(topic, numbered(0, 100))
    reading = await beginReading([topic])
    const reader = reading.read({ isPaused: true, offset: 10 })
    await deleteBefore(60)
    reader.handle.resume()
    await until('the rest is there', () => reader.texts.length === 40)
    expect(reader.texts).toEqual(numbers(60, 100))
    expect(reader.lost).toEqual([[10, 60]])
    expect(reading.lines).toEqual([
      { level: 'error', fields: { topic, partition: 0, from: 10, to: 60, lost: 50 } },
    ])
    expect(reader.truncations).toEqual([])
  })
})

describe('a topic that is made again', () => {
  test.each([
    ['with fewer records than were read', 20],
    ['with more records than were read', 300],
  ])('%s is another log, from its beginning', async (_what, count) => {
    await createTopic(topic)
    await produce(topic, numbered(0, 100))
    reading = await beginReading([topic])
    const reader = reading.read()
    await until('all is there', () => reader.texts.length === 100)
    reader.handle.pause()
    await recreate()
    await produce(topic, numbered(1_000, 1_000 + count))
    reader.handle.resume()
    await until('it is told', () => reader.truncations.length > 0)
    expect(reader.truncations).toEqual([
      expect.objectContaining({ at: 0, from: expect.any(Number), reason: 'recreated' }),
    ])
    reader.texts.length = 0
    reader.handle.seek(reader.truncations[0]?.at ?? -1)
    await until('the new records are there', () => reader.texts.length === count)
    expect(reader.texts).toEqual(numbers(1_000, 1_000 + count))
    expect(reader.truncations).toHaveLength(1)
    expect(reader.handle.leaderEpochBefore(count)).toBe(0)
  })

  test('is one by its id, for whoever remembers that', async () => {
    await createTopic(topic)
    await produce(topic, numbered(0, 100))
    reading = await beginReading([topic])
    const topicId = reading.view.topicIdOf(topic)
    expect(topicId).toMatch(/^[\w-]{22}$/)
    await recreate()
    await produce(topic, numbered(0, 200))
    await until('the new id is known', async () => {
      await reading.view.refresh()
      return reading.view.topicIdOf(topic) !== topicId
    })
    expect(await located({ offset: 100, topicId })).toMatchObject({
      kind: 'truncated',
      at: 0,
      from: 100,
      reason: 'recreated',
    })
    expect(await located({ offset: 100 })).toMatchObject({
      kind: 'goOn',
      offset: 100,
      log: { start: 0, end: 200 },
    })
  })
})

test('a place behind the end of the log, and one before its beginning, are found', async () => {
  await createTopic(topic)
  await produce(topic, numbered(0, 100))
  await deleteBefore(30)
  reading = await beginReading([topic])
  expect(await located({ offset: 900 })).toMatchObject({ kind: 'truncated', at: 30, reason: 'shorter' })
  expect(await located({ offset: 900, leaderEpoch: 0 })).toMatchObject({ kind: 'truncated', at: 100 })
  expect(await located({ offset: 10 })).toMatchObject({ kind: 'retentionWon', from: 10, to: 30 })
  expect(await located({ offset: 50, leaderEpoch: 0 })).toMatchObject({ kind: 'goOn', offset: 50 })
  expect(await located({ offset: -1 })).toMatchObject({ kind: 'goOn', offset: 30 })
  // This log never had a leader with this epoch.
  expect(await located({ offset: 100, leaderEpoch: 7 })).toMatchObject({
    kind: 'truncated',
    at: 30,
    reason: 'diverged',
  })
  expect(await located({ partition: 9 })).toMatchObject({
    kind: 'later',
    reason: expect.stringContaining('no partition 9'),
  })
})

describe('what is wrong with one topic is no matter of the others', () => {
  test('when it is deleted, and until it is there again', async () => {
    const other = `${topic}.other`
    await createTopic(topic)
    await createTopic(other)
    reading = await beginReading([topic, other])
    const [gone, well] = [reading.read(), reading.read({ topic: other })]
    await produce(topic, numbered(0, 10))
    await until('it is read', () => gone.texts.length === 10)
    await admin((one) => one.deleteTopics({ topics: [topic] }))
    await until('it is told', () => gone.handle.trouble !== undefined)
    expect(reading.fetcher.troubled).toEqual([
      { topic, partition: 0, trouble: expect.stringContaining('does not exist') },
    ])
    await produce(other, numbered(0, 10))
    await until('the other is read', () => well.texts.length === 10)
    await createTopic(topic)
    await produce(topic, numbered(10, 15))
    await until('it is told that it is another one', () => gone.truncations.length === 1)
    gone.handle.seek(0)
    await until('it is read', () => gone.texts.length === 15)
    expect(gone.handle.trouble).toBeUndefined()
    expect(reading.lines.map(({ level, fields }) => [level, fields['topic']])).toEqual([
      ['warn', topic],
      ['info', topic],
    ])
  })

  test('when it was never there: nobody makes it', async () => {
    const absent = `${topic}.absent`
    await createTopic(topic)
    await produce(topic, numbered(0, 10))
    reading = await beginReading([topic, absent])
    const [well, none] = [reading.read(), reading.read({ topic: absent })]
    await until('the other is read', () => well.texts.length === 10)
    await until('it is told', () => none.handle.trouble !== undefined)
    expect(reading.view.partitionsOf(absent)).toBe(0)
    expect(await admin((one) => one.listTopics())).not.toContain(absent)
  })

  test('when it gets partitions that nobody expects', async () => {
    await createTopic(topic, { partitions: 2 })
    reading = await beginReading([topic], { partitions: 2 })
    const readers = [0, 1].map((partition) => reading.read({ partition }))
    await admin((one) => one.createPartitions({ topicPartitions: [{ topic, count: 5 }] }))
    await until('it is told', () => reading.lines.length > 0)
    expect(reading.lines).toEqual([{ level: 'error', fields: { topic, partitions: 5, expected: 2 } }])
    for (const partition of [0, 1]) await produce(topic, numbered(0, 10, partition))
    await until('the others are read', () => readers.every(({ texts }) => texts.length === 10))
  })
})
