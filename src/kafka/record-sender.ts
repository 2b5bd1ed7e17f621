import { type Admin, type Kafka, Partitioners, type Producer } from 'kafkajs'
import { Acknowledged } from './acknowledged.ts'

/** A record whose place is known. Texts are written as UTF-8. */
export type PlacedRecord = {
  readonly partition: number
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** Of one topic, in the order in which they are written to each partition. */
export type TopicRecords = { readonly topic: string; readonly records: PlacedRecord[] }

/** `detail` is what Kafka or its client said. Some of the records may have been written nevertheless. */
export type SendOutcome = { ok: true } | { ok: false; detail: string }

/**
 * Writes records in batches, for one that answers for each of them and has no time to wait. It gives up after
 * seconds, and never throws.
 */
export type RecordSender = {
  /** `ok` once all in-sync replicas have all records. Several may be under way. */
  send(batch: readonly TopicRecords[]): Promise<SendOutcome>
  /**
   * Looks, on a connection of its own, whether Kafka could take records of these topics now: each partition has a
   * leader, and so many in-sync replicas. Gives what is in the way, `undefined` when nothing is.
   */
  obstacle(topics: readonly string[], minInsync: number): Promise<string | undefined>
  stop(): Promise<void>
}

/** How long a broker may wait for its replicas before it says that they didn't follow. */
const replicasTimeoutMs = 1_500
/** Then a batch is given up, and the connection with it. */
const sendTimeoutMs = 3_000

/**
 * Sends with kafkajs, not idempotent: kafkajs reuses a sequence number when an acknowledgement is lost under
 * concurrent sends (kafkajs#1005). `kafka` should be impatient. Rejects when no broker can be reached.
 */
export async function startRecordSender(kafka: Kafka): Promise<RecordSender> {
  let current = createProducer(kafka)
  let isStopped = false
  await current.connect()

  /** Without an answer the connection may be dead without a word: the next batch gets a new one. */
  function giveUp(stuck: Producer, sending: Promise<unknown>): void {
    if (stuck === current && !isStopped) current = createProducer(kafka)
    void disconnect(stuck)
    // The client goes on trying by itself for a while, and connects again for it.
    void sending.catch(() => undefined).then(() => disconnect(stuck))
  }

  return {
    async send(batch) {
      if (isStopped) return { ok: false, detail: 'the sender is stopped' }
      const producer = current
      const sending = send(producer, batch)
      const timeout = Promise.withResolvers<'timeout'>()
      const timer = setTimeout(timeout.resolve, sendTimeoutMs, 'timeout')
      try {
        if ((await Promise.race([sending, timeout.promise])) !== 'timeout') return { ok: true }
        giveUp(producer, sending)
        return { ok: false, detail: `no answer within ${sendTimeoutMs} ms` }
      } catch (error) {
        return { ok: false, detail: messageOf(error) }
      } finally {
        clearTimeout(timer)
      }
    },
    async obstacle(topics, minInsync) {
      const admin = kafka.admin()
      try {
        await admin.connect()
        return await obstacleOf(admin, topics, minInsync)
      } catch (error) {
        return messageOf(error)
      } finally {
        await admin.disconnect().catch(() => undefined)
      }
    },
    async stop() {
      isStopped = true
      await disconnect(current)
    },
  }
}

async function send(producer: Producer, batch: readonly TopicRecords[]): Promise<void> {
  await producer.connect()
  const topicMessages = batch.map(({ topic, records }) => ({ topic, messages: records }))
  const answers = await producer.sendBatch({ acks: -1, timeout: replicasTimeoutMs, topicMessages })
  const acknowledged = new Acknowledged(answers)
  for (const { topic, records } of batch) {
    for (const { partition } of records) {
      if (acknowledged.next(topic, partition) === undefined)
        throw new Error(`${topic}/${partition} was not acknowledged`)
    }
  }
}

function createProducer(kafka: Kafka): Producer {
  return kafka.producer({
    idempotent: false,
    createPartitioner: Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
    // A partition that changes its leader is found again within a second; who waits for longer is told so.
    retry: { initialRetryTime: 100, maxRetryTime: 400, factor: 0.2, multiplier: 2, retries: 3 },
  })
}

async function disconnect(producer: Producer): Promise<void> {
  try {
    await producer.disconnect()
  } catch {
    // It is given up anyway.
  }
}

async function obstacleOf(
  admin: Admin,
  names: readonly string[],
  minInsync: number,
): Promise<string | undefined> {
  const { topics } = await admin.fetchTopicMetadata({ topics: [...names] })
  for (const { name, partitions } of topics) {
    for (const { partitionId, leader, isr } of partitions) {
      if (leader < 0) return `${name}/${partitionId} has no leader`
      if (isr.length < minInsync)
        return `${name}/${partitionId} has ${isr.length} in-sync replicas of ${minInsync}`
    }
  }
  return undefined
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
