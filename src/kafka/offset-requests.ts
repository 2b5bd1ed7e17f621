import { ByteReader, ByteWriter } from './bytes.ts'
import type { WireRequest } from './wire.ts'

/**
 * Where logs begin and end, and where the epochs of their leaders do. Source: the Kafka protocol, ListOffsets
 * and OffsetForLeaderEpoch APIs.
 */

/** What is asked of a partition. */
export type OffsetQuestion = {
  readonly topic: string
  readonly partition: number
  /** The leader's, as far as known: a broker that knows of another one says so. -1: it is not to look. */
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
  /** The latest epoch that isn't after the one that was asked for; -1 where there is none. */
  readonly leaderEpoch: number
  /** One past its last record; -1 where there is none. */
  readonly endOffset: number
}

const noReplica = -1
const readUncommitted = 0
/** Kafka's names of places, in the form of times. */
const times = { start: -2, end: -1 } as const

/** The first offset of logs, or one past their last record that all in-sync replicas have. */
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
        // The time of the record, where one was asked for.
        reader.int64()
        const offset = reader.int64()
        if (version >= 4) reader.int32()
        return { topic, partition, errorCode, offset }
      })
    },
  }
}

/**
 * Where the epochs of leaders end. Needs a broker of Kafka 2.3 or later: those before ask for more rights
 * than a consumer has.
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
