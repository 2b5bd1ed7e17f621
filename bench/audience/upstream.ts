import { randomUUID } from 'node:crypto'
import { type Message, Partitioners, type Producer } from 'kafkajs'
import { partitionOf } from '../../src/message/partitioner.ts'
import { formatTimestamp } from '../../src/message/timestamp.ts'
import { Sync } from '../../src/audience-files/sync.ts'
import { plainKafka } from '../support/plain-kafka.ts'
import { partitions } from '../support/worker-variables.ts'
import { audience, userIdOf } from './users.ts'

export const spaceId = 'shop-audiences'

/** Single changes: one for each of the users 0 to `users` - 1, in this order. */
export type Changes = { users: number; atMs: number; isMember: (number: number) => boolean }

/** A producer for `audience-changes`. A write resolves after Kafka has acknowledged all its records. */
export type Upstream = {
  /**
   * Cuts a whole audience into parts, and returns a function that writes them. So a benchmark can leave out
   * the time for cutting.
   */
  prepareSync(members: Iterable<number>, atMs: number): () => Promise<void>
  writeChanges(changes: Changes): Promise<void>
  close(): Promise<void>
}

/** The size of parts that `sluice audience sync` writes. */
const maxPartBytes = 256 * 1024
/**
 * Number of parts in a request: one for each partition. A request holds the records of a partition as one
 * batch, and a topic limits the size of a batch.
 */
const partsAtOnce = partitions
const changesAtOnce = 5_000

export async function openUpstream(brokers: readonly string[], topic: string): Promise<Upstream> {
  const producer = plainKafka(brokers).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    // The partitions of a new topic sometimes refuse the first writes. With this setting, a record that is
    // written again is on the topic only once.
    idempotent: true,
  })
  await producer.connect()
  return {
    prepareSync(members, atMs) {
      const parts = partsOf(members, atMs)
      return () => sendAll(producer, topic, parts, partsAtOnce)
    },
    writeChanges: (changes) => sendAll(producer, topic, changesOf(changes), changesAtOnce),
    close: () => producer.disconnect(),
  }
}

async function sendAll(
  producer: Producer,
  topic: string,
  records: Iterable<Message>,
  atOnce: number,
): Promise<void> {
  let messages: Message[] = []
  const send = async (): Promise<void> => {
    if (messages.length > 0) await producer.send({ topic, messages, acks: -1 })
    messages = []
  }
  for (const record of records) {
    messages.push(record)
    if (messages.length === atOnce) await send()
  }
  await send()
}

const headers = { 'source-id': spaceId }

function partsOf(members: Iterable<number>, atMs: number): Message[] {
  const head = {
    audienceId: audience.id,
    audienceName: audience.name,
    syncId: randomUUID(),
    snapshotAt: timestampOf(atMs),
  }
  const sync = new Sync({ head, partitions, maxPartBytes })
  try {
    for (const number of members) sync.add(userIdOf(number))
    const parts: { part: number; record: Message }[] = []
    for (let id = 0; id < partitions; id++) {
      let part = 0
      for (const { partition, value } of sync.parts(sync.plan(id))) {
        parts.push({ part: part++, record: { partition, key: null, value: Buffer.from(value), headers } })
      }
    }
    return parts.toSorted((a, b) => a.part - b.part).map(({ record }) => record)
  } finally {
    sync.close()
  }
}

function* changesOf({ users, atMs, isMember }: Changes): Generator<Message> {
  const changedAt = timestampOf(atMs)
  for (let number = 0; number < users; number++) {
    const userId = userIdOf(number)
    const change = {
      type: 'membership',
      audienceId: audience.id,
      audienceName: audience.name,
      userId,
      member: isMember(number),
      changedAt,
    }
    yield {
      partition: partitionOf(userId, partitions),
      key: userId,
      value: JSON.stringify(change),
      headers,
    }
  }
}

function timestampOf(atMs: number): string {
  return formatTimestamp(atMs) ?? ''
}
