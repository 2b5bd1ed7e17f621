import { createRequire } from 'node:module'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type FetchAnswer,
  type FetchRequest,
  readFetchAnswer,
  writeFetchRequest,
} from '../../../../src/kafka/wire/fetch-message.ts'
import { readBatches } from '../../../support/raw-batch.ts'

/** Tests against kafkajs' own writer and reader of the same version. These say what is right. */

const require = createRequire(import.meta.url)
// oxlint-disable typescript/no-unsafe-type-assertion -- kafkajs declares no types for its files
const requestOf = require('kafkajs/src/protocol/requests/fetch/v11/request.js') as (options: object) => {
  encode(): Promise<{ buffer: Buffer }>
}
const responseFile = require('kafkajs/src/protocol/requests/fetch/v11/response.js') as {
  decode(bytes: Buffer): Promise<object>
}
const encodeBatch = require('kafkajs/src/protocol/recordBatch/v0/index.js') as {
  RecordBatch(options: object): Promise<{ buffer: Buffer }>
}
const encodeRecord = require('kafkajs/src/protocol/recordBatch/record/v0/index.js') as (
  options: object,
) => object
// oxlint-enable typescript/no-unsafe-type-assertion

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const offset = fc.bigInt({ min: -2n, max: 2n ** 53n - 1n }).map(String)
const topic = fc.constantFrom('events', 'retry.10m', 'é'.repeat(9), '')
const partition = fc.nat({ max: 1_000 })
const where = { selector: (one: { topic: string; partition: number }) => `${one.topic}/${one.partition}` }
const request: fc.Arbitrary<FetchRequest> = fc.record({
  maxWaitMs: int32,
  minBytes: int32,
  maxBytes: int32,
  maxBytesPerPartition: int32,
  isolationLevel: fc.constant(1),
  sessionId: int32,
  sessionEpoch: int32,
  positions: fc.uniqueArray(
    fc.record({ topic, partition, offset: offset.map(Number), leaderEpoch: int32 }),
    where,
  ),
  forgotten: fc.uniqueArray(fc.record({ topic, partition }), where),
})

test('a request is written as kafkajs would write it', async () => {
  await fc.assert(
    fc.asyncProperty(request, async (one) => {
      const { maxWaitMs, positions, forgotten, maxBytesPerPartition, ...same } = one
      const theirs = requestOf({
        ...same,
        replicaId: -1,
        maxWaitTime: maxWaitMs,
        topics: grouped(positions, ({ partition: id, offset: fetchOffset, leaderEpoch }) => ({
          partition: id,
          currentLeaderEpoch: leaderEpoch,
          fetchOffset,
          maxBytes: maxBytesPerPartition,
        })),
        forgottenTopics: grouped(forgotten, ({ partition: id }) => id),
      })
      expect(writeFetchRequest(one).equals((await theirs.encode()).buffer)).toBe(true)
    }),
    { numRuns: 1_000 },
  )
})

const messages = fc.array(fc.record({ key: fc.option(fc.string()), value: fc.option(fc.string()) }), {
  maxLength: 5,
})
const answered = fc.record({
  partition,
  errorCode: fc.constantFrom(0, 1, 6, -1),
  highWatermark: offset,
  lastStableOffset: offset,
  abortedTransactions: fc.option(
    fc.array(fc.record({ producerId: offset, firstOffset: offset }), { maxLength: 3 }),
  ),
  messages,
})
const response = fc.record({
  clientSideThrottleTime: int32,
  errorCode: fc.constantFrom(0, 70, 71),
  sessionId: int32,
  responses: fc.array(fc.record({ topicName: topic, partitions: fc.array(answered, { maxLength: 3 }) }), {
    maxLength: 3,
  }),
})

test('an answer is read as kafkajs would read it', async () => {
  let records = 0
  await fc.assert(
    fc.asyncProperty(response, async (one) => {
      const bytes = await written(one)
      const ours = await comparable(readFetchAnswer(bytes))
      expect(ours).toEqual(comparableOfTheirs(await responseFile.decode(bytes)))
      for (const { partitions } of ours.responses)
        for (const { messages: read } of partitions) records += read.length
    }),
    { numRuns: 1_000 },
  )
  expect(records).toBeGreaterThan(1_000)
})

type Answer = typeof response extends fc.Arbitrary<infer T> ? T : never

async function written({ clientSideThrottleTime, errorCode, sessionId, responses }: Answer): Promise<Buffer> {
  const parts: Buffer[] = [
    int(clientSideThrottleTime),
    short(errorCode),
    int(sessionId),
    int(responses.length),
  ]
  for (const { topicName, partitions } of responses) {
    const name = Buffer.from(topicName)
    parts.push(short(name.length), name, int(partitions.length))
    for (const one of partitions) {
      const { abortedTransactions: aborted } = one
      parts.push(
        int(one.partition),
        short(one.errorCode),
        long(one.highWatermark),
        long(one.lastStableOffset),
      )
      parts.push(long('0'), int(aborted?.length ?? -1))
      for (const { producerId, firstOffset } of aborted ?? []) parts.push(long(producerId), long(firstOffset))
      const set = one.messages.length === 0 ? Buffer.alloc(0) : await recordSet(one.messages)
      parts.push(int(-1), int(set.length), set)
    }
  }
  return Buffer.concat(parts)
}

async function recordSet(
  all: Answer['responses'][number]['partitions'][number]['messages'],
): Promise<Buffer> {
  const records = all.map(({ key, value }, offsetDelta) =>
    encodeRecord({ offsetDelta, timestampDelta: 0, key, value, headers: {} }),
  )
  const { buffer } = await encodeBatch.RecordBatch({
    firstTimestamp: 1_700_000_000_000,
    maxTimestamp: 1_700_000_000_000,
    lastOffsetDelta: records.length - 1,
    records,
  })
  return buffer
}

async function comparable({ responses, ...head }: FetchAnswer) {
  const read = responses.map(async ({ topicName, partitions }) => ({
    topicName,
    partitions: await Promise.all(
      partitions.map(async ({ recordSet: set, logStart: _always, ...one }) => ({
        ...one,
        messages: (await readBatches(set)).map(({ offset: at, key, value }) => [
          at,
          String(key),
          String(value),
        ]),
      })),
    ),
  }))
  return { ...head, responses: await Promise.all(read) }
}

/** The fields of an answer of kafkajs that these tests read. */
type TheirAnswer = Omit<FetchAnswer, 'responses'> & {
  responses: { topicName: string; partitions: TheirPartition[] }[]
}

type TheirPartition = {
  partition: number
  errorCode: number
  highWatermark: string
  lastStableOffset: string
  abortedTransactions: readonly { producerId: string; firstOffset: string }[]
  messages: { offset: string; key: Buffer | null; value: Buffer | null }[]
}

function comparableOfTheirs(answer: object) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs returns these fields
  const { clientSideThrottleTime, errorCode, sessionId, responses } = answer as TheirAnswer
  return {
    clientSideThrottleTime,
    errorCode,
    sessionId,
    responses: responses.map(({ topicName, partitions }) => ({
      topicName,
      partitions: partitions.map((one) => ({
        partition: one.partition,
        errorCode: one.errorCode,
        highWatermark: Number(one.highWatermark),
        lastStableOffset: Number(one.lastStableOffset),
        abortedTransactions: one.abortedTransactions.map(({ producerId, firstOffset }) => ({
          producerId,
          firstOffset: Number(firstOffset),
        })),
        messages: one.messages.map(({ offset: at, key, value }) => [Number(at), String(key), String(value)]),
      })),
    })),
  }
}

function grouped<P extends { topic: string }, T>(all: readonly P[], of: (one: P) => T) {
  const topics = [...new Set(all.map((one) => one.topic))]
  return topics.map((name) => ({ topic: name, partitions: all.filter((one) => one.topic === name).map(of) }))
}

function short(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function long(value: string): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(value))
  return bytes
}
