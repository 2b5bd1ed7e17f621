import { expect, onTestFinished, test } from 'vitest'
import { NotWrittenError, Pen, UnknownOutcomeError } from '../../../src/kafka/pen/pen.ts'
import { createPartitionReader, type PartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import { catalogReading } from '../../../src/catalog-log/read.ts'
import { createTopic, randomPrefix } from '../../support/kafka.ts'
import { workerKafka } from '../../support/worker-kafka.ts'

async function newTopic(): Promise<string> {
  const topic = `${randomPrefix()}catalog`
  await createTopic(topic, { settings: { 'cleanup.policy': 'compact' } })
  return topic
}

function penFor(topic: string): Pen {
  const pen = new Pen({ kafka: workerKafka(), transactionalId: topic, topic })
  onTestFinished(() => pen.close())
  return pen
}

function newReader(): PartitionReader {
  const reader = createPartitionReader(workerKafka())
  onTestFinished(() => reader.stop())
  return reader
}

/** Reads all records that are visible once no transaction is open: by offset, each with its value. */
async function visible(reader: PartitionReader, topic: string, from = 0): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  for await (const { records } of catalogReading(reader, topic)(from)) {
    for (const { offset, value } of records) found.set(offset, String(value))
  }
  return found
}

test('a transaction is visible as a whole, at the offsets that were returned', async () => {
  const topic = await newTopic()
  const pen = penFor(topic)
  expect(pen.isHeld).toBe(false)
  await pen.take()
  // More than one batch.
  const large = Array.from({ length: 3 }, (_, index) => ({
    key: `k${index}`,
    value: `${index}`.repeat(400_000),
  }))
  const first = await pen.write(large)
  const second = await pen.write([{ key: 'k0', value: 'again' }])
  expect(pen.isHeld).toBe(true)
  const found = await visible(newReader(), topic)
  expect([...found.keys()]).toEqual([...first, ...second])
  expect(found.get(second[0] ?? -1)).toBe('again')
})

test('who takes the pen fences all earlier holders', async () => {
  const topic = await newTopic()
  const [earlier, later] = [penFor(topic), penFor(topic)]
  await earlier.take()
  await earlier.write([{ key: 'k', value: 'earlier' }])
  await later.take()
  const refused = earlier.write([{ key: 'k', value: 'late' }])
  await expect(refused).rejects.toBeInstanceOf(NotWrittenError)
  await expect(refused).rejects.toMatchObject({ isFenced: true })
  expect(earlier.isHeld).toBe(false)
  await expect(later.confirm()).resolves.toBeUndefined()
  await later.write([{ key: 'k', value: 'later' }])
  await earlier.take()
  await expect(later.confirm()).rejects.toMatchObject({ isFenced: true })
  expect([...(await visible(newReader(), topic)).values()]).toEqual(['earlier', 'later'])
})

test('a transaction during which the pen is taken is written as a whole, or not at all', async () => {
  const topic = await newTopic()
  const [writer, taker] = [penFor(topic), penFor(topic)]
  const reader = newReader()
  await taker.take()
  const outcomes = new Set<boolean>()
  let next = 0
  for (let round = 0; round < 40; round++) {
    await writer.take()
    const records = Array.from({ length: 4 }, (_, index) => ({
      key: `${round}-${index}`,
      value: `${round}`.padEnd(300_000, ' '),
    }))
    const written = writer.write(records).then(
      () => true,
      (error: unknown) => {
        if (error instanceof UnknownOutcomeError) return undefined
        expect(error).toMatchObject({ isFenced: true })
        return false
      },
    )
    // The write is at another step in each round.
    for (let turn = 0; turn < (round * 7) % 60; turn++) await new Promise((resolve) => setImmediate(resolve))
    if (round % 5 > 0) await taker.take()
    const isWritten = await written
    // The next holder knows all that was ever written.
    await taker.take()
    const found = await visible(reader, topic, next)
    const ofRound = [...found.values()].filter((value) => value.trim() === `${round}`).length
    outcomes.add(ofRound > 0)
    if (isWritten === undefined) expect([0, 4]).toContain(ofRound)
    else expect(ofRound).toBe(isWritten ? 4 : 0)
    next = Math.max(next, ...[...found.keys()].map((offset) => offset + 1))
  }
  expect(outcomes).toEqual(new Set([false, true]))
})

test('writers that race lose no change: each reads to the end before it writes', async () => {
  const topic = await newTopic()
  const each = 8
  const count = async (writer: string): Promise<void> => {
    const pen = penFor(topic)
    const reader = newReader()
    let [done, next, value] = [0, 0, 0]
    /** The change whose outcome isn't known. */
    let doubtful = ''
    let failures = 0
    while (done < each) {
      try {
        if (!pen.isHeld) await pen.take()
        for (const [offset, text] of await visible(reader, topic, next)) {
          next = offset + 1
          value = Number(text.split(' ')[0])
          if (text === doubtful) done++
        }
        doubtful = ''
        if (done === each) return
        doubtful = `${value + 1} ${writer}`
        await pen.write([{ key: 'count', value: doubtful }])
        done++
        failures = 0
        doubtful = ''
      } catch (error) {
        if (error instanceof NotWrittenError) {
          expect(error.isFenced).toBe(true)
          doubtful = ''
        } else expect(error).toBeInstanceOf(UnknownOutcomeError)
        // Whoever takes the pen back at once keeps the others from writing.
        const longestMs = 100 * 2 ** Math.min(failures++, 6)
        await new Promise((resolve) => setTimeout(resolve, Math.random() * longestMs))
      }
    }
  }
  await Promise.all([count('a'), count('b'), count('c')])
  const values = [...(await visible(newReader(), topic)).values()].map((text) => Number(text.split(' ')[0]))
  expect(values).toEqual(Array.from({ length: 3 * each }, (_, index) => index + 1))
})
