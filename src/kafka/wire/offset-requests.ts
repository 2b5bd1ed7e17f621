import { ByteReader, ByteWriter } from './bytes.ts'
import type { WireRequest } from './wire-request.ts'

// Requests for the offsets at which logs begin and end, and for the offsets at which leader epochs end.
// Source: the Kafka protocol, ListOffsets and OffsetForLeaderEpoch APIs.

/** A partition that a request asks about. */
export type OffsetQuestion = {
  readonly topic: string
  readonly partition: number
  /**
   * The leader epoch that this client knows. A broker that knows another epoch answers with an error. With
   * -1, the broker doesn't compare epochs.
   */
  readonly currentLeaderEpoch: number
}

export type EpochQuestion = OffsetQuestion & { readonly leaderEpoch: number }

export type OffsetAnswer = {
  readonly topic: string
  readonly partition: number
  readonly errorCode: number
  readonly offset: number
}

export type EpochAnswer = {
  readonly topic: string
  readonly partition: number
  readonly errorCode: number
  /** The latest epoch of the log that isn't later than the requested epoch. -1 if there is no such epoch. */
  readonly leaderEpoch: number
  /** The offset after the last record of the epoch `leaderEpoch`. -1 if there is no such epoch. */
  readonly endOffset: number
}

const noReplica = -1
const readUncommitted = 0
/**
 * Kafka's codes for the start and the end of a log. A request has such a code in the field that can also have
 * a time.
 */
const times = { start: -2, end: -1 } as const

/**
 * Builds a request for the first offsets of logs (`start`), or for their ends (`end`). The end is the offset
 * after the last record that all in-sync replicas have.
 */
export function listOffsetsRequest(
  questions: readonly OffsetQuestion[],
  place: keyof typeof times,
): WireRequest<readonly OffsetAnswer[]> {
  return {
    apiKey: 2,
    apiName: 'ListOffsets',
    lowest: 1,
    highest: 5,
    write(version) {
      const out = new ByteWriter().int32(noReplica)
      if (version >= 2) out.int8(readUncommitted)
      return byTopic(out, questions, ({ partition, currentLeaderEpoch }) => {
        out.int32(partition)
        if (version >= 4) out.int32(currentLeaderEpoch)
        out.int64(times[place])
      }).finished()
    },
    read(body, version) {
      const reader = new ByteReader(body)
      if (version >= 2) reader.int32()
      return eachPartition(reader, (topic) => {
        const partition = reader.int32()
        const errorCode = reader.int16()
        // Skips the time of the record, which is set only if the request has asked for a time.
        reader.int64()
        const offset = reader.int64()
        if (version >= 4) reader.int32()
        return { topic, partition, errorCode, offset }
      })
    },
  }
}

/**
 * Builds a request for the offsets at which leader epochs end. Needs a broker of Kafka 2.3 or later. Earlier
 * brokers require more rights than a consumer has.
 */
export function epochEndRequest(questions: readonly EpochQuestion[]): WireRequest<readonly EpochAnswer[]> {
  return {
    apiKey: 23,
    apiName: 'OffsetForLeaderEpoch',
    lowest: 3,
    highest: 3,
    write() {
      const out = new ByteWriter().int32(noReplica)
      return byTopic(out, questions, ({ partition, currentLeaderEpoch, leaderEpoch }) => {
        out.int32(partition).int32(currentLeaderEpoch).int32(leaderEpoch)
      }).finished()
    },
    read(body) {
      const reader = new ByteReader(body)
      reader.int32()
      return eachPartition(reader, (topic) => {
        const errorCode = reader.int16()
        const partition = reader.int32()
        const leaderEpoch = reader.int32()
        return { topic, partition, errorCode, leaderEpoch, endOffset: reader.int64() }
      })
    },
  }
}

function byTopic<T extends OffsetQuestion>(
  out: ByteWriter,
  questions: readonly T[],
  write: (question: T) => void,
): ByteWriter {
  const topics = Map.groupBy(questions, ({ topic }) => topic)
  return out.array([...topics], ([topic, partitions]) => void out.string(topic).array(partitions, write))
}

function eachPartition<T>(reader: ByteReader, read: (topic: string) => T): T[] {
  const topics = reader.array(() => {
    const topic = reader.string()
    return reader.array(() => read(topic))
  })
  return topics.flat()
}
