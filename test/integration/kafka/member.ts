import { startConsumer } from '../../../src/kafka/group/consumer.ts'
import { otherProgram } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import type { ConsumerOptions, GroupConsumer } from '../../../src/kafka/group/consumer.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import { quietLog } from '../../support/emitted-lines.ts'

/** A member of a group in this process, and the records that it received. */
export type Member = {
  consumer: GroupConsumer
  /** The records in the order of arrival. */
  received: ReceivedRecord[]
  /** Returns the `topic/partition` of each partition that the member owns, sorted. */
  owned(): string[]
}

export type ReceivedRecord = {
  topic: string
  partition: number
  offset: number
  text: string
  timestampMs: number
  atMs: number
  mayHaveBegun: boolean
  settle(): void
}

const quiet = quietLog

export type MemberOptions = Pick<ConsumerOptions, 'groupId' | 'topics' | 'prepare' | 'released'> & {
  instanceId?: string
  /** The number of partitions of the layout. The default is the number that the topics have. */
  partitions?: number
  onTruncation?: ConsumerOptions['onTruncation']
  onFatal?: (error: Error) => void
  kafka?: ConsumerOptions['kafka']
  onRecord?: (record: HeldRecord) => void
  commitIntervalMs?: number
  sessionTimeoutMs?: number
  handoverMs?: number
  log?: ConsumerOptions['log']
}

/**
 * Starts a member and waits until it has its partitions. Without `onRecord`, every record settles at once.
 */
export async function startMember(options: MemberOptions): Promise<Member> {
  const member = await beginMember(options)
  await until('the member has joined', () => member.consumer.isJoined)
  return member
}

/** Starts a member and doesn't wait for its partitions. */
export async function beginMember(options: MemberOptions): Promise<Member> {
  const received: ReceivedRecord[] = []
  const { onRecord = (record: HeldRecord) => record.settle() } = options
  const consumer = await startConsumer({
    kafka: workerKafka(),
    sessionTimeoutMs: 6_000,
    commitIntervalMs: 500,
    handoverMs: 8_000,
    log: quiet,
    partitions: options.partitions ?? (await mostPartitions(options.topics.map(({ topic }) => topic))),
    onTruncation: 'earliest',
    onFatal(error) {
      throw error
    },
    ...options,
    onRecord(record, { value }) {
      const { topic, partition, offset, timestampMs, mayHaveBegun } = record
      received.push({
        topic,
        partition,
        offset,
        text: String(value),
        timestampMs,
        atMs: Date.now(),
        mayHaveBegun: mayHaveBegun === true,
        settle: () => record.settle(),
      })
      onRecord(record)
    },
    onAssigned() {},
  })
  return {
    consumer,
    received,
    owned: () => [...consumer.partitions].map(({ topic, id }) => `${topic}/${id}`).sort(),
  }
}

async function mostPartitions(topics: readonly string[]): Promise<number> {
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    const existing = new Set(await admin.listTopics())
    const { topics: found } = await admin.fetchTopicMetadata({
      topics: topics.filter((topic) => existing.has(topic)),
    })
    return Math.max(...found.map(({ partitions }) => partitions.length))
  } finally {
    await admin.disconnect()
  }
}

/** Returns the committed offset of each partition, by `topic/partition`. It is -1 if there is none. */
export async function committedOffsets(groupId: string, topics: string[]): Promise<Record<string, number>> {
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    const fetched = await admin.fetchOffsets({ groupId, topics })
    return Object.fromEntries(
      fetched.flatMap(({ topic, partitions }) =>
        partitions.map(({ partition, offset }) => [`${topic}/${partition}`, Number(offset)]),
      ),
    )
  } finally {
    await admin.disconnect()
  }
}

/** Returns the end of each partition, by `topic/partition`. The end is one more than the last offset. */
export async function endOffsets(topics: readonly string[]): Promise<Record<string, number>> {
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    const ends: Record<string, number> = {}
    for (const topic of topics) {
      for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
        ends[`${topic}/${partition}`] = Number(high)
      }
    }
    return ends
  } finally {
    await admin.disconnect()
  }
}
