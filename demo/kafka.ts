import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs, { type Admin, type IHeaders, type Kafka, type Producer } from 'kafkajs'

/** The headers of a dead letter, as text. */
export type DeadLetter = Readonly<Record<string, string>>

const readTimeoutMs = 20_000

/** Creates a Kafka client without any code of Sluice, as any other program would. */
export function createClient(brokers: readonly string[]): Kafka {
  return new kafkajs.Kafka({
    brokers: [...brokers],
    clientId: 'sluice-demo',
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { initialRetryTime: 200, maxRetryTime: 2_000, retries: 8 },
  })
}

export async function startProducer(kafka: Kafka): Promise<Producer> {
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  return producer
}

/** Reads all dead letters that the topic has now. Rejects if this takes longer than `readTimeoutMs`. */
export async function readDeadLetters(kafka: Kafka, topic: string): Promise<DeadLetter[]> {
  const ends = await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic))
  const unread = new Map(
    ends.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, Number(high)]),
  )
  const letters: DeadLetter[] = []
  if (unread.size === 0) return letters
  const consumer = kafka.consumer({
    groupId: `${topic}.reader-${randomBytes(4).toString('hex')}`,
    maxWaitTimeInMs: 100,
  })
  const { promise: hasAll, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(
    () => reject(new Error(`${topic} could not be read in ${readTimeoutMs / 1000} s`)),
    readTimeoutMs,
  )
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        letters.push(...batch.messages.map(({ headers }) => textHeaders(headers)))
        if (Number(batch.lastOffset()) + 1 >= (unread.get(batch.partition) ?? Infinity)) {
          unread.delete(batch.partition)
        }
        if (unread.size === 0) resolve()
      },
    })
    await hasAll
  } finally {
    clearTimeout(timer)
    await consumer.disconnect()
  }
  return letters
}

/**
 * Returns for each topic the number of records above the group's committed offsets. The
 * numbers come from Kafka, not from Sluice.
 */
async function readLeft(
  kafka: Kafka,
  groupId: string,
  topics: readonly string[],
): Promise<Map<string, number>> {
  return withAdmin(kafka, async (admin) => {
    const committed = await admin.fetchOffsets({ groupId, topics: [...topics] })
    const left = new Map<string, number>()
    for (const { topic, partitions } of committed) {
      const at = new Map(partitions.map(({ partition, offset }) => [partition, Number(offset)]))
      const ends = await admin.fetchTopicOffsets(topic)
      const open = ends.map(({ partition, low, high }) => {
        return Number(high) - Math.max(at.get(partition) ?? -1, Number(low))
      })
      left.set(
        topic,
        open.reduce((sum, count) => sum + count, 0),
      )
    }
    return left
  })
}

/**
 * Waits until the group has committed all records of the topics, but at most `timeoutMs`. The worker commits
 * a moment after a record is settled. Returns for each topic the number of records that are still above the
 * committed offsets.
 */
export async function readLeftAtRest(
  kafka: Kafka,
  groupId: string,
  topics: readonly string[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const left = await readLeft(kafka, groupId, topics)
    if ([...left.values()].every((count) => count === 0) || performance.now() > deadline) return left
    await sleep(500, undefined, { signal })
  }
}

/** Removes the demo's topics and groups from a Kafka that the demo has not started. */
export async function removeTopics(kafka: Kafka, prefix: string, groupId: string): Promise<void> {
  await withAdmin(kafka, async (admin) => {
    const own = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
    if (own.length > 0) await admin.deleteTopics({ topics: own, timeout: 15_000 })
    const { groups } = await admin.listGroups()
    const ownGroups = groups.filter((group) => group.groupId === groupId || group.groupId.startsWith(prefix))
    if (ownGroups.length > 0) await admin.deleteGroups(ownGroups.map((group) => group.groupId))
  })
}

async function withAdmin<T>(kafka: Kafka, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

function textHeaders(headers: IHeaders = {}): DeadLetter {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, String(Array.isArray(value) ? value[0] : value)]),
  )
}
