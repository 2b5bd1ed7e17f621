import { kafkajsFile } from './kafkajs-file.ts'
import { type FetchedRecord, isRecordBatch, readRecordBatches } from './record-batch.ts'

/** Fetch requests and their answers as bytes. Source: the Kafka protocol, Fetch API, version 11. */

export const fetchApiKey = 1
export const fetchVersion = 11

/** From where on a partition is read. Offsets are decimal texts, as kafkajs has them. */
export type FetchPosition = { readonly topic: string; readonly partition: number; readonly offset: string }

export type FetchRequest = {
  /** How long the broker may wait for `minBytes`, in milliseconds. */
  readonly maxWaitMs: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
  readonly isolationLevel: number
  readonly sessionId: number
  readonly sessionEpoch: number
  readonly positions: readonly FetchPosition[]
  /** What the session is to read no longer. */
  readonly forgotten: readonly Pick<FetchPosition, 'topic' | 'partition'>[]
}

export type FetchedPartition = {
  readonly partition: number
  readonly errorCode: number
  readonly highWatermark: string
  readonly lastStableOffset: string
  readonly abortedTransactions: readonly { readonly producerId: string; readonly firstOffset: string }[]
  readonly messages: readonly FetchedRecord[]
}

export type FetchResponse = {
  readonly clientSideThrottleTime: number
  readonly errorCode: number
  readonly sessionId: number
  readonly responses: readonly { readonly topicName: string; readonly partitions: FetchedPartition[] }[]
}

const noReplica = -1
const unknown = -1
const headBytes = 4 + 4 + 4 + 4 + 1 + 4 + 4
const partitionBytes = 4 + 4 + 8 + 8 + 4

export function writeFetchRequest(request: FetchRequest): Buffer {
  const read = Map.groupBy(request.positions, topicOf)
  const forgotten = Map.groupBy(request.forgotten, topicOf)
  const bytes = Buffer.allocUnsafe(
    headBytes +
      4 +
      namesLength(read) +
      request.positions.length * partitionBytes +
      4 +
      namesLength(forgotten) +
      request.forgotten.length * 4 +
      2,
  )
  let at = 0
  const int32 = (value: number): void => void (at = bytes.writeInt32BE(value, at))
  const name = (text: string): void => {
    at = bytes.writeInt16BE(Buffer.byteLength(text), at)
    at += bytes.write(text, at)
  }
  int32(noReplica)
  int32(request.maxWaitMs)
  int32(request.minBytes)
  int32(request.maxBytes)
  at = bytes.writeInt8(request.isolationLevel, at)
  int32(request.sessionId)
  int32(request.sessionEpoch)
  int32(read.size)
  for (const [topic, positions] of read) {
    name(topic)
    int32(positions.length)
    for (const { partition, offset } of positions) {
      int32(partition)
      // The leader's epoch, and where a follower's log begins: a consumer has neither.
      int32(unknown)
      at = bytes.writeBigInt64BE(BigInt(offset), at)
      at = bytes.writeBigInt64BE(-1n, at)
      int32(request.maxBytesPerPartition)
    }
  }
  int32(forgotten.size)
  for (const [topic, partitions] of forgotten) {
    name(topic)
    int32(partitions.length)
    for (const { partition } of partitions) int32(partition)
  }
  // No rack: the leader is asked.
  at = bytes.writeInt16BE(0, at)
  return bytes
}

const topicOf = ({ topic }: { readonly topic: string }): string => topic

/** With the length of each, and the number of its partitions. */
function namesLength(topics: ReadonlyMap<string, unknown>): number {
  let length = 0
  for (const topic of topics.keys()) length += 2 + Buffer.byteLength(topic) + 4
  return length
}

/** Key and value of records are slices of `bytes`. */
export async function readFetchResponse(bytes: Buffer): Promise<FetchResponse> {
  const reader = new ResponseReader(bytes)
  const clientSideThrottleTime = reader.int32()
  const errorCode = reader.int16()
  const sessionId = reader.int32()
  const responses: { topicName: string; partitions: FetchedPartition[] }[] = []
  for (let topics = reader.int32(); topics > 0; topics--) {
    const topicName = reader.text()
    const partitions: FetchedPartition[] = []
    for (let count = reader.int32(); count > 0; count--) partitions.push(await readPartition(reader))
    responses.push({ topicName, partitions })
  }
  return { clientSideThrottleTime, errorCode, sessionId, responses }
}

async function readPartition(reader: ResponseReader): Promise<FetchedPartition> {
  const partition = reader.int32()
  const errorCode = reader.int16()
  const highWatermark = reader.int64()
  const lastStableOffset = reader.int64()
  // Where the log begins.
  reader.int64()
  const abortedTransactions: { producerId: string; firstOffset: string }[] = []
  for (let count = reader.int32(); count > 0; count--)
    abortedTransactions.push({ producerId: reader.int64(), firstOffset: reader.int64() })
  // From which replica it should be read, for a consumer that has a rack.
  reader.int32()
  const messages = await readRecordSet(reader)
  return { partition, errorCode, highWatermark, lastStableOffset, abortedTransactions, messages }
}

async function readRecordSet(reader: ResponseReader): Promise<readonly FetchedRecord[]> {
  const start = reader.at
  const length = reader.int32()
  if (length <= 0) return none
  const bytes = reader.slice(length)
  return isRecordBatch(bytes) ? readRecordBatches(bytes) : readOldMessages(reader.bytes, start)
}

const none: readonly FetchedRecord[] = []

/** What was written before Kafka 0.11 is left to kafkajs. */
async function readOldMessages(bytes: Buffer, start: number): Promise<readonly FetchedRecord[]> {
  type DecoderClass = new (bytes: Buffer) => { offset: number }
  type DecodeMessages = (decoder: object) => Promise<readonly FetchedRecord[]>
  const Decoder = kafkajsFile<DecoderClass>('kafkajs/src/protocol/decoder.js')
  const decodeMessages = kafkajsFile<DecodeMessages>(
    'kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js',
  )
  return decodeMessages(Object.assign(new Decoder(bytes), { offset: start }))
}

class ResponseReader {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  int16(): number {
    this.at += 2
    return this.bytes.readInt16BE(this.at - 2)
  }

  int32(): number {
    this.at += 4
    return this.bytes.readInt32BE(this.at - 4)
  }

  int64(): string {
    this.at += 8
    return String(this.bytes.readBigInt64BE(this.at - 8))
  }

  text(): string {
    const length = this.int16()
    this.at += length
    return this.bytes.toString('utf8', this.at - length, this.at)
  }

  slice(length: number): Buffer {
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }
}
