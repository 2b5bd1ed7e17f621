import kafkajs from 'kafkajs'
import type { PartwiseCluster } from '../cluster/partwise-cluster.ts'
import { errorCodes, protocolError } from '../wire/error-codes.ts'
import { listOffsetsRequest, type OffsetAnswer } from '../wire/offset-requests.ts'
import { ask } from '../wire/wire-request.ts'
import type { LogOptions, LogRange } from './log-reader.ts'

/** What one look says of a topic. */
export type TopicRanges = {
  /** The topic's id. `undefined` if the brokers give topics no ids. */
  readonly topicId: string | undefined
  /** The ranges of the partitions' logs. Partitions whose leaders don't answer now are left out. */
  readonly ranges: ReadonlyMap<number, LogRange>
}

/** Asks each leader once for the ranges of its partitions, and one broker for the topic's id. */
export async function askRanges(
  brokers: PartwiseCluster,
  inTurn: LogOptions['inTurn'],
  { topic, partitions }: { readonly topic: string; readonly partitions: readonly number[] },
): Promise<TopicRanges> {
  await inTurn(async (cluster) => {
    await cluster.connect()
    await cluster.addTargetTopic(topic)
    await cluster.refreshMetadata()
  })
  const reported = brokers.metadata?.topicMetadata.find((one) => one.topic === topic)
  if (reported === undefined) throw new kafkajs.KafkaJSError(`${topic} is not known`)
  if (reported.topicErrorCode !== errorCodes.NONE) throw protocolError(reported.topicErrorCode)
  const leaders = new Map(reported.partitionMetadata.map(({ partitionId, leader }) => [partitionId, leader]))
  const byLeader = Map.groupBy(partitions, (partition) => leaders.get(partition) ?? -1)
  const ranges = new Map<number, LogRange>()
  const asked = [...byLeader].map(async ([leader, led]) => {
    const [starts, ends] = await askLeader(brokers, leader, { topic, partitions: led })
    for (const [partition, end] of ends) {
      const start = starts.get(partition)
      if (start !== undefined) ranges.set(partition, { start, end })
    }
  })
  await Promise.all(asked)
  return { topicId: reported.topicId, ranges }
}

type Offsets = ReadonlyMap<number, number>

async function askLeader(
  brokers: PartwiseCluster,
  leader: number,
  { topic, partitions }: { readonly topic: string; readonly partitions: readonly number[] },
): Promise<readonly [starts: Offsets, ends: Offsets]> {
  if (leader < 0) return [new Map(), new Map()]
  const questions = partitions.map((partition) => ({ topic, partition, currentLeaderEpoch: -1 }))
  try {
    const broker = await brokers.findBroker(leader)
    const [starts, ends] = await Promise.all([
      ask(broker, listOffsetsRequest(questions, 'start')),
      ask(broker, listOffsetsRequest(questions, 'end')),
    ])
    return [offsetsOf(starts), offsetsOf(ends)]
  } catch {
    // The partitions of this leader are left out, and the others are found.
    return [new Map(), new Map()]
  }
}

function offsetsOf(answers: readonly OffsetAnswer[]): Offsets {
  return new Map(
    answers.flatMap(({ partition, errorCode, offset }) =>
      errorCode === errorCodes.NONE ? [[partition, offset]] : [],
    ),
  )
}
