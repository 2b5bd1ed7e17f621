import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { errorCodes } from '../../../../src/kafka/wire/error-codes.ts'
import { ByteWriter } from '../../../../src/kafka/wire/bytes.ts'
import { createPartitionReader } from '../../../../src/kafka/read/partition-reader.ts'
import type { KeyedRecord } from '../../../../src/message/records.ts'
import { encodeBatch, encodeRecords } from '../../../support/raw-batch.ts'

/**
 * The answer of a broker to a fetch at an offset: records, nothing, or an error. A real broker gives some of
 * these answers at rare moments only.
 */
type Answer =
  | { offsets: number[]; readable: number }
  | { errorCode: number }
  | { error: Error }
  /** The answer of a broker when, for example, a quota is used up. */
  | 'nothing of the partition'
  | 'never'

type Scripted = {
  kafka: Kafka
  /** The offsets that were asked for. */
  asked: number[]
  refreshes: number
}

function batchAt(offset: number): Buffer {
  return encodeBatch(encodeRecords([{ key: `key-${offset}`, value: 'v' }]), { count: 1, baseOffset: offset })
}

/** Returns the answer to a Fetch of version 11, or `undefined` if no answer comes. */
function answerOf(answer: Exclude<Answer, { error: Error }>): Buffer | undefined {
  if (answer === 'never') return undefined
  const whole = new ByteWriter().int32(0).int16(0).int32(0)
  if (answer === 'nothing of the partition') return whole.int32(0).finished()
  const { offsets, readable, errorCode } = { offsets: [], readable: -1, errorCode: 0, ...answer }
  const recordSet = Buffer.concat(offsets.map(batchAt))
  const [noneAborted, noReplica] = [-1, -1]
  whole.int32(1).string(where.topic).int32(1).int32(0).int16(errorCode)
  whole.int64(readable).int64(readable).int64(0).int32(noneAborted).int32(noReplica).bytes(recordSet)
  return whole.finished()
}

const nothing = () => Promise.resolve()

/**
 * Returns the offset that a fetch of one partition asks for. In the request, it comes after the wait, the
 * limits, the session, the topic and the epoch.
 */
function offsetOf(body: Buffer): number {
  const behindTopic = 4 * 4 + 1 + 2 * 4 + 4 + 2 + where.topic.length
  return Number(body.readBigInt64BE(behindTopic + 4 + 4 + 4))
}

type Pushed = {
  entry: { resolve(answer: { payload: Buffer }): void; reject(error: Error): void }
  sendRequest: () => void
}

/**
 * Returns a client whose brokers answer by a script. As with kafkajs, partition assigners get its cluster.
 */
function scripted(
  log: { starts: number[]; end: number },
  answerAt: (position: number, count: number) => Answer,
): Scripted {
  const starts = [...log.starts]
  const written: Buffer[] = []
  const connection = {
    clientId: 'sluice',
    sasl: null,
    connectionStatus: 'connected',
    socket: { cork: nothing, uncork: nothing, write: (bytes: Buffer) => written.push(bytes) },
    nextCorrelationId: () => script.asked.length,
    requestQueue: {
      push({ entry, sendRequest }: Pushed) {
        sendRequest()
        const position = offsetOf(written.at(-1) ?? Buffer.alloc(0))
        script.asked.push(position)
        const answer = answerAt(position, script.asked.length)
        if (typeof answer === 'object' && 'error' in answer) {
          entry.reject(answer.error)
          return
        }
        const payload = answerOf(answer)
        if (payload !== undefined) entry.resolve({ payload })
      },
    },
  }
  const broker = {
    versions: { 1: { minVersion: 4, maxVersion: 11 } },
    connectionPool: { getConnectionByRequest: async () => connection },
  }
  const topicMetadata = [
    { topic: where.topic, topicErrorCode: 0, partitionMetadata: [{ partitionId: 0, leader: 1 }] },
  ]
  const cluster = {
    // The broker of the script needs no connections, so nothing may open one.
    connectionPoolBuilder: { build: () => Promise.reject(new Error('the script connects to nothing')) },
    brokerPool: { metadata: { topicMetadata } },
    connect: nothing,
    addTargetTopic: nothing,
    refreshMetadata: () => {
      script.refreshes++
      return Promise.resolve()
    },
    refreshMetadataIfNecessary: nothing,
    findBroker: () => Promise.resolve(broker),
    async fetchTopicsOffset([asked]: { fromBeginning: boolean }[]) {
      const start = starts.length > 1 ? starts.shift() : starts[0]
      return [{ partitions: [{ partition: 0, offset: asked?.fromBeginning === true ? start : log.end }] }]
    },
  }
  const kafka = {
    consumer({ partitionAssigners }: { partitionAssigners: ((given: object) => void)[] }) {
      for (const create of partitionAssigners) create({ cluster })
      return { disconnect: nothing }
    },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the reader uses no other members
  const script: Scripted = { kafka: kafka as unknown as Kafka, asked: [], refreshes: 0 }
  return script
}

const where = { topic: 'memberships', partition: 0, from: 0, stallTimeoutMs: 3_000 }

async function offsetsOf(batches: AsyncIterable<readonly KeyedRecord[]>): Promise<number[]> {
  const offsets: number[] = []
  for await (const batch of batches) offsets.push(...batch.map(({ offset }) => offset))
  return offsets
}

describe('a partition is read to its end', () => {
  test('when its last records were compacted away', async () => {
    const { kafka, asked } = scripted({ starts: [0], end: 100 }, (position) =>
      position < 90 ? { offsets: [position, 89], readable: 100 } : { offsets: [], readable: 100 },
    )
    expect(await offsetsOf(createPartitionReader(kafka).read(where))).toEqual([0, 89])
    expect(asked).toEqual([0, 90, 90, 90])
  })

  test('when a new leader shows nothing for a moment', async () => {
    const { kafka } = scripted({ starts: [0], end: 10 }, (position, count) =>
      count <= 2 ? { offsets: [], readable: 10 } : { offsets: [position, 9], readable: 10 },
    )
    expect(await offsetsOf(createPartitionReader(kafka).read(where))).toEqual([0, 9])
  })

  test('when a new leader does not know of all records for a while', async () => {
    const { kafka } = scripted({ starts: [0], end: 10 }, (position, count) => {
      if (position === 0) return { offsets: [0, 4], readable: 5 }
      return count < 10 ? { offsets: [], readable: 5 } : { offsets: [5, 9], readable: 10 }
    })
    expect(await offsetsOf(createPartitionReader(kafka).read(where))).toEqual([0, 4, 5, 9])
  })

  test('when its leader changes', async () => {
    const script = scripted({ starts: [0], end: 10 }, (position, count) =>
      count === 1
        ? { errorCode: errorCodes.NOT_LEADER_OR_FOLLOWER }
        : { offsets: [position, 9], readable: 10 },
    )
    expect(await offsetsOf(createPartitionReader(script.kafka).read(where))).toEqual([0, 9])
    expect(script.refreshes).toBe(1)
  })

  test('when the broker slows us down', async () => {
    const { kafka } = scripted({ starts: [0], end: 10 }, (position, count) =>
      count < 3 ? 'nothing of the partition' : { offsets: [position, 9], readable: 10 },
    )
    expect(await offsetsOf(createPartitionReader(kafka).read(where))).toEqual([0, 9])
  })

  test('when what is wanted is deleted meanwhile', async () => {
    const { kafka, asked } = scripted({ starts: [0, 5], end: 10 }, (position) =>
      position < 5 ? { errorCode: errorCodes.OFFSET_OUT_OF_RANGE } : { offsets: [5, 9], readable: 10 },
    )
    expect(await offsetsOf(createPartitionReader(kafka).read(where))).toEqual([5, 9])
    expect(asked).toEqual([0, 5])
  })

  test('in pieces that overlap what was read, or go on past the end', async () => {
    const { kafka } = scripted({ starts: [0], end: 6 }, (position) => ({
      offsets: [position - 1, position, position + 1, position + 2].filter(
        (offset) => offset >= 0 && offset < 9,
      ),
      readable: 9,
    }))
    expect(await offsetsOf(createPartitionReader(kafka).read(where))).toEqual([0, 1, 2, 3, 4, 5])
  })
})

describe('a reading fails', () => {
  test.each<[string, Answer]>([
    ['gives no answer', 'never'],
    ['is not the leader', { errorCode: errorCodes.NOT_LEADER_OR_FOLLOWER }],
    ['slows us down', 'nothing of the partition'],
    ['has lost the records', { offsets: [], readable: 3 }],
  ])('when the broker %s for too long', async (_what, answer) => {
    const { kafka } = scripted({ starts: [0], end: 10 }, () => answer)
    const reader = createPartitionReader(kafka)
    const startedMs = performance.now()
    await expect(offsetsOf(reader.read({ ...where, stallTimeoutMs: 600 }))).rejects.toThrow(
      /within 600 ms|is not the leader/,
    )
    // Without `stallTimeoutMs`, it would be a minute.
    expect(performance.now() - startedMs).toBeLessThan(20_000)
  })

  test('at once when it is our own fault', async () => {
    const { kafka, asked } = scripted({ starts: [0], end: 10 }, () => ({ error: new TypeError('a bug') }))
    await expect(offsetsOf(createPartitionReader(kafka).read(where))).rejects.toThrow('a bug')
    expect(asked).toEqual([0])
  })

  test('at once when its signal fires while the broker gives no answer', async () => {
    const { kafka, asked } = scripted({ starts: [0], end: 10 }, () => 'never')
    const ending = new AbortController()
    const reading = offsetsOf(createPartitionReader(kafka).read({ ...where, signal: ending.signal }))
    while (asked.length === 0) await nextTurn()
    ending.abort(new Error('enough'))
    await expect(reading).rejects.toThrow('enough')
  })

  test('at once when its signal fires while it waits for its turn', async () => {
    const { kafka, asked } = scripted({ starts: [0], end: 10 }, () => 'never')
    const reader = createPartitionReader(kafka)
    const others = new AbortController()
    const readings = [1, 2, 3, 4].map(() => offsetsOf(reader.read({ ...where, signal: others.signal })))
    while (asked.length < 4) await nextTurn()
    const ending = new AbortController()
    const fifth = offsetsOf(reader.read({ ...where, signal: ending.signal }))
    await nextTurn()
    expect(asked).toHaveLength(4)
    ending.abort(new Error('enough'))
    await expect(fifth).rejects.toThrow('enough')
    others.abort(new Error('the end'))
    for (const reading of readings) await expect(reading).rejects.toThrow('the end')
  })
})

test('no more than one fetch goes ahead of who takes the records', async () => {
  const { kafka, asked } = scripted({ starts: [0], end: 1_000 }, (position) => ({
    offsets: [position],
    readable: 1_000,
  }))
  const batches = createPartitionReader(kafka).read(where)
  await batches.next()
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  expect(asked).toEqual([0, 1])
  await batches.next()
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  expect(asked).toEqual([0, 1, 2])
  await batches.return()
})

test('a fifth partition is read when one of four is done', async () => {
  const { kafka, asked } = scripted({ starts: [0], end: 2 }, (position) => ({
    offsets: [position],
    readable: 2,
  }))
  const reader = createPartitionReader(kafka)
  const readings = [1, 2, 3, 4].map(() => reader.read(where))
  for (const reading of readings) await reading.next()
  const fifth = reader.read(where)
  const first = fifth.next()
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  expect(asked.filter((position) => position === 0)).toHaveLength(4)
  await readings[2]?.return()
  expect((await first).value?.map(({ offset }) => offset)).toEqual([0])
  for (const reading of [...readings, fifth]) await reading.return()
})
