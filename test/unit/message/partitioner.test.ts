import * as fc from 'fast-check'
import { Partitioners } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { partitionOf } from '../../../src/message/partitioner.ts'

/** Hashes from the tests of Apache Kafka's own client (UtilsTest.testMurmur2). */
const murmur2: readonly (readonly [string, number])[] = [
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
]

const place = Partitioners.DefaultPartitioner()

/** Returns the partition to which kafkajs assigns a record with this key. */
function kafkajsPartition(key: string, partitions: number): number {
  const partitionMetadata = Array.from({ length: partitions }, (_, partitionId) => ({
    partitionId,
    partitionErrorCode: 0,
    leader: 1,
    replicas: [1],
    isr: [1],
  }))
  return place({ topic: 't', partitionMetadata, message: { key, value: '' } })
}

describe('partitionOf', () => {
  test.each(murmur2)('puts %s where Java’s client does', (key, hash) => {
    for (const partitions of [1, 3, 12, 1_000]) {
      expect(partitionOf(key, partitions)).toBe((hash & 0x7fffffff) % partitions)
    }
  })

  test('agrees with kafkajs on every key', () => {
    const key = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 50 }),
      fc.string({ unit: 'grapheme', maxLength: 2_000 }),
      fc.uuid(),
    )
    fc.assert(
      fc.property(key, fc.integer({ min: 1, max: 50 }), (text, partitions) => {
        expect(partitionOf(text, partitions)).toBe(kafkajsPartition(text, partitions))
      }),
      { numRuns: 2_000 },
    )
  })

  test('forgets one key before the next', () => {
    const long = 'x'.repeat(5_000)
    const before = partitionOf('u1', 1_000)
    partitionOf(long, 1_000)
    expect(partitionOf('u1', 1_000)).toBe(before)
  })
})
