import { ByteReader, ByteWriter } from './bytes.ts'
import type { WireRequest } from './wire-request.ts'

// Fetch requests and their answers as bytes. Source: the Kafka protocol, Fetch API, versions 4 to 11.

const fetchApiKey = 1
/**
 * The first version whose answers have record batches in the present format. Brokers before Kafka 2.3 don't
 * know all fields of a request, so requests to these brokers leave out the unknown fields.
 */
const lowest = 4
const highest = 11

/** The position from which a partition is read. */
export type FetchPosition = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /**
   * The leader epoch that this client knows. A broker that knows another leader epoch answers with an error.
   * With -1, the broker doesn't compare epochs.
   */
  readonly leaderEpoch: number
  /** The most bytes that one answer brings of this partition. Default: `maxBytesPerPartition`. */
  readonly maxBytes?: number | undefined
}

export type FetchRequest = {
  /** The longest time that the broker may wait for `minBytes`, in milliseconds. */
  readonly maxWaitMs: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
  readonly sessionId: number
  readonly sessionEpoch: number
  readonly positions: readonly FetchPosition[]
  /** The partitions that the session no longer reads. */
  readonly forgotten: readonly Pick<FetchPosition, 'topic' | 'partition'>[]
}

export type AbortedTransaction = { readonly producerId: string; readonly firstOffset: number }

export type FetchedPartition = {
  readonly partition: number
  readonly errorCode: number
  /** The offset after the last record that all in-sync replicas have. */
  readonly highWatermark: number
  /**
   * The first offset of the first transaction that is still open, or `highWatermark` if no transaction is
   * open. -1 if the broker doesn't report it.
   */
  readonly lastStableOffset: number
  /** The first offset that the log still has. -1 if the broker doesn't report it. */
  readonly logStart: number
  readonly abortedTransactions: readonly AbortedTransaction[]
  /** Record batches, as a slice of the answer. The last batch may be incomplete. */
  readonly recordSet: Buffer
}

export type FetchAnswer = {
  readonly clientSideThrottleTime: number
  readonly errorCode: number
  readonly sessionId: number
  readonly responses: readonly {
    readonly topicName: string
    readonly partitions: readonly FetchedPartition[]
  }[]
}

export function fetchRequest(request: FetchRequest): WireRequest<FetchAnswer> {
  return {
    apiKey: fetchApiKey,
    apiName: 'Fetch',
    lowest,
    highest,
    write: (version) => writeFetchRequest(request, version),
    read: readFetchAnswer,
  }
}

/** The isolation level at which a broker sends no records of open transactions. */
const readCommitted = 1

const noReplica = -1

export function writeFetchRequest(request: FetchRequest, version = highest): Buffer {
  const out = new ByteWriter()
  out.int32(noReplica).int32(request.maxWaitMs).int32(request.minBytes).int32(request.maxBytes)
  out.int8(readCommitted)
  if (version >= 7) out.int32(request.sessionId).int32(request.sessionEpoch)
  out.array([...Map.groupBy(request.positions, topicOf)], ([topic, positions]) => {
    out.string(topic).array(positions, ({ partition, offset, leaderEpoch, maxBytes }) => {
      out.int32(partition)
      if (version >= 9) out.int32(leaderEpoch)
      out.int64(offset)
      // Followers write the start of their log here. A consumer has no log.
      if (version >= 5) out.int64(-1)
      out.int32(maxBytes ?? request.maxBytesPerPartition)
    })
  })
  if (version >= 7) {
    out.array([...Map.groupBy(request.forgotten, topicOf)], ([topic, partitions]) => {
      out.string(topic).array(partitions, ({ partition }) => void out.int32(partition))
    })
  }
  // The id of this client's rack. The id is empty, so the leader itself answers.
  if (version >= 11) out.string('')
  return out.finished()
}

const topicOf = ({ topic }: { readonly topic: string }): string => topic

export function readFetchAnswer(bytes: Buffer, version = highest): FetchAnswer {
  const reader = new ByteReader(bytes)
  const throttleMs = reader.int32()
  // In versions before 8, the broker itself waits for the throttle time before it answers.
  const clientSideThrottleTime = version >= 8 ? throttleMs : 0
  const errorCode = version >= 7 ? reader.int16() : 0
  const sessionId = version >= 7 ? reader.int32() : 0
  const responses = reader.array(() => ({
    topicName: reader.string(),
    partitions: reader.array(() => readPartition(reader, version)),
  }))
  return { clientSideThrottleTime, errorCode, sessionId, responses }
}

function readPartition(reader: ByteReader, version: number): FetchedPartition {
  const partition = reader.int32()
  const errorCode = reader.int16()
  const highWatermark = reader.int64()
  const lastStableOffset = reader.int64()
  const logStart = version >= 5 ? reader.int64() : -1
  const abortedTransactions = reader.array(() => ({
    producerId: String(reader.bigint()),
    firstOffset: reader.int64(),
  }))
  // Skips the preferred replica, which only consumers with a rack use.
  if (version >= 11) reader.int32()
  const recordSet = reader.data()
  return { partition, errorCode, highWatermark, lastStableOffset, logStart, abortedTransactions, recordSet }
}
