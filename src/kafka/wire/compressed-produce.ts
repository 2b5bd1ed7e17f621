import { compressFrameSync } from 'lz4-napi'
import { afterLength, attributesAt, checksumAt, lengthAt, recordsAt } from './batch-layout.ts'
import { crc32c } from './crc32c.ts'
import { type ProduceAnswer, type ProducedTopic, produceRequest, writeRecordsNow } from './produce-request.ts'
import type { WireRequest } from './wire-request.ts'

/** The value of `acks` that makes the broker answer as soon as the leader alone has the records. */
const acksOfLeader = 1
const lz4 = 3
/**
 * The index of the byte at which the list of topics begins in a produce request. The transaction's id, the
 * acks, the timeout and the number of topics come before it.
 */
const topicsAt = 12

/**
 * Returns a request that writes records compressed by LZ4, a codec that all brokers know. The leader alone
 * acknowledges the records. So if the leader fails before its replicas have copied them, acknowledged records
 * are lost.
 */
export function compressedRequest(
  topicData: readonly ProducedTopic[],
  timeoutMs: number,
): WireRequest<ProduceAnswer> {
  return {
    ...produceRequest(topicData, timeoutMs),
    write: () => withCompressedBatches(writeRecordsNow(topicData, timeoutMs, acksOfLeader), topicData),
  }
}

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
  batch.writeInt32BE(batch.length - afterLength, lengthAt)
  batch.writeInt16BE(lz4, attributesAt)
  batch.writeUInt32BE(crc32c(batch, attributesAt, batch.length), checksumAt)
  return batch
}
