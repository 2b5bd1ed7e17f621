import { gzipSync, zstdCompressSync } from 'node:zlib'
import * as fc from 'fast-check'
import { compressFrameSync } from 'lz4-napi'
import { compressSync as compressSnappySync } from 'snappy'
import { describe, expect, test } from 'vitest'
import { registerCodecs } from '../../../../src/kafka/wire/codecs.ts'
import {
  type FetchedRecord,
  maxRecordHeaders,
  readRecordSet,
} from '../../../../src/kafka/wire/record-batch.ts'
import {
  type BatchFields,
  encodeBatch,
  encodeRecords,
  type RawRecord,
  readBatches,
  varint,
} from '../../../support/raw-batch.ts'
import { plain, readAsKafkajs } from './kafkajs-reader.ts'
import { xerialSync } from '../xerial.ts'

const MIB = 1024 ** 2

function batchOf(records: readonly RawRecord[], fields: BatchFields = {}): Buffer {
  return encodeBatch(encodeRecords(records), { count: records.length, ...fields })
}

const texts = (records: readonly FetchedRecord[]) => records.map(({ value }) => value?.toString() ?? null)
const good = (text: string): RawRecord => ({ key: 'k', value: text, headers: [['source-id', 'shop']] })

describe('a batch is read', () => {
  test('with keys, values, headers, offsets and times', async () => {
    const records = [
      good('a'),
      { key: null, value: null },
      { key: '', value: '', headers: [['x', null] as const] },
    ]
    const read = await readBatches(
      batchOf(records, { baseOffset: 2 ** 40, firstTimestampMs: 1_700_000_000_000 }),
    )
    expect(read).toMatchObject([
      {
        offset: 2 ** 40,
        timestampMs: 1_700_000_000_000,
        key: Buffer.from('k'),
        value: Buffer.from('a'),
        headers: { 'source-id': Buffer.from('shop') },
      },
      { offset: 2 ** 40 + 1, key: null, value: null, headers: {} },
      { offset: 2 ** 40 + 2, key: Buffer.from(''), value: Buffer.from(''), headers: { x: null } },
    ])
  })

  test('with the time of its append, where the topic keeps that', async () => {
    const read = await readBatches(batchOf([good('a')], { attributes: 8, maxTimestampMs: 5 }))
    expect(read[0]?.timestampMs).toBe(5)
  })

  test('with a time before 1970', async () => {
    const read = await readBatches(batchOf([good('a')], { firstTimestampMs: -1 }))
    expect(read[0]?.timestampMs).toBe(-1)
  })

  test.each([
    [-9e15, '0001-01-01T00:00:00.000Z'],
    [-9e18, '0001-01-01T00:00:00.000Z'],
    [9e18, '9999-12-31T23:59:59.999Z'],
  ])('with the nearest time that is one, where the producer wrote %d', async (firstTimestampMs, time) => {
    const read = await readBatches(batchOf([good('a')], { firstTimestampMs }))
    expect(new Date(read[0]?.timestampMs ?? 0).toISOString()).toBe(time)
  })

  test.each([
    ['gzip', 1, gzipSync],
    ['snappy', 2, (bytes: Buffer) => compressSnappySync(bytes)],
    ['snappy in the blocks of Java', 2, xerialSync],
    ['lz4', 3, (bytes: Buffer) => compressFrameSync(bytes)],
    ['zstd', 4, zstdCompressSync],
  ])('in %s', async (_name, attributes, compress) => {
    const records = Array.from({ length: 3_000 }, (_, index) => good(`${index} ${'text '.repeat(20)}`))
    const batch = encodeBatch(compress(encodeRecords(records)), { count: records.length, attributes })
    expect(texts(await readBatches(batch))).toEqual(records.map(({ value }) => value))
  })

  test('and those behind it, but not an incomplete one at the end', async () => {
    const all = Buffer.concat([
      batchOf([good('a')]),
      batchOf([good('b')], { baseOffset: 1 }),
      batchOf([good('c')]),
    ])
    expect(texts(await readBatches(all.subarray(0, -1)))).toEqual(['a', 'b'])
  })

  test('with 130,000 records', async () => {
    const count = 130_000
    const read = await readBatches(batchOf(Array.from({ length: count }, () => ({ value: null }))))
    expect(read).toHaveLength(count)
    expect(read.at(-1)?.offset).toBe(count - 1)
  })
})

async function headersOf(headers: RawRecord['headers'] = []) {
  return (await readBatches(batchOf([{ value: 'a', headers }])))[0]?.headers
}

describe('headers', () => {
  test('that repeat are a list, in their order', async () => {
    const headers = await headersOf([
      ['a', '1'],
      ['b', '2'],
      ['a', null],
      ['a', '3'],
    ])
    expect(headers).toEqual({ a: [Buffer.from('1'), null, Buffer.from('3')], b: Buffer.from('2') })
  })

  test('with the names of what objects have are headers', async () => {
    const headers = await headersOf([
      ['constructor', '1'],
      ['toString', '2'],
      ['toString', '3'],
      ['hasOwnProperty', '4'],
    ])
    expect(Object.entries(headers ?? {})).toEqual([
      ['constructor', Buffer.from('1')],
      ['toString', [Buffer.from('2'), Buffer.from('3')]],
      ['hasOwnProperty', Buffer.from('4')],
    ])
  })

  test('named __proto__ are passed over', async () => {
    const headers = await headersOf([
      ['__proto__', 'x'],
      ['a', '1'],
    ])
    expect(Object.getPrototypeOf(headers)).toBe(Object.prototype)
    expect(headers).toEqual({ a: Buffer.from('1') })
  })

  test('of the same length as those before are read, and the same ones once', async () => {
    const sources = ['shop', 'shop', 'blog', 'shop']
    const sent = sources.map((id): RawRecord => ({ value: 'a', headers: [['source-id', id]] }))
    const read = await readBatches(batchOf([...sent, { value: 'a' }]))
    const ids = read.map(({ headers }) => headers['source-id']?.toString())
    expect(ids).toEqual([...sources, undefined])
    expect(read[1]?.headers).toBe(read[0]?.headers)
  })

  test('that are cut off are damaged, also if none came before', async () => {
    const [record] = await readBatches(encodeBatch(Buffer.from([10, 0, 0, 0, 1, 1]), { count: 1 }))
    expect(record?.unreadable).toContain('ends too soon')
  })

  test('after the first thousand are passed over, and the next record is whole', async () => {
    const many = Array.from({ length: 300_000 }, (_, index) => [`h${index}`, null] as const)
    const batch = batchOf([{ value: 'a', headers: many }, good('b')])
    const read = await readBatches(batch)
    expect(Object.keys(read[0]?.headers ?? {})).toHaveLength(maxRecordHeaders)
    expect(read[1]).toMatchObject({
      offset: 1,
      value: Buffer.from('b'),
      headers: { 'source-id': Buffer.from('shop') },
    })
  })
})

async function sizesOf(bytes: Buffer) {
  return (await readRecordSet(bytes, { passDamaged: false, end: 2 })).sizes
}

describe('the sizes of batches', () => {
  const [small, large] = [batchOf([good('a')]), batchOf([good('b'.repeat(500))], { baseOffset: 1 })]
  const both = Buffer.concat([small, large])

  test('are those that came whole', async () => {
    const [batches, largest] = [2, large.length]
    expect(await sizesOf(both)).toEqual({ batches, bytes: both.length, largest, cut: 0 })
  })

  test.each([12, 61, 300])('tell of the one of which only %d bytes came', async (came) => {
    const { length } = small
    const sizes = await sizesOf(both.subarray(0, length + came))
    expect(sizes).toEqual({ batches: 1, bytes: length, largest: length, cut: large.length })
  })

  test.each([
    ['whose size did not come', both.subarray(0, small.length + 11)],
    ['whose size is none', Buffer.concat([small, Buffer.alloc(20)])],
  ])('tell of none %s', async (_what, bytes) => {
    expect(await sizesOf(bytes)).toMatchObject({ batches: 1, cut: 0 })
  })
})

describe('a batch that can not be read is one record that says so, at its last offset', () => {
  test.each([
    ['gzip', 1, gzipSync],
    ['lz4', 3, (bytes: Buffer) => compressFrameSync(bytes)],
    ['zstd', 4, zstdCompressSync],
  ])('when it is 100 MiB of spaces in %s', async (_name, attributes, compress) => {
    const records = [good('a'), { value: Buffer.alloc(100 * MIB, ' ') }, good('c')]
    const bomb = encodeBatch(compress(encodeRecords(records)), { count: 3, attributes, baseOffset: 7 })
    const before = process.memoryUsage().rss
    const read = await readBatches(Buffer.concat([bomb, batchOf([good('behind')], { baseOffset: 10 })]))
    expect(process.memoryUsage().rss - before).toBeLessThan(90 * MIB)
    expect(read).toMatchObject([
      {
        offset: 9,
        key: null,
        value: null,
        unreadable: expect.stringMatching(
          /^offsets 7 to 9 of the partition can't be read: .* more than 67108864 bytes .* smaller batches$/,
        ),
      },
      { offset: 10, value: Buffer.from('behind') },
    ])
  })

  test('when snappy claims to become 4 GiB', async () => {
    const claim = Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x61])
    const [record] = await readBatches(encodeBatch(claim, { count: 1, attributes: 2 }))
    expect(record?.unreadable).toContain('bytes of memory')
  })

  test('when it holds more records than memory should', async () => {
    const records = zstdCompressSync(Buffer.from('\u000c\0\0\0\u0001\u0001\0'.repeat(300_000), 'latin1'))
    const [record] = await readBatches(encodeBatch(records, { count: 300_000, attributes: 4 }))
    expect(record).toMatchObject({ offset: 299999, unreadable: expect.stringContaining('bytes of memory') })
  })

  test.each([
    ['gzip that is none', 1, Buffer.from('no gzip')],
    ['gzip that ends too soon', 1, gzipSync(encodeRecords([good('a')])).subarray(0, -12)],
    ['snappy that is none', 2, Buffer.from('no snappy at all')],
    ['lz4 that is none', 3, Buffer.from('no lz4 at all')],
    ['zstd that is none', 4, Buffer.from('no zstd at all')],
    ['a codec that nobody knows', 7, Buffer.from('?')],
    ['nothing', 0, Buffer.alloc(0)],
    ['a record of no length', 0, varint(0)],
    ['a record of a negative length', 0, varint(-5)],
    ['a record that is longer than the batch', 0, Buffer.concat([varint(100), Buffer.alloc(50)])],
    ['a length without an end', 0, Buffer.alloc(50, 0xff)],
    ['a key that is longer than its record', 0, Buffer.from([10, 0, 0, 0, 100, 0])],
  ])('when it is %s', async (_name, attributes, content) => {
    const batch = encodeBatch(content, { count: 1, baseOffset: 3, attributes })
    const read = await readBatches(Buffer.concat([batch, batchOf([good('b')], { baseOffset: 4 })]))
    expect(read).toHaveLength(2)
    expect(read[0]).toMatchObject({
      offset: 3,
      unreadable: expect.stringMatching(
        /^offsets 3 to 3 of the partition can't be read: their batch is damaged \(/,
      ),
    })
    expect(read[1]?.value?.toString()).toBe('b')
  })

  test('from the first damaged record on', async () => {
    const content = Buffer.concat([encodeRecords([good('a'), good('b')]), varint(-1), Buffer.alloc(20)])
    const read = await readBatches(encodeBatch(content, { count: 4, baseOffset: 10 }))
    expect(texts(read)).toEqual(['a', 'b', null])
    expect(read[2]).toMatchObject({ offset: 13, unreadable: expect.stringContaining('offsets 12 to 13') })
  })

  test.each([
    ['go back', [0, 1, 1]],
    ['go past the last of the batch', [0, 1, 9]],
  ])('when its offsets %s', async (_name, deltas) => {
    const content = Buffer.concat(
      deltas.map((delta) => {
        const body = Buffer.concat([
          Buffer.from([0]),
          varint(0),
          varint(delta),
          varint(-1),
          varint(-1),
          varint(0),
        ])
        return Buffer.concat([varint(body.length), body])
      }),
    )
    const read = await readBatches(encodeBatch(content, { count: 3 }))
    expect(read.map(({ offset }) => offset)).toEqual([0, 1, 2])
    expect(read[2]?.unreadable).toContain('offsets 2 to 2')
  })

  test('also when it says that it holds fewer than no records', async () => {
    const [record] = await readBatches(encodeBatch(Buffer.alloc(0), { count: -1, lastOffsetDelta: 2 }))
    expect(record).toMatchObject({ offset: 2, unreadable: expect.stringContaining('offsets 0 to 2') })
  })

  test('but a control batch stays one', async () => {
    const [record] = await readBatches(encodeBatch(varint(-1), { count: 1, attributes: 0x30 }))
    expect(record).toMatchObject({ isControlRecord: true, batchContext: { inTransaction: true } })
  })
})

describe('of a batch whose last records were compacted away', () => {
  test('the rest is read, and a marker says where it ends', async () => {
    const read = await readBatches(batchOf([good('a')], { baseOffset: 5, lastOffsetDelta: 4 }))
    expect(read).toMatchObject([
      { offset: 5, isControlRecord: false },
      { offset: 9, isControlRecord: true },
    ])
    expect(read[1]?.unreadable).toBeUndefined()
  })

  test('when all were, the marker remains', async () => {
    const read = await readBatches(batchOf([], { baseOffset: 5, lastOffsetDelta: 4 }))
    expect(read).toMatchObject([{ offset: 9, isControlRecord: true }])
  })
})

test('of a fetch that would take much memory, the first batches are read', async () => {
  const value = Buffer.alloc(3 * MIB, ' ')
  const batches = Array.from({ length: 10 }, (_, baseOffset) =>
    encodeBatch(zstdCompressSync(encodeRecords([{ value }])), { count: 1, baseOffset, attributes: 4 }),
  )
  expect(await readBatches(Buffer.concat(batches))).toHaveLength(3)
})

/** Returns three batches with four records. The batch in the middle has two records. */
function threeBatches(): Buffer[] {
  return [
    batchOf([good('a')]),
    batchOf([good('b'), good('c')], { baseOffset: 1 }),
    batchOf([good('d')], { baseOffset: 3 }),
  ]
}

function readUpTo10(batches: readonly Buffer[], passDamaged = false) {
  return readRecordSet(Buffer.concat(batches), { passDamaged, end: 10 })
}

describe('a batch that is not what was written', () => {
  test('is seen, whichever bit of it was turned', async () => {
    const length = batchOf([good('a')]).length
    for (let bit = 16 * 8; bit < length * 8; bit++) {
      const batch = batchOf([good('a')])
      batch[bit >> 3] = (batch[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      const { records, nextOffset, damage } = await readUpTo10([batch])
      expect({ records, nextOffset }).toEqual({ records: [], nextOffset: -1 })
      expect(damage).toMatch(/its (checksum|format) is/)
    }
  })

  test('ends the reading before it, and is passed over only where that is wanted', async () => {
    const [first = none, second = none, third = none] = threeBatches()
    second[70] = (second[70] ?? 0) ^ 1
    const before = await readUpTo10([first, second, third])
    expect(texts(before.records)).toEqual(['a'])
    expect(before).toMatchObject({ nextOffset: 1, damage: expect.stringContaining('checksum') })
    expect(await readUpTo10([second, third])).toMatchObject({ records: [], nextOffset: -1 })

    const passed = await readUpTo10([second, third], true)
    expect(passed).toMatchObject({ nextOffset: 4, damage: undefined })
    expect(passed.records).toMatchObject([
      { offset: 2, key: null, unreadable: expect.stringMatching(/^offsets 1 to 2 .* damaged at the broker/) },
      { offset: 3, value: Buffer.from('d') },
    ])
  })

  test('may lie about where it ends: what is behind it is read nevertheless', async () => {
    const [, second = none, third = none] = threeBatches()
    second.writeInt32BE(2 ** 30, 23)
    expect((await readUpTo10([second, third], true)).records.map(({ offset }) => offset)).toEqual([2, 3])
    expect((await readUpTo10([second], true)).records.map(({ offset }) => offset)).toEqual([9])
  })

  test('is said where it has no end', async () => {
    const [first = none] = threeBatches()
    first.writeInt32BE(2 ** 30, 8)
    expect(await readUpTo10([first], true)).toMatchObject({
      records: [],
      nextOffset: -1,
      damage: 'its length is wrong',
    })
    expect(await readUpTo10([])).toMatchObject({ records: [], nextOffset: -1, damage: undefined })
  })
})

test('each batch says of which leader it is', async () => {
  const later = batchOf([good('b')], { baseOffset: 1 })
  // The checksum doesn't cover the epoch, because the leader writes it.
  later.writeInt32BE(7, 12)
  const { epochs } = await readRecordSet(Buffer.concat([batchOf([good('a')]), later]), {
    passDamaged: false,
    end: 2,
  })
  expect(epochs).toEqual([
    { from: 0, leaderEpoch: 0 },
    { from: 1, leaderEpoch: 7 },
  ])
})

const none = Buffer.alloc(0)

describe('kafkajs’ own reader', () => {
  registerCodecs()

  const bytes = fc.oneof(
    fc.constant(null),
    fc.string().map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
  )
  const name = fc.oneof(fc.constantFrom('a', 'b', 'source-id'), fc.string({ unit: 'grapheme' })).filter(
    // kafkajs takes the functions that every object has, for example `toString`, for headers with this name.
    (text) => !(text in {}),
  )
  const record = fc.record({
    key: bytes,
    value: bytes,
    headers: fc.array(fc.tuple(name, bytes), { maxLength: 6 }),
  })
  const compress = fc.constantFrom<[number, (content: Buffer) => Buffer]>(
    [0, (content) => content],
    [1, (content) => gzipSync(content)],
    [2, (content) => compressSnappySync(content)],
    [3, (content) => compressFrameSync(content)],
    [4, (content) => zstdCompressSync(content)],
  )
  const batch = fc
    .tuple(
      fc.array(record, { minLength: 1, maxLength: 8 }),
      compress,
      fc.constantFrom(0, 8, 16, 32),
      fc.nat(2 ** 40),
      fc.integer({ min: -1, max: 2 ** 42 }),
    )
    .map(([records, [codec, pack], flags, baseOffset, firstTimestampMs]) =>
      encodeBatch(pack(encodeRecords(records)), {
        count: records.length,
        attributes: codec | flags,
        baseOffset,
        firstTimestampMs,
        maxTimestampMs: firstTimestampMs + 7,
        producerId: flags,
      }),
    )

  test('reads the same from whatever is in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { maxLength: 3 }), async (batches) => {
        const all = Buffer.concat(batches)
        const expected = await readAsKafkajs(all)
        expect((await readBatches(all)).map(plain)).toEqual(expected)
      }),
      { numRuns: 1_000 },
    )
  })
})
