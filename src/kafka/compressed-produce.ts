import { compressFrameSync } from 'lz4-napi'
import { crc32c } from './crc32c.ts'
import {
  type ProduceAnswer,
  type ProducedTopic,
  produceRequest,
  writeProduceRequest,
} from './produce-request.ts'
import type { WireRequest } from './wire.ts'

/** Places in a batch. Source: the Kafka protocol, record batch format (magic 2). */
const lengthAt = 8
const uncountedBytes = 12
const checksumAt = 17
const attributesAt = 21
const recordsAt = 61
const lz4 = 3
/** In front of the topics of a request: the transaction, acks, the timeout and their count. */
const topicsAt = 12

/**
 * Records that the leader alone is to have, compressed by LZ4, which all brokers know. What it has acknowledged is lost where it fails before its
 * replicas have followed.
 */
export function compressedRequest(
  topicData: readonly ProducedTopic[],
  timeoutMs: number,
): WireRequest<ProduceAnswer> {
  return {
    ...produceRequest(topicData, timeoutMs),
    write() {
      const written = writeProduceRequest({
        acks: 1,
        timeoutMs,
        topicData,
        producerId: -1n,
        producerEpoch: 0,
        timestampMs: Date.now(),
      })
      return withCompressedBatches(written, topicData)
    },
  }
}

/** The same request, with the records of each of its batches compressed. */
function withCompressedBatches(request: Buffer, topicData: readonly ProducedTopic[]): Buffer {
  const pieces: Buffer[] = []
  let at = topicsAt
  let keptFrom = 0
  for (const { topic, partitions } of topicData) {
    at += 2 + Buffer.byteLength(topic) + 4
    for (let left = partitions.length; left > 0; left--) {
      const start = at + 8
      const end = start + request.readInt32BE(at + 4)
      const batch = compressBatch(request.subarray(start, end))
      const length = Buffer.allocUnsafe(4)
      length.writeInt32BE(batch.length)
      pieces.push(request.subarray(keptFrom, at + 4), length, batch)
      at = end
      keptFrom = end
    }
  }
  pieces.push(request.subarray(keptFrom))
  return Buffer.concat(pieces)
}

function compressBatch(plain: Buffer): Buffer {
  const batch = Buffer.concat([plain.subarray(0, recordsAt), compressFrameSync(plain.subarray(recordsAt))])
  batch.writeInt32BE(batch.length - uncountedBytes, lengthAt)
  batch.writeInt16BE(lz4, attributesAt)
  batch.writeUInt32BE(crc32c(batch, attributesAt, batch.length), checksumAt)
  return batch
}
