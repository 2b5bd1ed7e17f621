import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type ClusterMetadata, parseMetadata } from '../../../src/development/metadata.ts'

const cluster = fc.record({
  clusterId: fc.option(fc.string(), { nil: undefined }),
  brokers: fc.array(
    fc.record({
      id: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
      host: fc.string(),
      port: fc.integer({ min: 1, max: 65_535 }),
    }),
    { maxLength: 5 },
  ),
})

test('brokers and cluster id are read from any answer', () => {
  fc.assert(
    fc.property(cluster, fc.option(fc.string(), { nil: undefined }), (metadata, rack) => {
      expect(parseMetadata(encode(metadata, rack))).toEqual(metadata)
    }),
    { numRuns: 1_000 },
  )
})

test('an answer that was cut off is refused', () => {
  fc.assert(
    fc.property(cluster, fc.nat(), (metadata, cut) => {
      const frame = encode(metadata, undefined)
      // The reader doesn't need the id of the controller and the topics, which are the last 8 bytes.
      const needed = frame.length - 8
      const shorter = frame.subarray(0, cut % needed)
      expect(() => parseMetadata(shorter)).toThrow(RangeError)
    }),
    { numRuns: 1_000 },
  )
})

/** Returns an answer to Metadata, version 4. */
function encode({ clusterId, brokers }: ClusterMetadata, rack: string | undefined): Buffer {
  const described = brokers.flatMap(({ id, host, port }) => [int32(id), text(host), int32(port), text(rack)])
  const controller = int32(1)
  const topics = int32(0)
  return Buffer.concat([
    int32(1),
    int32(0),
    int32(brokers.length),
    ...described,
    text(clusterId),
    controller,
    topics,
  ])
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function text(value: string | undefined): Buffer {
  const bytes = Buffer.from(value ?? '')
  const length = Buffer.alloc(2)
  length.writeInt16BE(value === undefined ? -1 : bytes.length)
  return Buffer.concat([length, bytes])
}
