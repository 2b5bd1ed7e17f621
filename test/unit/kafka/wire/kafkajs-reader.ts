import { createRequire } from 'node:module'
import type { FetchedRecord } from '../../../../src/kafka/wire/record-batch.ts'

/** A record as kafkajs returns it. */
type TheirRecord = Omit<FetchedRecord, 'offset' | 'timestampMs'> & { offset: string; timestamp: string }

const require = createRequire(import.meta.url)
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for it
const decodeMessages = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js') as (
  decoder: unknown,
) => Promise<TheirRecord[]>
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares no types for it
const Decoder = require('kafkajs/src/protocol/decoder.js') as new (bytes: Buffer) => unknown

/**
 * Reads batches with the reader of kafkajs, and returns the fields that `plain` returns. Call
 * `registerCodecs` before.
 */
export async function readAsKafkajs(batches: Buffer): Promise<ReturnType<typeof plain>[]> {
  const length = Buffer.alloc(4)
  length.writeInt32BE(batches.length)
  const records = await decodeMessages(new Decoder(Buffer.concat([length, batches])))
  return records.map(({ offset, timestamp, ...record }) =>
    plain({ ...record, offset: Number(offset), timestampMs: Number(timestamp) }),
  )
}

/** Returns the fields of a record that kafkajs reads too. */
export function plain(record: FetchedRecord) {
  const { offset, timestampMs, key, value, headers, isControlRecord, batchContext } = record
  const { producerId, inTransaction } = batchContext
  return { offset, timestampMs, key, value, headers, isControlRecord, producerId, inTransaction }
}
