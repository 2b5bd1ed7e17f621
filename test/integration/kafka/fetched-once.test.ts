import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FetchListener } from '../../../src/kafka/fetch/fetch-handle.ts'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { beginReading, type Fetch, numbers, type Reader, type Reading, watchedKafka } from './readers.ts'

const partitions = 3
const maxBytes = 128 * 1024
const recordBytes = 10_000

let topic = ''
let reading: Reading
let fetches: Fetch[]

beforeEach(async () => {
  topic = `${randomPrefix()}events`
  await createTopic(topic, { partitions })
  const watched = watchedKafka()
  fetches = watched.fetches
  reading = await beginReading([topic], { kafka: watched.kafka, partitions })
})

afterEach(() => reading.stop())

/** Writes one batch with so many records to each partition, for each number of the list. */
async function write(batches: readonly number[]): Promise<void> {
  let from = 0
  for (const count of batches) {
    const values = numbers(from, from + count).map((value) => value.padEnd(recordBytes))
    for (let partition = 0; partition < partitions; partition++)
      await produce(
        topic,
        values.map((value) => ({ partition, key: null, value })),
      )
    from += count
  }
}

function readAll(on?: FetchListener): Reader[] {
  return Array.from({ length: partitions }, (_, partition) =>
    reading.read({ partition, maxBytes, isPaused: true, ...(on && { on }) }),
  )
}

function fetchedBytes(): number {
  return fetches.reduce((sum, { answerBytes }) => sum + answerBytes, 0)
}

const numbersOf = ({ texts }: Reader): string[] => texts.map((text) => text.trimEnd())

describe('a backlog is fetched once', () => {
  test.each([
    ['that are large', 1.15, [9, 8, 10, 9, 11, 8, 9, 10, 9, 8, 9, 11, 10, 8, 9, 9]],
    ['of which two fit', 1.15, [5, 6, 5, 5, 6, 5, 5, 6, 5, 6, 5, 5, 6, 5, 5, 6]],
    ['of which none fits', 1.05, [15, 14, 16, 15]],
    ['of all sizes', 1.25, [9, 1, 1, 12, 3, 15, 1, 9, 4, 1, 10, 6, 1, 1, 1, 9]],
  ])('in batches %s', async (_what, times, batches) => {
    await write(batches)
    const count = batches.reduce((sum, one) => sum + one)
    const readers = readAll()
    for (const { handle } of readers) handle.resume()
    await until('all is there', () => readers.every(({ texts }) => texts.length === count))
    for (const reader of readers) expect(numbersOf(reader)).toEqual(numbers(0, count))
    expect(fetchedBytes() / (partitions * count * recordBytes)).toBeLessThan(times)
  })

  test('if its readers pause whenever a batch comes', async () => {
    const batches = Array.from({ length: 12 }, () => 9)
    await write(batches)
    const count = batches.reduce((sum, one) => sum + one)
    const handles = new Array<Reader['handle']>()
    let came = 0
    for (const { handle } of readAll({
      batch({ records }) {
        came += records.length
        for (const one of handles) one.pause()
        setImmediate(() => {
          for (const one of handles) one.resume()
        })
      },
      lost: () => undefined,
      truncated: () => undefined,
    }))
      handles.push(handle)
    for (const handle of handles) handle.resume()
    await until('all is there', () => came === partitions * count)
    expect(fetchedBytes() / (partitions * count * recordBytes)).toBeLessThan(1.15)
  })
})

test('what came for a paused reader is given to it only if it still reads there', async () => {
  await write([4, 4])
  const [first, ...others] = readAll()
  if (first === undefined) throw new Error('there is a first reader')
  const read = new Array<[from: number, texts: string[]]>()
  for (let round = 0; round < 20; round++) {
    const offset = round % 8
    for (const { handle } of [first, ...others]) {
      handle.seek(0)
      handle.resume()
    }
    await until('a fetch is under way', () => others.every(({ texts }) => texts.length > 0), { everyMs: 1 })
    for (const { texts } of others) texts.length = 0
    first.handle.pause()
    first.handle.seek(offset)
    first.texts.length = 0
    first.handle.resume()
    await until('it has come', () => first.handle.position === 8, { everyMs: 1 })
    read.push([offset, numbersOf(first)])
  }
  for (const [offset, texts] of read) expect(texts).toEqual(numbers(offset, 8))
})
