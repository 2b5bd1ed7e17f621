import { randomBytes } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { createKafka } from '../../src/kafka/cluster/client.ts'
import { startProducer } from '../../src/kafka/produce/producer.ts'
import { createPartitionReader } from '../../src/kafka/read/partition-reader.ts'
import type { HeldRecord } from '../../src/message/held-record.ts'
import { headerText } from '../../src/message/record-headers.ts'
import { encodeRetryState } from '../../src/retry/retry-state.ts'
import type { QueuePartition } from '../../src/waiting/mark-writer.ts'
import { WaitingQueues } from '../../src/waiting/queues.ts'
import type { AppendedRecord } from '../../src/waiting/queue-options.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { plainKafka } from '../support/plain-kafka.ts'

/** The queues of some units, in this process: those of a worker, on a real Kafka, without the group. */
export type OwnQueues = {
  readonly queues: WaitingQueues
  /** Called with each message that was pulled. It is to be settled. */
  onTaken: (record: HeldRecord, destinationId: string) => void
  /** Takes the units over. Resolves with the milliseconds that this has taken. */
  takeOver(): Promise<number>
  stop(): Promise<void>
}

export type QueueTopics = {
  readonly topic: string
  readonly marksTopic: string
  /** A topic for marks that has none. */
  readonly emptyTopic: string
  readonly units: number
}

const mostCreatingMs = 60_000
const mebi = 1024 ** 2
/** As in a worker (`src/roles/member/open-waiting.ts`). */
const fetchBytes = 512 * 1024
const cacheBytes = 96 * mebi

/** Creates topics for queues. */
export async function createQueueTopics(brokers: readonly string[], units: number): Promise<QueueTopics> {
  const prefix = `queues-${randomBytes(3).toString('hex')}.`
  const [topic, marksTopic, emptyTopic] = [`${prefix}waiting`, `${prefix}waiting-marks`, `${prefix}empty`]
  const admin = plainKafka(brokers).admin()
  await admin.connect()
  const compacted = [{ name: 'cleanup.policy', value: 'compact' }]
  await admin.createTopics({
    waitForLeaders: false,
    topics: [
      { topic, numPartitions: units },
      ...[marksTopic, emptyTopic].map((name) => ({
        topic: name,
        numPartitions: units,
        configEntries: compacted,
      })),
    ],
  })
  const deadlineMs = performance.now() + mostCreatingMs
  for (const name of [topic, marksTopic, emptyTopic]) {
    for (;;) {
      const offsets = await admin.fetchTopicOffsets(name).catch(() => undefined)
      if (offsets !== undefined) break
      if (performance.now() > deadlineMs) throw new BenchmarkFailure(`${name} has no leaders`)
      await delay(100)
    }
  }
  await admin.disconnect()
  return { topic, marksTopic, emptyTopic, units }
}

export async function deleteQueueTopics(
  brokers: readonly string[],
  { topic, marksTopic, emptyTopic }: QueueTopics,
): Promise<void> {
  const admin = plainKafka(brokers).admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [topic, marksTopic, emptyTopic] })
  await admin.disconnect()
}

export async function openQueues(brokers: readonly string[], of: QueueTopics): Promise<OwnQueues> {
  const kafka = clientOf(brokers)
  const producer = await startProducer({ kafka, maxRecordBytes: mebi, onStalled() {} })
  const reader = createPartitionReader(kafka, { keepsOpen: true, fetchBytes })
  const units = Array.from({ length: of.units }, (_, unit) => unit)
  const partitions = units.map(() => partitionDouble())
  const opened: OwnQueues = {
    queues: new WaitingQueues({
      ...of,
      reader,
      producer,
      group: { pulled: (_topic, unit) => partitions[unit], isReadByAll: () => true },
      take: (record, { headers }) => opened.onTaken(record, headerText(headers, 'destination-id') ?? ''),
      expire: unexpected,
      drop: unexpected,
      maxAgeMs: () => Infinity,
      onWaiting: () => undefined,
      onReady: () => undefined,
      onLost: unexpected,
      isOpen: true,
      cacheBytes,
      log: { info() {}, warn() {}, error() {} },
    }),
    onTaken: (record) => record.settle(),
    async takeOver() {
      const startedMs = performance.now()
      await Promise.all(units.map((unit) => opened.queues.prepare(unit)))
      return performance.now() - startedMs
    },
    async stop() {
      await opened.queues.stop()
      await Promise.all([producer.stop(), reader.stop()])
    },
  }
  return opened
}

function clientOf(brokers: readonly string[]): Kafka {
  const login = { saslMechanism: 'none', saslUsername: undefined, saslPassword: undefined } as const
  return createKafka({ brokers, clientId: 'bench', ssl: false, ...login }, { warn() {}, debug() {} })
}

function unexpected(): never {
  throw new Error('the queue gave up a message of this benchmark')
}

/** A partition of `waiting` that a group has assigned to this process, and never takes away. */
function partitionDouble(): QueuePartition {
  let committedOffset = 0
  return {
    found: { offset: -1, isForeign: false, topicId: undefined, epoch: 0, otherFrom: Infinity },
    isBegun: true,
    isLost: false,
    isElsewhere: false,
    begunBelow: 0,
    get committedOffset() {
      return committedOffset
    },
    lend: () => undefined,
    giveBack: () => undefined,
    moveTo: (offset) => void (committedOffset = Math.max(committedOffset, offset)),
    isOtherFrom: () => undefined,
    isOtherLog: () => undefined,
  }
}

/** The bytes of a message as a producer writes it to `events`: its key, its value, and its source. */
export const messageBytes = 1_000
const textBytes = 880
const text = randomBytes(textBytes / 2).toString('hex')

/** Returns a record of `waiting` as a worker appends it, for a message of `messageBytes`. */
export function waitingRecord(number: number, destinationId: string): AppendedRecord {
  const messageId = `burst-${String(number).padStart(7, '0')}`
  const key = Buffer.from(`user-${String(number % 100_000).padStart(6, '0')}`)
  const value = Buffer.from(JSON.stringify({ type: 'track', messageId, userId: String(key), text }))
  const headers = encodeRetryState({
    sourceId: 'burst',
    destinationId,
    messageId,
    kind: 'track',
    nextRung: 0,
    attempts: 0,
    firstSeenMs: Date.now(),
    expiresAtMs: 0,
    failedHooks: [],
    notBeforeMs: new Map(),
    lastOutcome: '',
    origin: { topic: 'events', partition: 0, offset: number },
  })
  return { key, value, headers }
}

/** The bytes that this process has exchanged with brokers since this file was loaded. */
const sockets = new Set<Socket>()
subscribe('net.client.socket', (message) => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node documents the message of this channel
  sockets.add((message as { socket: Socket }).socket)
})

export function wireBytes(): { readonly read: number; readonly written: number } {
  let [read, written] = [0, 0]
  for (const { bytesRead, bytesWritten } of sockets) {
    read += bytesRead
    written += bytesWritten
  }
  return { read, written }
}
