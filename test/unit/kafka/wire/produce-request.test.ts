import { createRequire } from 'node:module'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ByteWriter } from '../../../../src/kafka/wire/bytes.ts'
import { crc32c } from '../../../../src/kafka/wire/crc32c.ts'
import { produceRequest, writeProduceRequest } from '../../../../src/kafka/wire/produce-request.ts'
import { readRecordSet } from '../../../../src/kafka/wire/record-batch.ts'
import type { WrittenRecord } from '../../../../src/message/records.ts'

type TopicData = Parameters<typeof writeProduceRequest>[0]['topicData']
type Encoded = { encode: () => Promise<{ buffer: Buffer }> }

const require = createRequire(import.meta.url)
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for it
const kafkajsRequest = require('kafkajs/src/protocol/requests/produce/v3/request.js') as (
  options: object,
) => Encoded
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for it
const Long = require('kafkajs/src/utils/long.js') as { fromValue: (value: bigint) => object }

const timestampAt = [27, 35]

/** Returns the request that kafkajs writes. Its batches have the present time, as kafkajs always writes it. */
async function writtenByKafkajs(
  topicData: TopicData,
  producerId: bigint,
  producerEpoch = 3,
): Promise<Buffer> {
  const { buffer } = await kafkajsRequest({
    acks: -1,
    timeout: 1_500,
    producerId: Long.fromValue(producerId),
    producerEpoch,
    topicData,
  }).encode()
  return buffer
}

/** Returns a copy of a request in which times and checksums are zero, because both depend on the clock. */
function withoutTimes(bytes: Buffer, topicData: TopicData): Buffer {
  const copy = Buffer.from(bytes)
  let at = 12
  for (const { topic, partitions } of topicData) {
    at += 2 + Buffer.byteLength(topic) + 4
    for (let index = 0; index < partitions.length; index++) {
      const start = at + 8
      copy.fill(0, start + 17, start + 21)
      for (const offset of timestampAt) copy.fill(0, start + offset, start + offset + 8)
      at = start + copy.readInt32BE(at + 4)
    }
  }
  return copy
}

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.constantFrom('', 'x'.repeat(64), 'x'.repeat(8_192), 'é漢😀', '\ud800'),
)
const data = fc.oneof(
  text,
  text.map((value) => Buffer.from(value)),
)
const headers = fc.dictionary(text, fc.oneof(data, fc.array(data, { maxLength: 3 })), { maxKeys: 4 })
const record: fc.Arbitrary<WrittenRecord> = fc.record(
  { key: fc.option(data), value: fc.option(data), headers },
  { requiredKeys: ['value'] },
)
const topicData: fc.Arbitrary<TopicData> = fc.array(
  fc.record({
    topic: fc.string({ minLength: 1, maxLength: 30 }),
    partitions: fc.array(
      fc.record({
        partition: fc.nat(1_000),
        firstSequence: fc.nat(),
        messages: fc.array(record, { minLength: 1, maxLength: 70 }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  }),
  { minLength: 1, maxLength: 2 },
)

/** Times up to the year 2096. Their differences need up to 42 bits. */
const timesMs = fc.array(fc.integer({ min: 1, max: 4e12 }), { minLength: 1, maxLength: 20 })

function batchOf(messages: readonly WrittenRecord[]): Buffer {
  const topics = [{ topic: 't', partitions: [{ partition: 0, messages }] }]
  const request = { acks: -1, timeoutMs: 1, producerId: -1n, producerEpoch: 0, timestampMs: 7 }
  return writeProduceRequest({ ...request, topicData: topics }).subarray(12 + 2 + 1 + 4 + 8)
}

describe('a produce request', () => {
  test('is byte for byte what kafkajs writes, but for the time', async () => {
    await fc.assert(
      fc.asyncProperty(topicData, fc.bigInt({ min: -1n, max: 2n ** 62n }), async (topics, producerId) => {
        const request = { acks: -1, timeoutMs: 1_500, topicData: topics, producerId, producerEpoch: 3 }
        const ours = writeProduceRequest({ ...request, timestampMs: Date.now() })
        const theirs = await writtenByKafkajs(topics, producerId)
        expect(withoutTimes(ours, topics).equals(withoutTimes(theirs, topics))).toBe(true)
      }),
      { numRuns: 1_000 },
    )
  })

  test('has the times that records bring, byte for byte as kafkajs writes them', async () => {
    await fc.assert(
      fc.asyncProperty(timesMs, async (times) => {
        // kafkajs takes the last time for the latest one, and compares times as texts.
        const messages = times
          .map((ms) => ms + 4e12)
          .toSorted((a, b) => a - b)
          .map((timestampMs) => ({ key: null, value: 'v', timestampMs, timestamp: timestampMs }))
        const topics = [{ topic: 't', partitions: [{ partition: 0, messages }] }]
        const request = { acks: -1, timeoutMs: 1_500, topicData: topics, producerId: -1n, producerEpoch: 3 }
        const ours = writeProduceRequest({ ...request, timestampMs: 7 })
        expect(ours.equals(await writtenByKafkajs(topics, -1n))).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  test('has the times that records bring in any order, and the latest one for the batch', async () => {
    await fc.assert(
      fc.asyncProperty(timesMs, async (times) => {
        const batch = batchOf(times.map((timestampMs) => ({ value: 'v', timestampMs })))
        const { records } = await readRecordSet(batch, { passDamaged: false, end: Infinity })
        expect(records.map(({ timestampMs }) => timestampMs)).toEqual(times)
        expect(timestampAt.map((at) => Number(batch.readBigInt64BE(at)))).toEqual([
          times[0],
          Math.max(...times),
        ])
      }),
    )
  })

  test('keeps a header without a value, which kafkajs can not write', async () => {
    const given = { none: null, some: [null, 'a', Buffer.alloc(0)] }
    const { records } = await readRecordSet(batchOf([{ value: 'v', headers: given }]), {
      passDamaged: false,
      end: Infinity,
    })
    expect(records[0]?.headers).toEqual({ none: null, some: [null, Buffer.from('a'), Buffer.alloc(0)] })
  })

  test('has the time and the checksum of each batch', () => {
    const topics = [{ topic: 't', partitions: [{ partition: 0, messages: [{ value: 'v' }] }] }]
    const timestampMs = Date.UTC(2026, 2, 1)
    const bytes = writeProduceRequest({
      acks: -1,
      timeoutMs: 1,
      topicData: topics,
      producerId: -1n,
      producerEpoch: 0,
      timestampMs,
    })
    const batch = bytes.subarray(12 + 2 + 1 + 4 + 8)
    expect(timestampAt.map((at) => Number(batch.readBigInt64BE(at)))).toEqual([timestampMs, timestampMs])
    expect(batch.readUInt32BE(17)).toBe(crc32c(batch, 21, batch.length))
  })
})

const answer = fc.array(
  fc.record({
    topicName: fc.string({ maxLength: 30 }),
    partitions: fc.array(
      fc.record({
        partition: fc.nat(1_000),
        errorCode: fc.nat(90),
        baseOffset: fc.integer({ min: -1, max: 2 ** 50 }),
        appendedMs: fc.integer({ min: -1, max: 2 ** 50 }),
      }),
      { maxLength: 3 },
    ),
  }),
  { maxLength: 3 },
)

type TheirAnswer = {
  topics: {
    topicName: string
    partitions: { partition: number; errorCode: number; baseOffset: string; logAppendTime: string }[]
  }[]
}

test.each([3, 5, 7])('an answer of version %s is read as kafkajs reads it', async (version) => {
  const file = `kafkajs/src/protocol/requests/produce/v${version}/response.js`
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for it
  const response = require(file) as { decode(bytes: Buffer): Promise<TheirAnswer> }
  await fc.assert(
    fc.asyncProperty(answer, async (topics) => {
      const out = new ByteWriter()
      out.array(topics, ({ topicName, partitions }) => {
        out.string(topicName).array(partitions, ({ partition, errorCode, baseOffset, appendedMs }) => {
          out.int32(partition).int16(errorCode).int64(baseOffset).int64(appendedMs)
          if (version >= 5) out.int64(0)
        })
      })
      const bytes = out.int32(70).finished()
      const ours = await produceRequest([], 1).read(bytes, version)
      expect(ours).toEqual({ clientSideThrottleTime: version >= 6 ? 70 : 0, topics })
      const theirs = (await response.decode(bytes)).topics.map(({ topicName, partitions }) => ({
        topicName,
        partitions: partitions.map(({ partition, errorCode, baseOffset, logAppendTime }) => ({
          partition,
          errorCode,
          baseOffset: Number(baseOffset),
          appendedMs: Number(logAppendTime),
        })),
      }))
      expect(ours.topics).toEqual(theirs)
    }),
  )
})

describe('crc32c', () => {
  test.each([
    // RFC 3720, B.4, and the check value of the catalogue of CRCs.
    ['32 zeros', Buffer.alloc(32), 0x8a9136aa],
    ['32 ones', Buffer.alloc(32, 0xff), 0x62a8ab43],
    ['0 to 31', Buffer.from(Array.from({ length: 32 }, (_, index) => index)), 0x46dd794e],
    ['digits', Buffer.from('123456789'), 0xe3069283],
    ['nothing', Buffer.alloc(0), 0],
  ])('of %s is known', (_, bytes, expected) => {
    expect(crc32c(bytes, 0, bytes.length)).toBe(expected)
  })

  test('is the same a byte at a time, of any part of any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(20), (bytes, skip) => {
        const start = Math.min(skip, bytes.length)
        let crc = 0xff_ff_ff_ff
        for (const byte of bytes.subarray(start)) {
          crc ^= byte
          for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
        }
        expect(crc32c(bytes, start, bytes.length)).toBe(~crc >>> 0)
      }),
      { numRuns: 1_000 },
    )
  })
})
